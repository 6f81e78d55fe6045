"""From messages to memories: propose, judge, de-duplicate, settle conflicts, write.

The one place where long-term memory is written from a conversation. It runs in the background (scribe) or before old
messages are let go (compaction, `/clear`), never on the way of a request.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from gateway.errors import GatewayError
from gateway.memory import cues
from gateway.memory.commands import parse_command
from gateway.memory.dedupe import decide, entry_key, signature
from gateway.memory.entries import EntryType, MemoryEntry, Trust
from gateway.memory.filters import SUPPORT, Judge, Verdict, find_support
from gateway.memory.proposals import Proposal, extraction_messages, parse_proposals
from gateway.memory.prose import language_of, prose
from gateway.memory.rules import extract_rules
from gateway.memory.session import message_text
from gateway.store.protocol import Candidate, Page
from gateway.store.text import normalised_hash
from gateway.types import ChatMessage

Propose = Callable[[list[dict[str, str]]], Awaitable[str]]
"""Chat messages in, the model's reply text out. Raises GatewayError, OSError (TimeoutError) or ValueError where
it fails.
"""

MAX_ENTRIES = 10_000
"""Per tenant. At a few new facts a day this is years."""
EVICT_SLACK = 0.01
"""Evicted beyond the excess, so that a tenant at its quota is not scanned on every write."""
MAX_TURN_CHARS = 4_000
MAX_WINDOW_CHARS = 24_000
"""About 6,000 tokens of conversation to a cheap model; the newest messages come first."""
NEAR_CANDIDATES = 20
PAGE = 500

_TRUST_ORDER = {Trust.QUARANTINED: 0, Trust.DERIVED: 2, Trust.STATED: 3, Trust.EXPLICIT: 4}
_HISTORY_RANK = 1
"""Superseded entries go after the quarantined and before anything current."""


class ExtractionFailed(Exception):
    """The model failed or answered with no JSON. Nothing was written; the caller keeps the raw messages for a retry."""


class MemoryStore(Protocol):
    """The part of `gateway.store.protocol.Store` used here."""

    async def add(self, entries: Sequence[MemoryEntry]) -> int:
        """As in Store."""
        ...

    async def update(self, tenant: str, id: str, **fields: object) -> MemoryEntry | None:
        """As in Store."""
        ...

    async def delete(self, tenant: str, id: str) -> bool:
        """As in Store."""
        ...

    async def count(self, tenant: str) -> int:
        """As in Store."""
        ...

    async def by_key(self, tenant: str, key: str) -> MemoryEntry | None:
        """As in Store."""
        ...

    async def supersede(self, tenant: str, old_id: str, new_entry: MemoryEntry) -> bool:
        """As in Store."""
        ...

    async def exists_text(self, tenant: str, normalised_hash: str) -> MemoryEntry | None:
        """As in Store."""
        ...

    async def candidates(
        self, tenant: str, terms: Mapping[str, float] | Sequence[str], limit: int, scopes: Sequence[str] = ("long",)
    ) -> list[Candidate]:
        """As in Store."""
        ...

    async def list(
        self,
        tenant: str,
        *,
        include_history: bool = False,
        oldest_first: bool = False,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """As in Store."""
        ...


@dataclass(slots=True)
class ExtractionReport:
    """What one extraction did."""

    kept: list[MemoryEntry] = field(default_factory=list)
    dropped: list[tuple[str, str]] = field(default_factory=list)
    """(kind of proposal, reason); not the text, which may be a secret."""
    quarantined: list[MemoryEntry] = field(default_factory=list)
    merged: int = 0
    """Already remembered."""
    superseded: int = 0
    """Older memories that became history."""
    evicted: int = 0
    """Removed for the tenant's quota."""


@dataclass(frozen=True, slots=True)
class _Source:
    role: str
    text: str
    digest: str


@dataclass(frozen=True, slots=True)
class _Where:
    tenant: str
    project: str
    session: str
    now: float


class Extractor:
    """Extracts memories with `propose` (a cheap model), or by rules where it is None. `max_entries` is the
    quota per tenant.
    """

    def __init__(
        self,
        propose: Propose | None,
        store: MemoryStore,
        count_tokens: Callable[[str], int],
        *,
        judge: Judge | None = None,
        max_entries: int = MAX_ENTRIES,
    ) -> None:
        self._propose = propose
        self._store = store
        self._count = count_tokens
        self._judge = judge or Judge()
        self._max_entries = max_entries

    async def extract(
        self, messages: Sequence[ChatMessage], *, tenant: str, project: str = "", session: str = "", now: float
    ) -> ExtractionReport:
        """Read `messages` (chat completions shape) and write what is worth keeping for `tenant`.

        Only user messages are read by rules, user and assistant messages by a model; tool results, system and
        developer text never.
        `now`: seconds since the epoch, when it was said; an extraction retried later passes the old time and never
        replaces newer memories. Raises ExtractionFailed where the model failed; errors of the store pass as they are.
        """
        where = _Where(tenant, project, session, now)
        sources = await asyncio.to_thread(_sources, messages, self._propose is not None)
        report = ExtractionReport()
        if not sources:
            return report
        if self._propose is None:
            judged = await asyncio.to_thread(self._by_rules, sources)
        else:
            proposals = await self._by_model(sources)
            judged = await asyncio.to_thread(self._judge_all, proposals, sources)
        for proposal, source, verdict in judged:
            await self._settle(proposal, source, verdict, where, report)
        if report.kept or report.quarantined:
            report.evicted = await self._evict(tenant)
        return report

    async def remember(
        self, text: str, *, tenant: str, project: str = "", session: str = "", now: float
    ) -> ExtractionReport:
        """Write one thing that a person explicitly asked to keep (`/save`, REST, command line), trust `explicit`.

        Only secrets (dropped) and attacks or URLs (quarantined) are refused; it supersedes and merges like any other.
        """
        source = _Source("api", text, _digest("api", text))
        found = extract_rules(text)
        proposal = (
            replace(found[0], content=" ".join(text.split()))
            if len(found) == 1
            else Proposal("fact", " ".join(text.split()))
        )
        verdict = await asyncio.to_thread(self._judge.judge, proposal, source_text=text, source_role="api")
        report = ExtractionReport()
        await self._settle(proposal, source, verdict, _Where(tenant, project, session, now), report)
        report.evicted = await self._evict(tenant) if report.kept or report.quarantined else 0
        return report

    # -- proposing and judging ---------------------------------------------------------------------
    def _by_rules(self, sources: Sequence[_Source]) -> list[tuple[Proposal, _Source, Verdict]]:
        return [
            (proposal, source, self._judge.judge(proposal, source_text=source.text, source_role=source.role))
            for source in sources
            for proposal in extract_rules(source.text)
        ]

    async def _by_model(self, sources: Sequence[_Source]) -> list[Proposal]:
        assert self._propose is not None
        turns: list[tuple[str, str]] = []
        room = MAX_WINDOW_CHARS
        for source in reversed(sources):
            text = source.text[:MAX_TURN_CHARS]
            if len(text) > room:
                break
            room -= len(text)
            turns.append((source.role, text))
        try:
            reply = await self._propose(extraction_messages(reversed(turns)))
        except (GatewayError, OSError, ValueError) as error:
            raise ExtractionFailed(f"the model failed: {error}") from error
        proposals = parse_proposals(reply)
        if proposals is None:
            raise ExtractionFailed("the model's reply held no JSON")
        return proposals

    def _judge_all(
        self, proposals: Sequence[Proposal], sources: Sequence[_Source]
    ) -> list[tuple[Proposal, _Source, Verdict]]:
        judged: list[tuple[Proposal, _Source, Verdict]] = []
        for proposal in proposals:
            source = _origin(proposal, sources)
            verdict = self._judge.judge(proposal, source_text=source.text, source_role=source.role)
            if verdict.keep and source.role == "assistant" and not _names_us(proposal):
                verdict = Verdict("drop", "the assistant's own words")
            judged.append((proposal, source, verdict))
        return judged

    # -- writing -----------------------------------------------------------------------------------
    async def _settle(
        self, proposal: Proposal, source: _Source, verdict: Verdict, where: _Where, report: ExtractionReport
    ) -> None:
        """Write one judged proposal, or note why not."""
        if verdict.outcome == "drop":
            report.dropped.append((proposal.kind, verdict.reason))
            return
        entry = self._entry(proposal, source, verdict, where)
        if verdict.outcome == "quarantine":
            if await self._store.exists_text(where.tenant, normalised_hash(entry.content)) is None:
                await self._store.add([entry])
                report.quarantined.append(entry)
            return
        merge = decide(proposal, await self._related(proposal, entry, where), where.project)
        if merge.outcome == "same" or any(old.valid_from > where.now for old in merge.old):
            report.merged += 1
            return
        if source.role == "assistant" and any(old.trust in (Trust.EXPLICIT, Trust.STATED) for old in merge.old):
            report.dropped.append((proposal.kind, "the user said otherwise"))
            return
        report.superseded += await self._write(entry, merge.old, where)
        report.kept.append(entry)

    async def _related(self, proposal: Proposal, entry: MemoryEntry, where: _Where) -> list[MemoryEntry]:
        """Current entries that the new one may repeat or replace: by key, by text, and by words. Quarantined
        ones never count.
        """
        found: dict[str, MemoryEntry] = {}
        direct = [await self._store.exists_text(where.tenant, normalised_hash(entry.content))]
        if entry.key:
            direct.append(await self._store.by_key(where.tenant, entry.key))
        words = sorted(signature(f"{proposal.content} {proposal.replaces}")[0])
        near = (
            await self._store.candidates(
                where.tenant, await asyncio.to_thread(_terms, words), NEAR_CANDIDATES, scopes=("long",)
            )
            if words
            else []
        )
        for old in (*direct, *(candidate.entry for candidate in near)):
            if old is not None and old.scope == "long" and old.trust is not Trust.QUARANTINED:
                found.setdefault(old.id, old)
        return list(found.values())

    async def _write(self, entry: MemoryEntry, replaced: Sequence[MemoryEntry], where: _Where) -> int:
        """Write `entry`, and make history of those it replaces; returns how many."""
        written, count = False, 0
        for old in replaced:
            if not written:
                written = await self._store.supersede(where.tenant, old.id, entry)
                count += written
            elif await self._store.update(where.tenant, old.id, valid_to=where.now, superseded_by=entry.id) is not None:
                count += 1
        if not written:
            await self._store.add([entry])
        return count

    def _entry(self, proposal: Proposal, source: _Source, verdict: Verdict, where: _Where) -> MemoryEntry:
        key, value = entry_key(proposal, where.project) if verdict.keep else ("", "")
        trust = Trust.EXPLICIT if source.role == "api" else Trust.STATED if source.role == "user" else Trust.DERIVED
        return MemoryEntry(
            id=uuid.uuid4().hex,
            tenant=where.tenant,
            content=proposal.content,
            type=EntryType.PREFERENCE if proposal.kind == "preference" else EntryType.FACT,
            timestamp=where.now,
            token_count=self._count(proposal.content),
            project=where.project,
            session=where.session,
            source_role=source.role,
            language=proposal.language or language_of(proposal.content),
            message_hash=source.digest,
            trust=trust if verdict.keep else Trust.QUARANTINED,
            key=key,
            value=value,
            aliases=proposal.aliases,
            valid_from=where.now,
            metadata={} if verdict.keep else {"quarantine": verdict.reason},
        )

    async def _evict(self, tenant: str) -> int:
        """Keep the tenant within its quota: the least trusted go first, of these the oldest."""
        excess = await self._store.count(tenant) - self._max_entries
        if excess <= 0:
            return 0
        ranked: list[tuple[int, float, str]] = []
        cursor: str | None = None
        while True:
            page = await self._store.list(tenant, include_history=True, oldest_first=True, limit=PAGE, cursor=cursor)
            for entry in page.entries:
                rank = _HISTORY_RANK if entry.valid_to is not None else _TRUST_ORDER[entry.trust]
                ranked.append((min(rank, _TRUST_ORDER[entry.trust]), entry.timestamp, entry.id))
            cursor = page.cursor
            if cursor is None:
                break
        ranked.sort()
        gone = 0
        for _, _, id in ranked[: excess + int(self._max_entries * EVICT_SLACK)]:
            gone += await self._store.delete(tenant, id)
        return gone


def _sources(messages: Sequence[ChatMessage], with_assistant: bool) -> list[_Source]:
    roles = ("user", "assistant") if with_assistant else ("user",)
    found: list[_Source] = []
    for message in messages:
        role = message.get("role")
        if role not in roles:
            continue
        raw = message_text(message)
        text = prose(raw) if parse_command(raw) is None else ""
        if text.strip():
            found.append(_Source(str(role), text, _digest(str(role), raw)))
    return found


def _digest(role: str, text: str) -> str:
    return hashlib.blake2b(f"{role}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _origin(proposal: Proposal, sources: Sequence[_Source]) -> _Source:
    """The message a proposal was drawn from: the user's where one supports it, else the assistant's, else the
    newest of the user.
    """
    for role in ("user", "assistant"):
        of_role = [source for source in sources if source.role == role]
        scored = [(find_support(proposal, source.text)[1], i) for i, source in enumerate(of_role)]
        if scored and max(scored)[0] >= SUPPORT:
            return of_role[max(scored)[1]]
    users = [source for source in sources if source.role == "user"]
    return users[-1] if users else sources[-1]


def _names_us(proposal: Proposal) -> bool:
    """A model's note about the user or the project; an assistant's "I" is not the user."""
    named = re.search(
        r"\buser\b|\b(?:project|repo(?:sitory)?|team|codebase)\b|用户|项目|团队",
        f"{proposal.subject} {proposal.content}",
        re.IGNORECASE,
    )
    return named is not None and cues.is_about_us(proposal.content)


def _terms(words: Sequence[str]) -> list[str]:
    """Index terms for a search by words."""
    from gateway.memory.tokenise import terms

    return list(dict.fromkeys(terms(" ".join(words))))
