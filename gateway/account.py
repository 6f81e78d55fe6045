"""What the gateway has saved a conversation so far: it stakes no more than that on a saving still to come.

A rewrite or a summary made ahead of need pays off only if the conversation goes on for some turns, and nobody knows
whether it will. So such a thing is done out of what folding and earlier shrinking have already won; a bill that would
have been smaller without the gateway can then come only from what had to be done to fit the window.

The unit is one input token at full price; a token read from the upstream's prompt cache costs a tenth, one that a
summariser writes four times as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.turn import Turn

CACHED_PRICE = 0.1
"""OpenAI's and Anthropic's discount on cached input."""
OUTPUT_PRICE = 4.0
"""Of what a model writes, in input tokens: 4 to 5 with most vendors."""
GROWTH_SHARE = 0.3
"""Weight of the newest turn in the running growth."""
IMMINENT_TURNS = 1.5
"""A conversation that would cross a limit within so many turns of its usual growth is about to."""


@dataclass(slots=True)
class Account:
    """One conversation's savings and its pace. Tokens are calibrated ones."""

    saved: float = 0.0
    growth: float = 0.0
    """Tokens that a turn adds, by running average."""
    tip: bytes = b""
    """Chain of the last message of the request before; empty before the first."""
    length: int = 0
    before: int = 0
    after: int = 0

    def knows(self, turn: Turn) -> bool:
        """Whether the turn goes on from the request before, so that the upstream may have that in its cache."""
        return 0 < self.length <= len(turn.items) and turn.items[self.length - 1].chain == self.tip

    def settle(self, turn: Turn, *, warm: bool) -> None:
        """Book a turn that is ready to be sent. `warm`: the upstream's cache has not expired since the last."""
        before, after = turn.tokens_before, turn.tokens_after
        if self.knows(turn):
            direct_cached = min(self.before, before) if warm else 0
            ours_cached = min(self.after, after, turn.stable if turn.stable is not None else after) if warm else 0
            grown = max(0, after - self.after) if not turn.rewritten else max(0, before - self.before)
            self.growth += GROWTH_SHARE * (grown - self.growth) if self.growth else grown
        else:
            direct_cached = ours_cached = 0
        spared = 1 - CACHED_PRICE
        self.saved += (before - spared * direct_cached) - (after - spared * ours_cached)
        self.tip, self.length, self.before, self.after = turn.items[-1].chain, len(turn.items), before, after

    def spend(self, prompt: int, cached: int, written: int) -> None:
        """Book a side call: its prompt, the part of it that the upstream had cached, and what it wrote."""
        self.saved -= prompt - (1 - CACHED_PRICE) * cached + OUTPUT_PRICE * written

    @property
    def is_new(self) -> bool:
        """Whether nothing has been booked yet: a new conversation, or one from before this process."""
        return self.length == 0

    def affords(self, cost: float) -> bool:
        """Whether so much can be staked."""
        return self.saved >= cost

    def imminent(self, turn: Turn, limit: int) -> bool:
        """Whether the conversation is about to cross a limit."""
        return turn.count() + IMMINENT_TURNS * self.growth > limit
