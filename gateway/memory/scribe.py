"""Reads what has been said once a request is answered: usage, facts, the session's notes. Always beside the request."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Sequence

import structlog
from prometheus_client import Counter

from gateway.body import as_object, decode
from gateway.conversation import Conversation
from gateway.forward import Answer
from gateway.memory.entries import EntryType, MemoryEntry, Trust
from gateway.memory.service import Source
from gateway.memory.session import project_entry, session_entries
from gateway.memory.working import WorkingMemory, read_plan
from gateway.services import Services
from gateway.store.protocol import Pending
from gateway.tokens.fast import text_tokens
from gateway.turn import Turn
from gateway.types import ChatMessage
from gateway.upstream.usage import Usage

log = structlog.get_logger(__name__)

LOOK_BACK = 20
"""Messages read at most at once of a conversation that the scribe has not met before."""
SESSION_IDLE_S = 900.0
"""A session that has been silent for so long is finished: its notes become one entry of the project."""
TOUCH_EVERY_S = 30.0
"""Between two notes in the store that a session is alive."""
SWEEP_EVERY_S = 60.0
RETRIES_MOST = 5
"""Attempts at an extraction that failed, before its messages are given up."""
PARSE_INLINE = 64 * 1024
"""Bytes; a longer reply is parsed in a thread."""


class Scribe:
    """Owns the background work on what was said."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._settings = services.settings.memory
        self._counters: dict[tuple[str, str], list[Counter]] = {}
        self._sweeper: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin sweeping for sessions that have ended and extractions that failed."""
        self._sweeper = asyncio.create_task(self._sweep(), name="sweep")

    async def stop(self) -> None:
        """Stop sweeping; what is under way belongs to `Tasks` and is drained there."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)

    def after(self, turn: Turn, answer: Answer) -> None:
        """Take note of an answered turn. Never blocks, never raises."""
        if answer.status == 200:
            self._services.tasks.spawn("scribe", self._read(turn, answer))

    async def _read(self, turn: Turn, answer: Answer) -> None:
        size = answer.copied
        usage = await asyncio.to_thread(answer.usage) if size > PARSE_INLINE else answer.usage()
        if usage is not None:
            await self._account(turn, usage)
        if self._settings.enabled and not turn.bypass & {"all", "memory"}:
            await self._remember(turn)

    async def _account(self, turn: Turn, usage: Usage) -> None:
        s = self._services
        route, model = turn.route.name, s.router.label(turn.model)
        counters = self._counters.get((route, model))
        if counters is None:
            kinds = ("prompt", "cached", "completion")
            counters = [s.metrics.usage.labels(route, model, kind) for kind in kinds]
            self._counters[route, model] = counters
        for counter, tokens in zip(
            counters, (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens), strict=True
        ):
            if tokens:
                counter.inc(tokens)
        if usage.prompt_tokens and "all" not in turn.bypass:
            s.counting.observe(turn, usage.prompt_tokens)
            s.metrics.calibration.labels(route, model).set(s.counting.calibration.ratio(route, turn.model))
        await self._spend(turn, usage)

    async def _spend(self, turn: Turn, usage: Usage) -> None:
        key = turn.caller.key
        if key is None or key.budget_usd is None or (price := self._services.router.price(turn.route)) is None:
            return
        cached = usage.cached_tokens or 0
        usd = (
            max(0, (usage.prompt_tokens or 0) - cached) * price.input
            + cached * (price.cached if price.cached is not None else price.input)
            + (usage.completion_tokens or 0) * price.output
        )
        month = time.strftime("%Y-%m", time.gmtime())
        total = await self._services.store.add_spend(turn.caller.key_hash, month, usd)
        self._services.gatekeeper.spent(turn.caller, month, total)

    async def _remember(self, turn: Turn) -> None:
        conversation = turn.conversation
        start = max(conversation.scribed, len(turn.items) - LOOK_BACK)
        fresh = [item.original for item in turn.items[start:]]
        conversation.scribed = max(conversation.scribed, len(turn.items))
        if not fresh:
            return
        users = sum(1 for message in fresh if message.facts.role == "user")
        conversation.user_turns += users
        await self._plan(turn, [message.data for message in fresh if message.facts.calls])
        if users and self._settings.model is None:
            await self._services.memory.extract([m.data for m in fresh if m.facts.role == "user"], turn=turn)
        elif self._settings.model is not None and self._is_due(conversation, turn):
            conversation.extracted_turns = conversation.user_turns
            recent = turn.items[-2 * LOOK_BACK :]
            told = [item.original.data for item in recent if item.original.facts.role in ("user", "assistant")]
            await self._services.memory.extract(told, turn=turn, with_model=True)
        if users or conversation.user_turns % self._settings.every_turns == 0:
            await self._note(turn, [message.data for message in fresh])
        await self._services.memory.embed_new(turn.caller.tenant)

    def _is_due(self, conversation: Conversation, turn: Turn) -> bool:
        waited = conversation.user_turns - conversation.extracted_turns
        return waited >= self._settings.every_turns or (waited > 0 and turn.tokens_after > turn.limits.soft)

    async def _plan(self, turn: Turn, messages: Sequence[ChatMessage]) -> None:
        """The agent's own plan tool, read into the working memory."""
        steps = None
        for message in messages:
            for call in message.get("tool_calls") or ():
                function = as_object(as_object(call).get("function"))
                found = read_plan(str(function.get("name") or ""), function.get("arguments") or "")
                steps = found if found is not None else steps
        if steps is None:
            return
        store, tenant = self._services.store, turn.caller.tenant
        raw = await store.get_working(tenant, turn.session)
        memory = WorkingMemory.loads(raw) if raw else WorkingMemory()
        memory.steps = steps
        await store.set_working(tenant, turn.session, memory.dumps())

    async def _note(self, turn: Turn, messages: Sequence[ChatMessage]) -> None:
        store, tenant, now = self._services.store, turn.caller.tenant, time.time()
        if now - turn.conversation.touched_at > TOUCH_EVERY_S:
            turn.conversation.touched_at = now
            first = next((i.original for i in turn.items if i.original.facts.role == "user"), None)
            title = first.text[:80] if first is not None else ""
            await store.touch_session(tenant, turn.session, turn.project, turn.conversation.user_turns, title, now)
        if not turn.project:
            return
        entries = [
            MemoryEntry(
                id=uuid.uuid4().hex,
                tenant=tenant,
                content=f"{tag} {text}",
                type=EntryType.TASK,
                timestamp=now,
                token_count=text_tokens(text),
                project=turn.project,
                session=turn.session,
                scope="session",
                source_role="assistant",
                trust=Trust.DERIVED,
            )
            for tag, text in session_entries(messages)
        ]
        if entries:
            await store.add(entries)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_EVERY_S)
            for work in (self._finish_idle, self._retry_pending, self._prune):
                try:
                    await work()
                except Exception as error:  # noqa: BLE001 - one sweep that fails must not end all later ones
                    log.warning("sweep failed", work=work.__name__, error=type(error).__name__)

    async def _finish_idle(self) -> None:
        store = self._services.store
        for tenant, session in await store.idle_sessions(time.time() - SESSION_IDLE_S):
            await self.finish(tenant, session)

    async def finish(self, tenant: str, session: str) -> None:
        """End a session: its notes become one entry of its project."""
        store = self._services.store
        known = {s.id: s for s in await store.sessions(tenant)}
        if not await store.finish_session(tenant, session):
            return
        page = await store.list(tenant, scope="session", session=session, oldest_first=True, limit=200)
        about = known.get(session)
        if not page.entries or about is None or not about.project:
            return
        notes = [tagged(entry.content) for entry in page.entries]
        text = project_entry(about.title, notes)
        await store.add(
            [
                MemoryEntry(
                    id=uuid.uuid4().hex,
                    tenant=tenant,
                    content=text,
                    type=EntryType.SUMMARY,
                    timestamp=time.time(),
                    token_count=text_tokens(text),
                    project=about.project,
                    session=session,
                    scope="project",
                    source_role="assistant",
                    trust=Trust.DERIVED,
                )
            ]
        )

    async def _retry_pending(self) -> None:
        for pending in await self._services.store.take_pending(10):
            if await self._retried(pending) or pending.attempts >= RETRIES_MOST:
                await self._services.store.drop_pending(pending.id)

    async def _retried(self, pending: Pending) -> bool:
        data = as_object(decode(pending.payload))
        source = Source(pending.tenant, pending.session, str(data.get("project") or ""))
        said = float(data.get("said") or pending.created)
        report = await self._services.memory.extract_from(data.get("messages") or [], source, now=said)
        await self._services.memory.embed_new(pending.tenant)
        return report is not None

    async def _prune(self) -> None:
        spill = self._services.settings.spill
        await self._services.store.prune_spill(spill.max_mb * 1024 * 1024, spill.max_age_days * 86_400)


def tagged(content: str) -> tuple[str, str]:
    """A session note as (tag, text): `[FILE] edited a.py` is (`[FILE]`, `edited a.py`)."""
    tag, _, text = content.partition(" ")
    return tag, text
