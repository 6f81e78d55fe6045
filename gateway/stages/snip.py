"""Tier 2: past the soft limit, long old tool results keep their head, their tail and the lines that matter."""

from __future__ import annotations

from gateway.conversation import Level
from gateway.counting import Counting
from gateway.forms import Forms
from gateway.guard import by_worth
from gateway.proposal import Proposal
from gateway.rounds import recent_start
from gateway.settings import LimitSettings, SnipSettings
from gateway.turn import Turn

RECENT_ROUNDS = 3
"""The newest tool results are the last to be touched."""
PRECISE_FROM = 0.90
"""Share of the soft limit from which the fast estimate is not trusted alone."""
COLD_FROM = 0.50
"""Share of the soft limit from which a conversation with a cold cache is shrunk: its old bytes are free to change."""


class Snip:
    """Proposes snips, oldest first; does them where that is enough to reach the low watermark."""

    name = "snip"
    bypass = "compaction"

    def __init__(
        self, settings: SnipSettings, limits: LimitSettings, protected: list[str], forms: Forms, counting: Counting
    ) -> None:
        self._settings = settings
        self._limits = limits
        self._protected = frozenset(protected)
        self._forms = forms
        self._counting = counting

    def skips(self, turn: Turn) -> bool:
        """Whether there is nothing to do."""
        return turn.count() <= COLD_FROM * turn.limits.soft

    async def run(self, turn: Turn) -> None:
        """Look at the limits; propose."""
        if turn.count() > PRECISE_FROM * turn.limits.soft:
            await self._counting.settle(turn)
        turn.over = turn.count() > turn.limits.soft
        unseen = not turn.conversation.account.knows(turn)
        turn.cold = unseen or turn.idle_s > self._limits.cache_ttl_s
        idle = not unseen and turn.cold and turn.count() > COLD_FROM * turn.limits.soft
        if not (turn.over or idle):
            return
        turn.proposal = proposal = Proposal(turn, self._forms, self._counting)
        if not self._settings.enabled:
            return
        recent = recent_start([item.original.facts for item in turn.items], RECENT_ROUNDS)
        old = [index for index in turn.standing() if index < recent and turn.items[index].original.facts.is_tool]
        enough = proposal.add(by_worth(turn, old, self._protected), Level.SNIPPED, turn.limits.low)
        if (enough or idle) and proposal.pays():
            proposal.commit()
            turn.proposal = None if enough else proposal
            turn.over = not enough and turn.over
