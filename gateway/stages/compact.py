"""Tier 4: old messages become one summary at a safe cut, made ahead of need where there was time.

The request that crosses the hard limit waits for a summary only where none was made ahead; whatever happens it leaves
with its pairs whole and within its window: a summariser that fails is replaced by skeletons, then by eviction.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import structlog

from gateway.account import CACHED_PRICE, OUTPUT_PRICE
from gateway.conversation import Conversation, Cut, Level
from gateway.counting import Counting
from gateway.cutting import Place, lay, oldest_out, place_at, places
from gateway.forms import Forms, spill_id
from gateway.memory.service import MemoryService
from gateway.message import Messages
from gateway.metrics import Metrics
from gateway.prompts import EVICTED_LABEL, evicted_message
from gateway.proposal import Proposal
from gateway.rounds import recent_start
from gateway.settings import Settings
from gateway.store.protocol import Store
from gateway.summarise import Summariser, SummaryFailed, summary_room
from gateway.tasks import Tasks
from gateway.tokens.fast import text_tokens
from gateway.transcript import written
from gateway.turn import Turn

log = structlog.get_logger(__name__)

CUT_MARGIN = 0.9
"""Characters are cut, tokens are meant: a little more goes than the share alone would take."""
LEAST_LEFT = 0.05
"""Share of a text that is left at least."""
USUAL_SUMMARY = 400
"""Tokens that a summary mostly has, whatever it may have."""
COOLDOWN_S = 60.0
"""After a summary failed, no new one is asked for in this conversation for so long."""


class Compact:
    """Cuts and summarises."""

    name = "compact"
    bypass = "compaction"

    def __init__(
        self,
        settings: Settings,
        *,
        forms: Forms,
        counting: Counting,
        messages: Messages,
        summariser: Summariser,
        memory: MemoryService,
        store: Store,
        tasks: Tasks,
        metrics: Metrics,
    ) -> None:
        self._settings = settings
        self._forms = forms
        self._counting = counting
        self._messages = messages
        self._summariser = summariser
        self._memory = memory
        self._store = store
        self._tasks = tasks
        self._metrics = metrics

    async def run(self, turn: Turn) -> None:
        """Compact where the limits ask for it; start a summary ahead of need."""
        limits = turn.limits
        threshold = min(limits.speculative, limits.soft)
        if turn.count() <= threshold:
            return
        await self._counting.settle(turn)
        if turn.proposal is not None and turn.count() > limits.hard and self._is_cheaper(turn, turn.proposal):
            turn.proposal.commit()
        elif self._able(turn.conversation):
            if turn.count() > limits.hard or (turn.over and self._affords_ready(turn)):
                self._use_ready(turn)
            if turn.count() > limits.hard and not turn.compacted:
                await self._compact_now(turn)
            elif turn.count() > threshold:
                self._speculate(turn)
        elif turn.proposal is not None and turn.proposal.gain() >= limits.min_gain:
            turn.proposal.commit()
        if turn.count() > limits.hard:
            self.force(turn)

    async def to_size(self, turn: Turn, tokens: int) -> bool:
        """Reactive compaction: bring a request that the upstream refused under `tokens`. Whether it did."""
        turn.limits = turn.limits.shrunk_to(tokens)
        await self._counting.settle(turn)
        before = turn.count()
        if before > turn.limits.hard and self._able(turn.conversation):
            await self._compact_now(turn)
        if turn.count() > turn.limits.hard:
            self.force(turn)
        return turn.count() < before

    def force(self, turn: Turn) -> None:
        """What needs no model: skeletons, then eviction of the oldest rounds, then the newest results themselves."""
        target, facts = turn.limits.low, [item.original.facts for item in turn.items]
        proposal = turn.proposal or Proposal(turn, self._forms, self._counting)
        turn.proposal = None
        recent = recent_start(facts, self._settings.microcompact.keep_rounds)
        old = [index for index in turn.standing() if index < recent]
        enough = proposal.add(old, Level.SKELETON, target)
        proposal.commit()
        if enough:
            return
        place = oldest_out(turn, facts, target)
        if place is not None:
            self._evict(turn, place)
        for level in (Level.SNIPPED, Level.SKELETON):
            if turn.count() <= turn.limits.hard:
                return
            proposal.add(turn.standing(), level, turn.limits.hard)
            proposal.commit()
        self._cut_texts(turn)

    def _cut_texts(self, turn: Turn) -> None:
        """The very last resort, where what has to stay word for word is larger than the window itself.

        The largest texts lose their middles, which go to the spill: a cut request is of more use than a refused one.
        """
        replies = (i for i, item in enumerate(turn.items) if item.original.facts.role == "assistant")
        newest = max(replies, default=-1) + 1
        texts = [i for i in turn.standing() if not turn.items[i].original.facts.is_instruction]
        for index in sorted(texts, key=lambda i: -turn.tokens_of(turn.items[i].sent)):
            over = turn.count() - turn.limits.soft
            if turn.count() <= turn.limits.hard:
                return
            item = turn.items[index]
            if turn.record(item).text is not None:
                continue  # never twice: the same request would go out in other bytes
            size = turn.tokens_of(item.sent) * turn.ratio
            share = max(LEAST_LEFT, (size - over) / size * CUT_MARGIN)
            short, gone = self._forms.shortened(item.sent, share)
            if short is item.sent:
                continue
            short = self._forms.with_text(item.sent, short.text)  # as it will be made again from the record
            self._counting.recount(turn, [short])
            turn.put(index, short)
            if index < newest:
                turn.rewrite(i for i in turn.standing() if i < index)
            turn.records[item.chain] = replace(turn.record(item), text=short.text)
            turn.act("cut", 1)
            turn.spilled = True
            for name, text in gone:
                self._tasks.spawn("spill", self._store.put_spill(turn.caller.tenant, name, text))

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
            summary = await asyncio.shield(flight)
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
        if place is None:
            return
        account = turn.conversation.account
        if account.affords(self._stake(turn, place)) or account.imminent(turn, turn.limits.hard):
            self._flight(turn, place)

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

    def _flight(self, turn: Turn, place: Place) -> asyncio.Future[str | None] | None:
        """The summary up to a place being written: one for all the requests that want it."""
        chain = turn.items[place.at].chain
        conversation = turn.conversation
        flight = conversation.flights.get(chain)
        if flight is None:
            task = self._tasks.spawn("compaction", self._write(turn.frozen(), place, chain))
            if task is None:
                return None
            flight = conversation.flights[chain] = task
        return flight

    async def _write(self, turn: Turn, place: Place, chain: bytes) -> str | None:
        conversation = turn.conversation
        try:
            gone = [item.original for item in turn.items[turn.cut_at : place.at]]
            summary, _ = await asyncio.gather(
                self._summariser.summarise(turn, place.at), self._memory.before_forgetting(turn, gone)
            )
        except SummaryFailed as error:
            conversation.failed_at = time.monotonic()
            log.warning("summary failed", request_id=turn.request_id, error=str(error))
            return None
        finally:
            conversation.flights.pop(chain, None)
        conversation.ready[chain] = summary
        prompt = turn.count(turn.outgoing(place.at))
        cached = prompt if self._settings.compaction.model is None and not turn.cold else 0
        conversation.account.spend(prompt, cached, text_tokens(summary))
        return summary

    def _cut(self, turn: Turn, place: Place, summary: str, how: str) -> bool:
        before = turn.count()
        old = (turn.cut, turn.cut_at, turn.summary, dict(turn.mids))
        cut = Cut(summary, place.before, place.after)
        lay(turn, self._messages, place.at, cut)
        if turn.summary is not None:
            self._counting.recount(turn, [turn.summary])
        least = 1 if before > turn.limits.hard else turn.limits.min_gain
        if before - turn.count() < least:
            turn.cut, turn.cut_at, turn.summary, turn.mids = old
            turn.changed()
            return False
        self._remember(turn, place, cut, how)
        return True

    def _evict(self, turn: Turn, place: Place) -> None:
        gone = [
            turn.items[index]
            for index in turn.standing()
            if index < place.at and index not in (*place.before, *place.after)
        ]
        text = "\n\n".join(written(item.original) for item in gone)
        before, old = turn.count(), (turn.cut, turn.cut_at, turn.summary, dict(turn.mids))
        name = spill_id(text) if self._settings.spill.enabled else ""
        tokens = int(sum(turn.tokens_of(item.sent) for item in gone) * turn.ratio)
        line = evicted_message(len(gone), tokens, self._forms.where(name) if name else "")
        summary = turn.cut.summary.split(f"\n\n{EVICTED_LABEL}")[0] if turn.cut and turn.cut.summarised else ""
        text_left = f"{summary}\n\n{line}" if summary else line
        cut = Cut(text_left, place.before, place.after, summarised=bool(summary))
        lay(turn, self._messages, place.at, cut)
        if turn.summary is not None:
            self._counting.recount(turn, [turn.summary])
        if turn.count() >= before:  # the line that says what went is longer than what would go
            turn.cut, turn.cut_at, turn.summary, turn.mids = old
            turn.changed()
            return
        if name:
            turn.spilled = True
            self._tasks.spawn("spill", self._store.put_spill(turn.caller.tenant, name, text))
        self._remember(turn, place, cut, "evicted")

    def _remember(self, turn: Turn, place: Place, cut: Cut, how: str) -> None:
        turn.rewrite(place.before)
        chain = turn.items[place.at].chain
        turn.records[chain] = replace(turn.record(turn.items[place.at]), cut=cut)
        turn.conversation.compacted_at = time.time()
        turn.recount_actions()
        turn.actions[self.name] = how
        turn.proposal, turn.over, turn.compacted = None, False, True
        self._metrics.compactions.labels(how).inc()

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
