"""A new tool result that an earlier, still visible one already holds is sent as a pointer to it.

Like folding it loses nothing, and it costs no cached byte: only the newest results, which the upstream has not seen,
are looked at. The decision is remembered, since it depends on what stands before.
"""

from __future__ import annotations

from dataclasses import replace

from gateway.forms import Forms
from gateway.repeating import Repeats
from gateway.settings import FoldSettings
from gateway.turn import Turn


class Repeat:
    """Replaces long verbatim repeats in the newest tool results."""

    name = "repeat"
    bypass = "compaction"

    def __init__(self, settings: FoldSettings, forms: Forms, repeats: Repeats) -> None:
        self._settings = settings
        self._forms = forms
        self._repeats = repeats

    def skips(self, turn: Turn) -> bool:
        """Whether there is nothing to do."""
        return not self._settings.enabled or not turn.items[-1].original.facts.is_tool

    async def run(self, turn: Turn) -> None:
        """Compare the results after the last assistant message with those before it."""
        first = len(turn.items)
        while first > 0 and turn.items[first - 1].original.facts.is_tool:
            first -= 1
        for index in range(first, len(turn.items)):
            item = turn.items[index]
            if item.own or item.chain in turn.conversation.records:
                continue
            short = await self._repeats.shorter(turn, index, item.sent)
            if short is not None:
                turn.put(index, self._forms.with_text(item.sent, short), whole=item.sent)
                turn.records[item.chain] = replace(turn.record(item), text=short)
                turn.act(self.name, 1)
