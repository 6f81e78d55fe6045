"""A shrinking that is worked out first and done only if it pays: each change rewrites the cache from there on.

Snip and microcompact propose; what they propose is committed as a whole once it reaches the low watermark, so that the
turns after need none. A proposal that falls short is left alone: compaction then sees the messages whole, at the price
of cached tokens.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from gateway.account import CACHED_PRICE
from gateway.conversation import Level
from gateway.counting import Counting
from gateway.forms import Forms
from gateway.levels import at_level
from gateway.message import Message
from gateway.turn import Turn

PAYBACK_TURNS = 10
"""A rewrite that takes longer than this to pay for itself is left to compaction, which rewrites less and wins more."""


@dataclass(slots=True)
class Proposal:
    """Changes to a turn that have not been made yet. Token counts are uncalibrated, as in `Turn.tokens_of`."""

    turn: Turn
    forms: Forms
    counting: Counting
    changes: dict[int, tuple[Level, Message]] = field(default_factory=dict)
    saved: int = 0
    enough: bool = False
    """Whether it reaches the low watermark."""

    def add(self, indices: Iterable[int], level: Level, target: int | None) -> bool:
        """Propose the level for items, in the order given, until the turn is down to `target` calibrated tokens.

        Returns whether it is; with None all of them are taken and it is False.
        """
        start = self.turn.count()
        for index in indices:
            if target is not None and start - self.gain() <= target:
                break
            self._try(index, level)
        self.enough = target is not None and start - self.gain() <= target
        return self.enough

    def gain(self) -> int:
        """Calibrated tokens won."""
        return int(self.saved * self.turn.ratio)

    def payback(self) -> float:
        """Turns until what the changes win has paid for what they rewrite.

        From the first changed message on, everything is read uncached once; each later turn saves its cached price on
        what was won.
        """
        return self.cost() / (CACHED_PRICE * self.gain()) if self.gain() > 0 else float("inf")

    def cost(self) -> float:
        """What the rewrite costs, in full-price tokens: all that follows the first change is read uncached once."""
        if not self.changes or self.turn.cold:
            return 0.0
        first = min(self.changes)
        rest = sum(self.turn.tokens_of(self.turn.items[i].sent) for i in self.turn.standing() if i >= first)
        return (1 - CACHED_PRICE) * max(0.0, rest - self.saved) * self.turn.ratio

    def pays(self) -> bool:
        """Whether doing it is worth the rewrite: enough is won, and soon enough (a cold cache has nothing to lose)."""
        if self.gain() < self.turn.limits.min_gain:
            return False
        cost = self.cost()
        return cost == 0 or (self.payback() <= PAYBACK_TURNS and self.turn.conversation.account.affords(cost))

    def commit(self) -> None:
        """Do it, and have it remembered."""
        if self.changes:
            first = min(self.changes)
            self.turn.rewrite(index for index in self.turn.standing() if index < first)
        for index, (level, message) in self.changes.items():
            item = self.turn.items[index]
            self.turn.put(index, message, level, item.whole or item.sent)
            self.turn.records[item.chain] = replace(self.turn.record(item), level=level, text=None, shortened=False)
        for level, stage in ((Level.SNIPPED, "snip"), (Level.SKELETON, "microcompact")):
            self.turn.act(stage, sum(1 for found, _ in self.changes.values() if found is level))
        self.changes, self.saved = {}, 0

    def _try(self, index: int, level: Level) -> None:
        item = self.turn.items[index]
        before = self.changes.get(index, (item.level, item.sent))
        if before[0] >= level:
            return
        made = at_level(self.forms, self.turn, index, level)
        self.counting.recount(self.turn, [before[1], made])
        won = self.turn.tokens_of(before[1]) - self.turn.tokens_of(made)
        if made is not before[1] and won > 0:
            self.changes[index] = (level, made)
            self.saved += won
