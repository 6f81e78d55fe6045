"""After old messages were shrunk, pointers to them are worked out anew: none may point at what is no longer there."""

from __future__ import annotations

from dataclasses import replace

from gateway.conversation import Level
from gateway.counting import Counting
from gateway.forms import Forms
from gateway.levels import at_level
from gateway.repeating import Repeats
from gateway.turn import Item, Turn


class Heal:
    """Gives each pointer a text that holds: a new pointer, the whole, or, where that no longer fits, a snip."""

    name = "heal"
    bypass = "compaction"

    def __init__(self, forms: Forms, repeats: Repeats, counting: Counting) -> None:
        self._forms = forms
        self._repeats = repeats
        self._counting = counting

    async def run(self, turn: Turn) -> None:
        """Only on a turn that rewrote old messages, whose cache is lost anyway."""
        if not turn.rewritten:
            return
        for index in turn.standing():
            item = turn.items[index]
            if item.whole is None or item.level is not Level.WHOLE:
                continue
            whole = item.whole
            short = await self._repeats.shorter(turn, index, whole)
            level = Level.WHOLE
            if short is not None:
                made = self._forms.with_text(whole, short)
                self._counting.recount(turn, [made])
                turn.put(index, made)
            else:
                turn.items[index] = Item(item.chain, item.original, item.sent, own=item.own, client=item.client)
                turn.put(index, whole)
                for lower in (Level.SNIPPED, Level.SKELETON):
                    if turn.count() <= turn.limits.hard:
                        break
                    level, made = lower, at_level(self._forms, turn, index, lower)
                    self._counting.recount(turn, [made])
                    turn.put(index, made, level, whole)
            turn.records[item.chain] = replace(turn.record(item), text=short, level=level)
