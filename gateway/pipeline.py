"""The request path: which stages a turn goes through, in which order, and what happens when one of them fails.

A request is read into a `Turn` (`intake.py`), goes through the stages below from top to bottom, is forwarded
(`api/chat.py`), and what came back is read on the side by the scribe (`memory/scribe.py`). A stage that fails is
skipped: the request goes on as if it were off. If what the stages made is not sound, the client's own bytes are sent.
"""

from __future__ import annotations

import asyncio
import time

import structlog

from gateway.forcing import Forcing
from gateway.intake import recall_cut
from gateway.repeating import Repeats
from gateway.rounds import pairs_whole
from gateway.services import Services
from gateway.stages.base import Stage
from gateway.stages.compact import Compact
from gateway.stages.dialect import Dialect
from gateway.stages.fold import Fold
from gateway.stages.heal import Heal
from gateway.stages.inject import Inject
from gateway.stages.microcompact import Microcompact
from gateway.stages.offer import Offer
from gateway.stages.recall import Recall
from gateway.stages.remember import Remember
from gateway.stages.repeat import Repeat
from gateway.stages.snip import Snip
from gateway.stages.spill import Spill
from gateway.turn import Turn

log = structlog.get_logger(__name__)


def build(services: Services) -> list[Stage]:
    """The stages, in the order in which they run."""
    s, settings = services, services.settings
    repeats = Repeats()
    forcing = Forcing(settings, s.forms, s.counting, s.messages, s.store, s.tasks, s.metrics)
    compact = Compact(
        settings,
        forcing=forcing,
        counting=s.counting,
        summariser=s.summariser,
        memory=s.memory,
        tasks=s.tasks,
        metrics=s.metrics,
    )
    offer = Offer(settings.spill, s.counting)
    return [
        Recall(settings.memory, s.memory, s.messages, s.tasks),  # starts looking for memories, beside all that follows
        Fold(settings.fold, s.forms),  # tier 0: lossless, at first sight
        Spill(settings.spill, s.forms, s.store, s.tasks, s.spilled),  # tier 1: a tool result's budget, at first sight
        offer,  # the tool that reads spilled texts back, counted before the limits are looked at
        Remember(s.forms),  # what earlier turns decided, again
        Repeat(settings.fold, s.forms, repeats),  # a new result that an earlier one already holds
        Snip(settings.snip, settings.limits, settings.protected_tools, s.forms, s.counting),  # tier 2
        Microcompact(settings.microcompact, settings.protected_tools),  # tier 3
        compact,  # tier 4: the summary, else eviction
        offer,  # again, for what eviction has put into the spill
        Heal(s.forms, repeats, s.counting, forcing),  # pointers to what was shrunk; a last look at the limit
        offer,  # once more: that look may have put something into the spill
        Inject(settings.injection, s.memory, s.messages, s.metrics),  # memory into the system message
        Dialect(s.messages),  # what this upstream's chat template needs
    ]


class Pipeline:
    """Runs the stages over a turn."""

    def __init__(self, services: Services) -> None:
        self.stages = build(services)
        self._services = services

    async def run(self, turn: Turn) -> bytes:
        """The body to send upstream."""
        if "all" in turn.bypass:
            return turn.body.raw
        started = time.perf_counter()
        if "compaction" not in turn.bypass:
            recall_cut(self._services, turn)
        try:
            for stage in self.stages:
                if (stage.bypass and stage.bypass in turn.bypass) or self._skips(stage, turn):
                    continue
                await self._guarded(stage, turn)
        finally:
            if turn.recall is not None:  # the client has gone, or the stage that waits for it is off
                turn.recall.cancel()
                turn.recall = None
        body = self._checked(turn)
        self._services.metrics.stage_seconds.observe(time.perf_counter() - started)
        return body

    async def again(self, turn: Turn, tokens: int) -> bytes | None:
        """The body made smaller after the upstream found it too long; None where nothing can be made smaller."""
        if turn.bypass & {"all", "compaction"}:
            return None
        compact = next(stage for stage in self.stages if isinstance(stage, Compact))
        try:
            if not await compact.to_size(turn, tokens):
                return None
            await self._only(turn, Offer, Heal, Inject, Dialect)
        except Exception as error:  # noqa: BLE001 - as in `_guarded`
            self._failed(compact.name, turn, error)
            return None
        return self._checked(turn)

    async def rendered(self, turn: Turn) -> bytes:
        """The body as the turn stands, for another upstream than the one it was made for."""
        await self._only(turn, Dialect)
        return self._checked(turn)

    async def next_round(self, turn: Turn) -> bytes:
        """The body with what the gateway itself has added to the turn since the last one."""
        await self._only(turn, Dialect)
        outgoing = turn.outgoing() if turn.dialect is None else turn.dialect
        turn.tokens_after = turn.count(outgoing)
        return turn.body.rebuild([message.raw for message in outgoing], turn.changes)

    async def _only(self, turn: Turn, *kinds: type) -> None:
        """Run these stages once more, in their order."""
        for stage in self.stages:
            if isinstance(stage, kinds) and not self._skips(stage, turn):
                await self._guarded(stage, turn)

    def _skips(self, stage: Stage, turn: Turn) -> bool:
        try:
            return stage.skips(turn)
        except Exception as error:  # noqa: BLE001 - as in `_guarded`
            self._failed(stage.name, turn, error)
            return True

    async def _guarded(self, stage: Stage, turn: Turn) -> None:
        try:
            await stage.run(turn)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a stage does, the request goes on
            self._failed(stage.name, turn, error)

    def _failed(self, name: str, turn: Turn, error: Exception) -> None:
        turn.failures.append(name)
        self._services.metrics.stage_failures.labels(name).inc()
        log.warning(
            "stage failed, request goes on without it",
            stage=name,
            request_id=turn.request_id,
            error=type(error).__name__,
            exc_info=error if log.is_enabled_for(10) else None,
        )

    def _checked(self, turn: Turn) -> bytes:
        """The rendered body; the client's own where a stage broke what was whole."""
        outgoing = turn.outgoing() if turn.dialect is None else turn.dialect
        if turn.cut is not None and not pairs_whole([message.facts for message in outgoing]):
            originals = [item.original.facts for item in turn.items]
            if pairs_whole(originals):
                self._failed("check", turn, ValueError("a call was parted from its reply"))
                turn.records.clear()
                turn.actions.clear()
                turn.news.clear()
                turn.offered = False
                turn.changes.pop("tools", None)
                return turn.body.raw
        turn.tally()
        turn.tokens_after = turn.count() if turn.dialect is None else turn.count(outgoing)
        if turn.encoding:  # what was not sent has no exact count: its estimate errs as that of what was sent
            estimated = sum(message.facts.tokens for message in outgoing)
            exact = sum(map(turn.tokens_of, outgoing))
            turn.tokens_before = turn.calibrated(int(turn.before_tokens * exact / estimated + 0.5))
        turn.conversation.account.settle(turn, warm=turn.idle_s <= self._services.settings.limits.cache_ttl_s)
        self._services.conversations.decide(turn.conversation, turn.records)
        self._services.prefixes.keep(turn)
        return turn.body.rebuild([message.raw for message in outgoing], turn.changes)
