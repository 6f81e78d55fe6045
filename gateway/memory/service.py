"""Memory as the request path sees it: recall, render, extract; none of which may ever fail a request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import structlog

from gateway.body import encode
from gateway.errors import GatewayError
from gateway.memory import tokenise
from gateway.memory.embedding import embedder_of
from gateway.memory.entries import EntryType, MemoryEntry, Trust
from gateway.memory.extract import ExtractionFailed, ExtractionReport, Extractor
from gateway.memory.filters import Judge
from gateway.memory.render import render_block
from gateway.memory.retrieve import Retriever
from gateway.memory.vectors import FAILURES, VectorIndex
from gateway.memory.working import WorkingMemory
from gateway.message import Message, Recent
from gateway.metrics import Metrics
from gateway.settings import Settings
from gateway.store.protocol import Store
from gateway.tokens.fast import text_tokens
from gateway.turn import Turn
from gateway.types import ChatMessage
from gateway.upstream.http import Headers
from gateway.upstream.pool import Upstreams
from gateway.upstream.reply import Reply
from gateway.upstream.routes import Router

log = structlog.get_logger(__name__)

PREFERENCES_MOST = 30
HISTORY_MOST = 5
HISTORY_TOKENS = 1_500
"""`[Project History]`: the newest 3–5 sessions, 500–1,500 tokens."""
WORKING_TOKENS = 400
PEOPLE_KEPT = 2_000
PERSON_S = 1.0
"""How late what another process wrote may be seen; what this one wrote is seen at once."""
EXTRACT_S = 2.0
"""Facts are taken before a compaction drops messages; slower extraction is finished later, from what was put aside."""

EMBED_BATCHES = 20
"""Of `vectors.CATCH_UP` entries each, after one writing."""
EMBED_S = 30.0
"""For one batch."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a recall found: (id, line) pairs by part of the block."""

    preferences: tuple[tuple[str, str], ...] = ()
    history: tuple[tuple[str, str], ...] = ()
    retrieved: tuple[tuple[str, str], ...] = ()
    working: str = ""

    @property
    def ids(self) -> tuple[str, ...]:
        """Of everything found."""
        return tuple(name for name, _ in (*self.preferences, *self.history, *self.retrieved))

    def only(self, ids: Sequence[str]) -> Recalled:
        """The part of it that has these ids."""
        wanted = frozenset(ids)

        def kept(pairs: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
            return tuple(pair for pair in pairs if pair[0] in wanted)

        return replace(
            self,
            preferences=kept(self.preferences),
            history=kept(self.history),
            retrieved=kept(self.retrieved),
            working="",
        )


NOTHING = Recalled()


@dataclass(slots=True)
class _Person:
    """A tenant's standing memory, as it was read at `read_at` (monotonic)."""

    changes: int
    read_at: float
    is_empty: bool
    preferences: tuple[tuple[str, str], ...]
    working: dict[str, str]
    """Rendered, by session."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where something was said: whose, in which session, about which project."""

    tenant: str
    session: str = ""
    project: str = ""


class MemoryService:
    """The memory of all tenants."""

    def __init__(
        self, settings: Settings, store: Store, router: Router, upstreams: Upstreams, metrics: Metrics
    ) -> None:
        self._settings = settings.memory
        self._store = store
        self._router = router
        self._upstreams = upstreams
        self._metrics = metrics
        embedder = embedder_of(self._settings.embeddings, upstreams) if self._settings.enabled else None
        self._vectors = VectorIndex(embedder) if embedder is not None else None
        self._embedding: set[str] = set()
        self.retriever = Retriever(store, self._vectors)
        self._people: Recent[str, _Person] = Recent(PEOPLE_KEPT)
        self._judge = Judge()
        self._locks: dict[str, asyncio.Lock] = {}

    def warm(self) -> None:
        """Load jieba's dictionary, and a local model for embeddings; slow, for a thread."""
        tokenise.warm()
        self._judge.warm()
        if self._vectors is not None:
            try:
                self._vectors.warm()
            except FAILURES as error:
                self._vectors.failed(error)

    async def embed_new(self, tenant: str) -> None:
        """Give vectors to a tenant's entries that have none, in the background after writing. Never raises.

        A few batches at most, and one such work for a tenant at a time: what is left is done after the next writing.
        """
        vectors = self._vectors
        if vectors is None or vectors.resting or tenant in self._embedding:
            return
        self._embedding.add(tenant)
        try:
            for _ in range(EMBED_BATCHES):
                async with asyncio.timeout(EMBED_S):
                    if not await vectors.catch_up(self._store, tenant):
                        return
        except FAILURES as error:
            vectors.failed(error)
        finally:
            self._embedding.discard(tenant)

    def knows_nothing(self, tenant: str) -> bool:
        """Whether the tenant is known, at once, to have no memory at all."""
        lock = self._locks.get(tenant)
        known = self._people.get(tenant)
        return (
            known is not None
            and known.is_empty
            and known.changes == self._store.changes(tenant)
            and time.monotonic() - known.read_at < PERSON_S
            and not (lock is not None and lock.locked())
        )

    async def recall(self, tenant: str, query: str, *, project: str, session: str) -> Recalled:
        """What is worth telling about this tenant now: preferences, the project's history, what the query brings up."""
        lock = self._locks.get(tenant)
        if lock is not None and lock.locked():
            async with lock:  # what was said a moment ago is still being written down
                pass
        person = await self._person(tenant)
        if person.is_empty:
            return NOTHING
        preferences = person.preferences
        history = await self._history(tenant, project)
        working = await self._working(person, tenant, session)
        hits = await self.retriever.build_context(
            tenant, query, max_tokens=self._settings.max_tokens, top_k=self._settings.top_k, project=project
        )
        known = {name for name, _ in preferences}
        retrieved = tuple((e.id, e.content) for e in hits if e.id not in known and e.session != session)
        return Recalled(preferences, history, retrieved, working)

    def render(self, recalled: Recalled, room: int) -> str:
        """The block, in at most `room` tokens; empty where there is nothing to say."""
        return render_block(
            [line for _, line in recalled.preferences],
            [line for _, line in recalled.history],
            [line for _, line in recalled.retrieved],
            recalled.working,
            max_tokens=room,
            count=_line_tokens,
        )

    async def extract(
        self, messages: Sequence[ChatMessage], *, turn: Turn, with_model: bool = False
    ) -> ExtractionReport | None:
        """Take lasting facts from messages; None where that failed, and the messages are put aside for later."""
        source = Source(turn.caller.tenant, turn.session, turn.project)
        report = await self.extract_from(messages, source, headers=turn.headers if with_model else None)
        if report is None:
            await self._put_aside(source, messages)
        return report

    async def extract_from(
        self,
        messages: Sequence[ChatMessage],
        source: Source,
        *,
        headers: Headers | None = None,
        now: float | None = None,
    ) -> ExtractionReport | None:
        """The same for messages that came by another way; with `headers` (the caller's) the memory model is asked."""
        propose = self._proposer(headers) if headers is not None and self._settings.model else None
        lock = self._locks.setdefault(source.tenant, asyncio.Lock())
        try:
            async with lock:
                report = await Extractor(
                    propose, self._store, text_tokens, judge=self._judge, max_entries=self._store.limits.max_entries
                ).extract(
                    messages,
                    tenant=source.tenant,
                    project=source.project,
                    session=source.session,
                    now=time.time() if now is None else now,
                )
        except ExtractionFailed as error:
            self._metrics.memories.labels("failed").inc()
            log.warning("extraction failed", error=str(error))
            return None
        finally:
            if not lock.locked():
                self._locks.pop(source.tenant, None)
        self._counted(report)
        return report

    async def remember(self, text: str, source: Source) -> ExtractionReport:
        """Write one thing that a person asked to keep."""
        report = await Extractor(
            None, self._store, text_tokens, judge=self._judge, max_entries=self._store.limits.max_entries
        ).remember(text, tenant=source.tenant, project=source.project, session=source.session, now=time.time())
        self._counted(report)
        return report

    def _counted(self, report: ExtractionReport) -> None:
        counts = {
            "kept": len(report.kept),
            "merged": report.merged,
            "superseded": report.superseded,
            "dropped": len(report.dropped),
            "quarantined": len(report.quarantined),
        }
        for outcome, count in counts.items():
            if count:
                self._metrics.memories.labels(outcome).inc(count)

    async def before_forgetting(self, turn: Turn, gone: Sequence[Message]) -> None:
        """Facts before forgetting: what is to be dropped is read first, or put aside for a retry. Never raises."""
        if not self._settings.enabled or turn.bypass & {"all", "memory"}:
            return
        messages = [message.data for message in gone if message.facts.role in ("user", "assistant")]
        if not messages:
            return
        try:
            async with asyncio.timeout(
                EXTRACT_S if self._settings.model is None else self._settings.recall_timeout_s * 15
            ):
                await self.extract(messages, turn=turn, with_model=True)
        except Exception as error:  # noqa: BLE001 - a compaction must not fail for a memory; the text is put aside
            log.warning("extraction before compaction failed", request_id=turn.request_id, error=type(error).__name__)
            await self._put_aside(Source(turn.caller.tenant, turn.session, turn.project), messages)

    async def _put_aside(self, source: Source, messages: Sequence[ChatMessage]) -> None:
        payload = encode({"project": source.project, "said": time.time(), "messages": list(messages)})
        try:
            await self._store.add_pending(source.tenant, source.session, payload)
        except GatewayError as error:
            log.error("messages could not be put aside", error=error.message)

    def _proposer(self, headers: Headers) -> Callable[[list[dict[str, str]]], Awaitable[str]]:
        async def propose(messages: list[dict[str, str]]) -> str:
            assert self._settings.model is not None
            route = self._router.routes(self._settings.model)[0]
            body = encode({"model": route.model, "messages": messages})
            status, raw = await self._upstreams.complete(route, headers, body)
            if status != 200:
                raise ExtractionFailed(f"the memory model answered with status {status}")
            return Reply.from_json(raw).text

        return propose

    async def _preferences(self, tenant: str) -> tuple[tuple[str, str], ...]:
        page = await self._store.list(tenant, type=EntryType.PREFERENCE, oldest_first=True, limit=PREFERENCES_MOST)
        return tuple((e.id, e.content) for e in page.entries if _live(e))

    async def _history(self, tenant: str, project: str) -> tuple[tuple[str, str], ...]:
        if not project:
            return ()
        page = await self._store.list(tenant, scope="project", project=project, limit=HISTORY_MOST)
        found: list[tuple[str, str]] = []
        room = HISTORY_TOKENS
        for entry in page.entries:
            room -= text_tokens(entry.content)
            if room < 0:
                break
            if _live(entry):
                found.append((entry.id, entry.content))
        return tuple(found)

    async def _working(self, person: _Person, tenant: str, session: str) -> str:
        found = person.working.get(session)
        if found is None:
            raw = await self._store.get_working(tenant, session)
            found = person.working[session] = WorkingMemory.loads(raw).render(WORKING_TOKENS) if raw else ""
        return found

    async def _person(self, tenant: str) -> _Person:
        """What is the same for every recall of a tenant, read again once it has changed here or may have elsewhere."""
        changes, now = self._store.changes(tenant), time.monotonic()
        known = self._people.get(tenant)
        if known is not None and known.changes == changes and now - known.read_at < PERSON_S:
            return known
        is_empty = await self._store.is_empty(tenant)
        found = _Person(changes, now, is_empty, () if is_empty else await self._preferences(tenant), {})
        self._people.put(tenant, found)
        return found


def _live(entry: MemoryEntry) -> bool:
    return entry.trust is not Trust.QUARANTINED and entry.valid_to is None


@lru_cache(maxsize=8_192)
def _line_tokens(text: str) -> int:
    """Tokens of a line of the block: the same few lines are counted again and again."""
    return text_tokens(text)
