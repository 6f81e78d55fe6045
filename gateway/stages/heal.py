"""After old messages were shrunk, pointers to them are worked out anew: none may point at what is no longer there."""

from __future__ import annotations

from dataclasses import replace

from gateway.conversation import Level
from gateway.counting import Counting
from gateway.forcing import Forcing
from gateway.forms import Forms
from gateway.levels import at_level
from gateway.message import Message
from gateway.repeating import Repeats
from gateway.turn import Turn

ROUNDS = 3
"""Forcing may shrink what a pointer points at, and what a pointer stood for may not fit: so often, then it ends."""


class Heal:
    """Gives each pointer a text that holds: a new pointer, the whole, or, where that no longer fits, a snip.

    What is over the hard limit after that, whatever made it so, is forced into it.
    """

    name = "heal"
    bypass = "compaction"

    def __init__(self, forms: Forms, repeats: Repeats, counting: Counting, forcing: Forcing) -> None:
        self._forms = forms
        self._repeats = repeats
        self._counting = counting
        self._forcing = forcing

    def skips(self, turn: Turn) -> bool:
        """Whether there is nothing to do."""
        return not turn.rewritten and turn.count() <= turn.limits.hard

    async def run(self, turn: Turn) -> None:
        """Heal only on a turn that rewrote old messages, whose cache is lost anyway; look at the limit on every one."""
        for _ in range(ROUNDS):
            if turn.rewritten:
                await self._heal(turn)
            if turn.count() <= turn.limits.hard:
                return
            await self._counting.settle(turn)
            if turn.count() <= turn.limits.hard:
                return
            before = turn.count()
            self._forcing.force(turn)
            if turn.count() == before:
                return
        self._settle(turn)

    async def _heal(self, turn: Turn) -> None:
        for index in turn.standing():
            item = turn.items[index]
            if item.whole is None or item.level is not Level.WHOLE or item.shortened:
                continue
            whole = item.whole
            short = await self._repeats.shorter(turn, index, whole)
            if short is not None:
                made = self._forms.with_text(whole, short)
                self._counting.recount(turn, [made])
                turn.put(index, made)
                turn.records[item.chain] = replace(turn.record(item), text=short, level=Level.WHOLE)
                continue
            turn.items[index] = replace(item, whole=None)
            turn.put(index, whole)
            level = Level.WHOLE
            for lower in (Level.SNIPPED, Level.SKELETON):
                if turn.count() <= turn.limits.hard:
                    break
                level = self._lowered(turn, index, whole, lower)
            turn.records[item.chain] = replace(turn.record(item), text=None, level=level)

    def _settle(self, turn: Turn) -> None:
        """Whatever is still a pointer becomes a skeleton: it may point at what has gone."""
        for index in turn.standing():
            item = turn.items[index]
            if item.whole is not None and item.level is Level.WHOLE and not item.shortened:
                level = self._lowered(turn, index, item.whole, Level.SKELETON)
                turn.records[item.chain] = replace(turn.record(item), text=None, level=level)

    def _lowered(self, turn: Turn, index: int, whole: Message, level: Level) -> Level:
        made = at_level(self._forms, turn, index, level)
        self._counting.recount(turn, [made])
        turn.put(index, made, level, whole)
        return level
