"""Starts looking for memories, beside all the other stages; only a new user message asks for any.

What earlier turns injected comes back first, byte for byte: it is part of the prefix that the upstream has cached.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from gateway.blocks import mid_message, with_block
from gateway.conversation import Pin
from gateway.memory.render import strip_blocks
from gateway.memory.service import MemoryService
from gateway.message import Messages
from gateway.settings import MemorySettings
from gateway.tasks import Tasks
from gateway.turn import Turn

QUERY_CHARS = 2_000
"""Of a long user message, its beginning is what it asks; its end is looked at too."""
QUERY_TAIL_CHARS = 500


class Recall:
    """Puts pinned memory back, and asks for new memory where the user has just spoken."""

    name = "recall"
    bypass = "memory"

    def __init__(self, settings: MemorySettings, memory: MemoryService, messages: Messages, tasks: Tasks) -> None:
        self._settings = settings
        self._memory = memory
        self._messages = messages
        self._tasks = tasks

    def skips(self, turn: Turn) -> bool:
        """Whether there is nothing to do."""
        return not self._settings.enabled

    async def run(self, turn: Turn) -> None:
        """Find the pins of this history; start the recall."""
        self._repeat_pins(turn)
        last = turn.items[-1]
        if last.original.facts.role != "user" or turn.record(last).pin is not None:
            return
        if not (turn.pinned and turn.pinned.block) and self._memory.knows_nothing(turn.caller.tenant):
            turn.records[last.chain] = replace(turn.record(last), pin=Pin(""))
            return
        query = strip_blocks(last.original.text)
        if len(query) > QUERY_CHARS + QUERY_TAIL_CHARS:
            query = f"{query[:QUERY_CHARS]}\n{query[-QUERY_TAIL_CHARS:]}"
        turn.recall = self._tasks.spawn(  # cancelled with the turn
            "recall",
            self._memory.recall(turn.caller.tenant, query, project=turn.project, session=turn.session),
        )
        turn.recall_by = asyncio.get_running_loop().time() + self._settings.recall_timeout_s

    def _repeat_pins(self, turn: Turn) -> None:
        records = turn.conversation.records
        if not records:
            return
        for index in range(turn.pins_known, len(turn.items)):
            item = turn.items[index]
            record = records.get(item.chain)
            if record is None or record.pin is None:
                continue
            if not record.pin.mid:
                turn.pinned = record.pin
            elif index >= turn.cut_at:
                turn.mids[index] = mid_message(self._messages, record.pin.block)
        if turn.pinned is not None and turn.pinned.block:
            turn.system = with_block(self._messages, turn.items[0].original, turn.pinned.block)
        turn.changed()
