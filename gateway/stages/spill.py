"""Tier 1: a tool result over its budget is cut before it ever piles up; its whole text goes to the spill store.

Done at first sight, whatever the limits say, so it costs no cached byte. What is cut out can be read back by its id.
"""

from __future__ import annotations

import asyncio

from gateway.forms import LARGE, Forms, Spilled
from gateway.message import Message, Recent
from gateway.settings import SpillSettings
from gateway.store.protocol import Store
from gateway.tasks import Tasks
from gateway.turn import Turn

CHARS_PER_TOKEN = 4
"""Turns the share of a window, in tokens, into characters: the usual rule for English and code."""
LARGEST_SHARE = 0.5
"""Of a small window: a result of `max_chars` that would fill more than this could never be sent whole."""


class Spill:
    """Cuts tool results to `max_chars` / `max_lines`, or to `max_share` of the window where that is larger."""

    name = "spill"
    bypass = "compaction"

    def __init__(
        self, settings: SpillSettings, forms: Forms, store: Store, tasks: Tasks, stored: Recent[tuple[str, str], bool]
    ) -> None:
        self._settings = settings
        self._forms = forms
        self._store = store
        self._tasks = tasks
        self._stored = stored

    def skips(self, turn: Turn) -> bool:
        """Whether there is nothing to do."""
        return not self._settings.enabled or not turn.has_new_results()

    async def run(self, turn: Turn) -> None:
        """Cut, large ones off the loop, and hand the whole texts to the store."""
        most = self.budget(turn.limits.window)
        count = 0
        for index in turn.fresh():
            item = turn.items[index]
            if item.own or not item.sent.facts.is_tool or not self._may_be_over(item.sent, most):
                continue
            cut = await self._cut(turn, index, most)
            if cut.message is not item.sent:
                turn.put(index, cut.message, spilled=True)
                count += 1
                self._keep(turn, cut)
        turn.act(self.name, count)

    def budget(self, window: int) -> int:
        """Characters that one tool result may have, for a window in tokens."""
        share = int(self._settings.max_share * window) * CHARS_PER_TOKEN
        return min(max(self._settings.max_chars, share), int(LARGEST_SHARE * window) * CHARS_PER_TOKEN)

    def _may_be_over(self, message: Message, most: int) -> bool:
        """Whether it is worth a closer look: the budget is of the text before its lines were folded to rows."""
        facts = message.facts
        return facts.size > most or facts.lines > self._settings.max_lines or self._forms.in_rows(message)

    async def _cut(self, turn: Turn, index: int, most: int) -> Spilled:
        message = turn.items[index].sent
        if len(message.raw) > LARGE:
            return await asyncio.to_thread(self._forms.within_budget, message, most)
        return self._forms.within_budget(message, most)

    def _keep(self, turn: Turn, cut: Spilled) -> None:
        turn.spilled = True
        for name, text in cut.texts:
            key = (turn.caller.tenant, name)
            if self._stored.get(key) is None:
                self._stored.put(key, True)
                self._tasks.spawn("spill", self._store.put_spill(turn.caller.tenant, name, text))
