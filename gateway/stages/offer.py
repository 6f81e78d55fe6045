"""Declares the tool that reads spilled outputs back, from the turn on which a conversation first has one.

Once declared it stays, whatever becomes of the cut result: `tools` stands before all messages in the upstream's cached
prefix, so every change of it costs the whole cache.
"""

from __future__ import annotations

from dataclasses import replace

from gateway.counting import Counting
from gateway.readback.tool import LEAST_WINDOW, offerable, tools_with
from gateway.settings import SpillSettings
from gateway.turn import Turn


class Offer:
    """Adds `read_spilled_output` to `tools` (`spill.tool: true`). Doing it twice is doing it once."""

    name = "offer"
    bypass = "compaction"

    def __init__(self, settings: SpillSettings, counting: Counting) -> None:
        self._settings = settings
        self._counting = counting

    def skips(self, turn: Turn) -> bool:
        """Whether there is nothing to do."""
        return not self._settings.tool or turn.offered

    async def run(self, turn: Turn) -> None:
        """Declare it where this history has a spilled result and the request leaves the model free to read it."""
        if not _spilled_before(turn):
            if not turn.spilled:
                return
            last = turn.items[-1]
            turn.records[last.chain] = replace(turn.record(last), spilled=True)
        if turn.limits.window < LEAST_WINDOW or not offerable(turn.body):
            return
        turn.changes["tools"] = tools_with(turn.body)
        turn.offered = True
        self._counting.recount_fixed(turn)


def _spilled_before(turn: Turn) -> bool:
    """Whether an earlier turn of this very history had one."""
    if not turn.conversation.records and not turn.records:
        return False
    return any(turn.record(item).spilled for item in reversed(turn.items))
