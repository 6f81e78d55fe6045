"""Tier 3: old calls and their results become skeletons: which tool, which arguments, one line of what came back."""

from __future__ import annotations

from gateway.conversation import Level
from gateway.guard import by_worth
from gateway.rounds import recent_start
from gateway.settings import MicrocompactSettings
from gateway.turn import Turn


class Microcompact:
    """Goes on from what snip proposed, oldest first; does both where they reach the low watermark together."""

    name = "microcompact"
    bypass = "compaction"

    def __init__(self, settings: MicrocompactSettings, protected: list[str]) -> None:
        self._settings = settings
        self._protected = frozenset(protected)

    def skips(self, turn: Turn) -> bool:
        """Whether there is nothing to do."""
        return turn.proposal is None or not self._settings.enabled

    async def run(self, turn: Turn) -> None:
        """Propose skeletons; commit if that is enough."""
        proposal = turn.proposal
        if proposal is None:
            return
        recent = recent_start([item.original.facts for item in turn.items], self._settings.keep_rounds)
        old = [index for index in turn.standing() if index < recent]
        enough = proposal.add(by_worth(turn, old, self._protected), Level.SKELETON, turn.limits.low)
        if enough and proposal.pays():
            proposal.commit()
            turn.proposal, turn.over = None, False
