"""Tier 0: tool results are folded at first sight. Nothing is lost, and the upstream's cache has nothing of them yet."""

from __future__ import annotations

import asyncio

from gateway.forms import LARGE, Forms
from gateway.levels import call_of
from gateway.message import Recent
from gateway.settings import FoldSettings
from gateway.shrink.reads import read_paths
from gateway.turn import Turn

FILES_KEPT = 40_000
"""Results of which it is remembered whether they are a file's text."""


class Fold:
    """Folds every tool result that is sent; the same bytes on each turn."""

    name = "fold"
    bypass = "compaction"

    def __init__(self, settings: FoldSettings, forms: Forms) -> None:
        self._settings = settings
        self._forms = forms
        self._files: Recent[bytes, bool] = Recent(FILES_KEPT)

    def skips(self, turn: Turn) -> bool:
        """Whether there is nothing to do."""
        return not self._settings.enabled or not turn.has_new_results()

    async def run(self, turn: Turn) -> None:
        """Fold, large ones off the loop."""
        count = 0
        for index in turn.fresh():
            item = turn.items[index]
            if not item.original.facts.is_tool or item.own:
                continue
            message = item.sent
            quotable = self._is_file(turn, index)
            if len(message.raw) > LARGE and not self._forms.known("fold", message, int(quotable)):
                folded = await asyncio.to_thread(self._forms.folded, message, quotable=quotable)
            else:
                folded = self._forms.folded(message, quotable=quotable)
            if folded is not message:
                turn.put(index, folded)
                count += 1
        turn.act(self.name, count)

    def _is_file(self, turn: Turn, index: int) -> bool:
        """Whether the result is a file's own text, which the agent may have to quote in an edit."""
        chain = turn.items[index].chain
        found = self._files.get(chain)
        if found is None:
            found = read_paths(*call_of(turn, index)) is not None
            self._files.put(chain, found)
        return found
