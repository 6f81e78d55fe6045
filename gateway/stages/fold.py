"""Tier 0: tool results are folded at first sight. Nothing is lost, and nothing of them is in the upstream's cache yet."""

from __future__ import annotations

import asyncio

from gateway.forms import LARGE, Forms
from gateway.settings import FoldSettings
from gateway.turn import Turn


class Fold:
    """Folds every tool result that is sent; the same bytes on each turn."""

    name = "fold"
    bypass = "compaction"

    def __init__(self, settings: FoldSettings, forms: Forms) -> None:
        self._settings = settings
        self._forms = forms

    async def run(self, turn: Turn) -> None:
        """Fold, large ones off the loop."""
        if not self._settings.enabled:
            return
        count = 0
        for index in turn.standing():
            item = turn.items[index]
            if not item.original.facts.is_tool:
                continue
            message = item.sent
            if len(message.raw) > LARGE and not self._forms.known("fold", message):
                folded = await asyncio.to_thread(self._forms.folded, message)
            else:
                folded = self._forms.folded(message)
            if folded is not message:
                item.sent = folded
                count += 1
        turn.act(self.name, count)
