"""Tier 4: old messages become one summary at a safe cut, made ahead of need where there was time.

The request that crosses the hard limit waits for a summary only where none was made ahead; whatever happens it leaves
with its pairs whole and within its window: a summariser that fails is replaced by skeletons, then by eviction.
"""

from __future__ import annotations

import asyncio
import time

import structlog

from gateway.account import CACHED_PRICE, OUTPUT_PRICE
from gateway.conversation import Conversation, Cut
from gateway.counting import Counting
from gateway.cutting import Place, place_at, places
from gateway.forcing import COMPACT, Forcing
from gateway.memory.service import MemoryService
from gateway.metrics import Metrics
from gateway.proposal import Proposal
from gateway.settings import Settings
from gateway.summarise import Summariser, SummaryFailed, summary_room
from gateway.tasks import Tasks
from gateway.tokens.fast import text_tokens
from gateway.turn import Turn

log = structlog.get_logger(__name__)

USUAL_SUMMARY = 400
"""Tokens that a summary mostly has, whatever it may have."""
WITHOUT_SUMMARY_GAIN = 0.10
"""Of the window: where no summary can be had, old results shrink in steps of this size, not a little on every turn."""
COOLDOWN_S = 60.0
"""After a summary failed, no new one is asked for in this conversation for so long."""


class Compact:
    """Cuts and summarises."""

    name = COMPACT
    bypass = "compaction"

    def __init__(
        self,
        settings: Settings,
        *,
        forcing: Forcing,
        counting: Counting,
        summariser: Summariser,
        memory: MemoryService,
        tasks: Tasks,
        metrics: Metrics,
    ) -> None:
        self._settings = settings
        self._forcing = forcing
        self._counting = counting
        self._summariser = summariser
        self._memory = memory
        self._tasks = tasks
        self._metrics = metrics

    def skips(self, turn: Turn) -> bool:
        """Whether there is nothing to do."""
        return turn.count() <= min(turn.limits.speculative, turn.limits.soft)

    async def run(self, turn: Turn) -> None:
        """Compact where the limits ask for it; start a summary ahead of need."""
        limits = turn.limits
        threshold = min(limits.speculative, limits.soft)
        try:
            await self._counting.settle(turn)
            await self._milder(turn, threshold)
        finally:  # whatever becomes of the summary, the request leaves within its window
            if turn.count() > limits.hard:
                self._forcing.force(turn)

    async def to_size(self, turn: Turn, tokens: int) -> bool:
        """Reactive compaction: bring a request that the upstream refused under `tokens`. Whether it did."""
        turn.limits = turn.limits.shrunk_to(tokens)
        await self._counting.settle(turn)
        before = turn.count()
        try:
            if before > turn.limits.hard and self._able(turn.conversation):
                await self._compact_now(turn)
        finally:
            if turn.count() > turn.limits.hard:
                self._forcing.force(turn)
        return turn.count() < before

    async def _milder(self, turn: Turn, threshold: int) -> None:
        """What keeps more than force does: skeletons that are enough, a summary made ahead, a new one."""
        limits = turn.limits
        if turn.count() > limits.hard or (turn.over and self._affords_ready(turn)):
            self._use_ready(turn)
        if turn.proposal is not None and turn.count() > limits.hard and self._is_cheaper(turn, turn.proposal):
            turn.proposal.commit()
        elif self._able(turn.conversation):
            if turn.count() > limits.hard and not turn.compacted:
                await self._compact_now(turn)
            elif turn.count() > threshold:
                self._speculate(turn)
        elif turn.proposal is not None and (
            turn.proposal.enough or turn.proposal.gain() >= WITHOUT_SUMMARY_GAIN * limits.window
        ):
            turn.proposal.commit()

    def _use_ready(self, turn: Turn) -> None:
        found = self._ready_at(turn)
        if found is None:
            return
        place = place_at([item.original.facts for item in turn.items], found)
        self._cut(turn, place, turn.conversation.ready[turn.items[found].chain], "ahead")

    @staticmethod
    def _ready_at(turn: Turn) -> int | None:
        """Where a summary made ahead ends, if one fits this conversation as it stands."""
        ready = turn.conversation.ready
        if not ready:
            return None
        indices = range(len(turn.items) - 1, turn.cut_at, -1)
        return next((index for index in indices if turn.items[index].chain in ready), None)

    async def _compact_now(self, turn: Turn) -> None:
        place = self._best(turn)
        if place is None or self._left(turn, place) > turn.limits.hard:
            return  # what has to stay is too much by itself: a summary would cost and not help
        # Another request with the same history may have had it written while this one was being counted.
        summary = turn.conversation.ready.get(turn.items[place.at].chain)
        if summary is None:
            flight = self._flight(turn, place)
            if flight is None:
                return
            await asyncio.wait({flight})  # others may wait for it too: it goes on when this request is given up
            summary = None if flight.cancelled() else flight.result()
        if summary is None:
            turn.failures.append(self.name)
            self._metrics.compactions.labels("failed").inc()
            return
        self._cut(turn, place, summary, "new")

    def _speculate(self, turn: Turn) -> None:
        if turn.conversation.flights or self._ready_at(turn) is not None:
            return
        turn.conversation.ready.clear()
        place = self._best(turn)
        if place is None or self._left(turn, place) > turn.limits.soft:
            return  # too little would go: by the time it is needed, another would be
        account = turn.conversation.account
        resumed = account.is_new  # it comes with a history: it has lasted, and will go on
        if resumed or account.affords(self._stake(turn, place)) or account.imminent(turn, turn.limits.hard):
            self._flight(turn, place, ahead=True)

    def _stake(self, turn: Turn, place: Place) -> float:
        """What a summary and the rewrite after it cost, in full-price tokens."""
        written = min(summary_room(turn.limits.window), USUAL_SUMMARY)
        return CACHED_PRICE * turn.count() + OUTPUT_PRICE * written + (1 - CACHED_PRICE) * self._left(turn, place)

    def _is_cheaper(self, turn: Turn, proposal: Proposal) -> bool:
        """Whether skeletons are enough, and cost less than a summary that has not been paid for by what was saved."""
        if not proposal.enough:
            return False
        place = self._best(turn)
        if place is None:
            return True
        stake = self._stake(turn, place)
        return proposal.cost() < stake and not turn.conversation.account.affords(stake)

    def _affords_ready(self, turn: Turn) -> bool:
        """Whether a summary made ahead may be used before it has to be: its rewrite is paid out of what was saved."""
        found = self._ready_at(turn)
        if found is None:
            return False
        left = self._left(turn, place_at([item.original.facts for item in turn.items], found))
        return turn.cold or turn.conversation.account.affords((1 - CACHED_PRICE) * left)

    @staticmethod
    def _left(turn: Turn, place: Place) -> int:
        """Tokens that a cut would leave, the summary included."""
        stay = [turn.items[i].sent for i in (*place.before, *place.after, *range(place.at, len(turn.items)))]
        return turn.count(stay) + min(summary_room(turn.limits.window), USUAL_SUMMARY)

    def _flight(self, turn: Turn, place: Place, *, ahead: bool = False) -> asyncio.Future[str | None] | None:
        """The summary up to a place being written: one for all the requests that want it."""
        chain = turn.items[place.at].chain
        conversation = turn.conversation
        flight = conversation.flights.get(chain)
        if flight is None:
            task = self._tasks.spawn("compaction", self._write(turn.frozen(), place, chain, ahead=ahead))
            if task is None:
                return None
            flight = conversation.flights[chain] = task
        return flight

    async def _write(self, turn: Turn, place: Place, chain: bytes, *, ahead: bool) -> str | None:
        conversation = turn.conversation
        try:
            if ahead and turn.answered is not None:
                await turn.answered.wait()  # the turn's own request goes first, and leaves its prefix in the cache
            gone = [item.original for item in turn.items[turn.cut_at : place.at]]
            summary, _ = await asyncio.gather(
                self._summariser.summarise(turn, place.at), self._memory.before_forgetting(turn, gone)
            )
        except SummaryFailed as error:
            conversation.failed_at = time.monotonic()
            log.warning("summary failed", request_id=turn.request_id, error=str(error))
            return None
        except Exception:
            conversation.failed_at = time.monotonic()
            raise
        finally:
            conversation.flights.pop(chain, None)
        conversation.ready[chain] = summary
        prompt = turn.count(turn.outgoing(place.at))
        cached = prompt if self._settings.compaction.model is None and not turn.cold else 0
        conversation.account.spend(prompt, cached, text_tokens(summary))
        return summary

    def _cut(self, turn: Turn, place: Place, summary: str, how: str) -> bool:
        least = 1 if turn.count() > turn.limits.hard else turn.limits.min_gain
        return self._forcing.cut(turn, place, Cut(summary, place.before, place.after), how, least)

    def _best(self, turn: Turn) -> Place | None:
        """The mildest cut whose tail leaves room under the low watermark; the deepest where none does."""
        facts = [item.original.facts for item in turn.items]
        found = places(facts, self._settings.compaction.keep_rounds, turn.cut_at)
        room = turn.limits.low - int(summary_room(turn.limits.window))
        for place in found:
            stay = [turn.items[i].sent for i in (*place.before, *place.after, *range(place.at, len(turn.items)))]
            if turn.count(stay) <= room:
                return place
        return found[-1] if found else None

    def _able(self, conversation: Conversation) -> bool:
        """Whether a summary may be asked for."""
        cooling = conversation.failed_at > 0 and time.monotonic() - conversation.failed_at < COOLDOWN_S
        return self._settings.compaction.enabled and not cooling
