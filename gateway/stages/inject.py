"""Puts recalled memory into the system message, so that the upstream's prompt cache survives it.

`pinned`: what was injected into a conversation stays the same bytes on every later turn. New memory rebuilds the block
where that costs little, or nothing; else it goes before the user message that called for it, where the upstream takes a
system message there; else it waits for the next compaction.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from gateway.blocks import mid_message, with_block
from gateway.conversation import Pin
from gateway.memory.service import MemoryService, Recalled
from gateway.message import Messages
from gateway.metrics import Metrics
from gateway.settings import InjectionSettings
from gateway.turn import Turn

BLOCK_SHARE = 0.25
"""Of the window: retrieved memory's part of the budget."""
BLOCK_LEAST = 60
"""Tokens; in less room than this a block says nothing."""


class Inject:
    """Waits for the recall, no longer than it may take, and decides where what came goes."""

    name = "inject"
    bypass = "memory"

    def __init__(
        self,
        settings: InjectionSettings,
        memory: MemoryService,
        messages: Messages,
        metrics: Metrics,
    ) -> None:
        self._settings = settings
        self._memory = memory
        self._messages = messages
        self._metrics = metrics

    def skips(self, turn: Turn) -> bool:
        """Whether there is nothing to do."""
        return turn.recall is None

    async def run(self, turn: Turn) -> None:
        """Inject."""
        if turn.recall is None:
            return
        recalled = await self._recalled(turn)
        turn.recall = None
        if recalled is None or self._pinned_meanwhile(turn):
            return
        pinned = turn.pinned
        known = frozenset(pinned.ids) if pinned is not None else frozenset()
        fresh = [name for name in recalled.ids if name not in known]
        turn.act("memory", len(fresh))
        self._metrics.memories.labels("recalled").inc(len(fresh))
        if pinned is None or self._rebuilds(turn, bool(fresh)):
            self._pin(turn, recalled)
        elif fresh and turn.route.upstream.mid_system:
            self._pin_before(turn, recalled.only(fresh))

    async def _recalled(self, turn: Turn) -> Recalled | None:
        assert turn.recall is not None
        left = turn.recall_by - asyncio.get_running_loop().time()
        done, _ = await asyncio.wait({turn.recall}, timeout=max(0.0, left))
        if done:
            return turn.recall.result()
        turn.recall.cancel()
        self._metrics.recalls_late.inc()
        return None

    def _pinned_meanwhile(self, turn: Turn) -> bool:
        """Take what another request with the same history has had pinned while this one waited: one pin for both."""
        last = len(turn.items) - 1
        pin = turn.conversation.record(turn.items[last].chain).pin
        if pin is None:
            return False
        turn.records[turn.items[last].chain] = replace(turn.record(turn.items[last]), pin=pin)
        if pin.mid:
            turn.mids[last] = mid_message(self._messages, pin.block)
        else:
            turn.pinned = pin
            turn.system = with_block(self._messages, turn.items[0].original, pin.block) if pin.block else None
        turn.changed()
        return True

    def _rebuilds(self, turn: Turn, news: bool) -> bool:
        if self._settings.mode == "fresh":
            return True
        return news and (turn.compacted or turn.count() < self._settings.refresh_tokens)

    def _pin(self, turn: Turn, recalled: Recalled) -> None:
        room = self._room(turn)
        block = self._memory.render(recalled, room) if room >= BLOCK_LEAST else ""
        self._record(turn, Pin(block, recalled.ids))
        if block or turn.system is not None:
            turn.system = with_block(self._messages, turn.items[0].original, block) if block else None
            turn.changed()

    def _pin_before(self, turn: Turn, recalled: Recalled) -> None:
        room = self._room(turn)
        block = self._memory.render(recalled, room) if room >= BLOCK_LEAST else ""
        if block:
            self._record(turn, Pin(block, recalled.ids, mid=True))
            turn.mids[len(turn.items) - 1] = mid_message(self._messages, block)
            turn.changed()

    def _room(self, turn: Turn) -> int:
        """Tokens that the block may take: its share, and never what would push the request over its limit."""
        used = turn.count() - (int(turn.tokens_of(turn.system) * turn.ratio) if turn.system is not None else 0)
        if turn.system is not None and turn.items[0].original.facts.is_instruction:
            used += int(turn.tokens_of(turn.items[0].sent) * turn.ratio)
        return min(int(BLOCK_SHARE * turn.limits.window), turn.limits.hard - used)

    @staticmethod
    def _record(turn: Turn, pin: Pin) -> None:
        last = turn.items[-1]
        turn.records[last.chain] = replace(turn.record(last), pin=pin)
