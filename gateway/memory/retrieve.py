"""Finding what is worth remembering now: a score over the candidates that the store's index gives.

Two uses. `retrieve` answers a search over short- and long-term memory and ranks whatever has anything to do with the
query. `build_context` chooses what goes into a prompt nobody asked to be added to: long-term memory only, and only what
passes a floor of relevance, since a wrong memory costs more than a missing one.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gateway.memory.asked import asked_keys
from gateway.memory.entries import EntryType, MemoryEntry, Trust
from gateway.memory.tokenise import query_terms, strength, weighted_terms

if TYPE_CHECKING:
    from gateway.memory.vectors import VectorIndex
    from gateway.store.protocol import Candidate, Store

LONG_TERM = ("long",)
ALL_SCOPES = ("long", "session", "project")
LONG_TERM_FACTOR = 1.2
DECAY_HALF_S = 86_400.0
"""Age at which the time decay has fallen from 1.0 to its floor."""
DECAY_FLOOR = 0.5
SPEAKER_FACTOR = 1.1
"""An entry said by the very person that the query names."""
POOL = 50
"""Candidates scored for one answer, or four times what is asked for: decay and factors reorder no deeper than that."""
MIN_SUBSTRING = 2
"""Characters a query needs to count as found where it is a substring."""

MAX_SUBSTRING = 80

FLOOR_QUERY_SHARE = 0.34
FLOOR_ENTRY_SHARE = 0.3
"""Into a prompt goes what holds a third of what the query asks, or has near a third of its own words named by the query
(a long message names much else besides), weak words discounted. Measured in docs/memory-bench.md."""
LONG_QUERY = 20.0
FLOOR_DOUBLES_AFTER = 4.0
FLOOR_ENTRY_SHARE_MOST = 0.6
"""The more a message names, the more it names by chance: past 20 words the entry's share must grow, to twice at 320
words."""
FLOOR_WEIGHT = 0.5
"""And at least so much in common that isn't weak: one word, or one Chinese character that is a word."""
FUSION_K = 10.0
"""Reciprocal rank fusion: the head of a ranking counts twice its eleventh place."""
RELATIVE_FLOOR = 0.35
"""And no less than this share of the best one's score."""
CONVERSATION_FLOOR = 0.4
"""Or is a turn of a conversation that was about it: its surroundings hold two fifths of what was asked. A fact stands
for itself."""
LOOKED_AT = 3
"""Times `top_k`: how far down the ranking the floor is tried."""
MAX_QUERY_CHARS = 4_000
"""Of a long message the head and the tail are the question; the middle is what was pasted."""
CHARS_PER_TOKEN = 3
"""For an entry that came without a token count: on the safe side for English."""
ENTRY_OVERHEAD_TOKENS = 2
"""A bullet and a line break in the prompt."""


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry found, with its score: 0..1.2, comparable within one answer only."""

    entry: MemoryEntry
    score: float


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate on its way to being a hit."""

    entry: MemoryEntry
    score: float
    text_score: float
    """The index's, over what an entry of the whole query would get: 0.. about 2; orders what `score` holds equal."""
    close: bool = False
    """Near in meaning by the embedder's own measure."""


class Retriever:
    """Searches one store. Stateless, so one serves every request; `vectors` adds meaning where an embedder is
    configured."""

    def __init__(self, store: Store, vectors: VectorIndex | None = None) -> None:
        self._store = store
        self._vectors = vectors

    async def retrieve(
        self,
        tenant: str,
        query: str,
        limit: int = 10,
        *,
        project: str | None = None,
        session: str | None = None,
        scopes: Sequence[str] = ALL_SCOPES,
        now: float | None = None,
    ) -> list[Hit]:
        """The best `limit`, best first. `project` and `session` narrow short-term memory as in `Store.candidates`."""
        if limit < 1 or not query.strip():
            return []
        ranked = await self._ranked(tenant, query, limit, project, session, scopes, now)
        told = await self._told(tenant, query, project) if "long" in scopes else []
        first = [Hit(entry, LONG_TERM_FACTOR) for entry in told]
        rest = [Hit(item.entry, item.score) for item in ranked if all(item.entry.id != entry.id for entry in told)]
        return [*first, *rest][:limit]

    async def build_context(
        self,
        tenant: str,
        query: str,
        max_tokens: int = 500,
        top_k: int = 5,
        *,
        project: str | None = None,
        now: float | None = None,
    ) -> list[MemoryEntry]:
        """Long-term memory worth putting before the model for this query: at most `top_k` entries and `max_tokens`;
        often none."""
        query = focus(query)
        if not query.strip() or top_k < 1:
            return []
        ranked = await self._ranked(tenant, query, top_k, project, None, LONG_TERM, now)
        told = await self._told(tenant, query, project)
        known = {entry.id for entry in told}
        chosen: list[MemoryEntry] = []
        left = max_tokens
        found = (item.entry for item in relevant(query, ranked, LOOKED_AT * top_k) if item.entry.id not in known)
        for entry in itertools.chain(told, found):
            cost = tokens_of(entry) + ENTRY_OVERHEAD_TOKENS
            if cost <= left:
                chosen.append(entry)
                left -= cost
            if len(chosen) == top_k:
                break
        return chosen

    async def _told(self, tenant: str, query: str, project: str | None) -> list[MemoryEntry]:
        """What answers a question for one of the things that hold of a person, found by its key."""
        names = asked_keys(query)
        names += [f"{name}@{project}" for name in names if project]
        found = [await self._store.by_key(tenant, name) for name in names]
        return [
            entry
            for entry in found
            if entry is not None and entry.valid_to is None and entry.trust is not Trust.QUARANTINED
        ]

    async def _ranked(
        self,
        tenant: str,
        query: str,
        limit: int,
        project: str | None,
        session: str | None,
        scopes: Sequence[str],
        now: float | None,
    ) -> list[Scored]:
        terms = query_terms(query)
        at = time.time() if now is None else now
        size = max(POOL, 4 * limit)
        candidates = await self._store.candidates(tenant, terms, size, scopes, project, session) if terms else []
        if not candidates and MIN_SUBSTRING <= len(query.strip()) <= MAX_SUBSTRING:
            candidates = await self._store.containing(tenant, query.strip(), size, scopes)
        scored = [score(candidate, query, terms, at) for candidate in candidates]
        scored.sort(key=lambda item: (-item.score, -item.text_score))
        if self._vectors is None:
            return scored
        return await self._fused(tenant, query, scored, size, scopes, at)

    async def _fused(
        self, tenant: str, query: str, scored: list[Scored], size: int, scopes: Sequence[str], at: float
    ) -> list[Scored]:
        """Reciprocal rank fusion with the entries nearest in meaning; the text's answer alone where the embedder
        fails."""
        assert self._vectors is not None
        nearest = await self._vectors.nearest(self._store, tenant, query, size, scopes)
        if not nearest:
            return scored
        known = {item.entry.id: item for item in scored}
        missing = [near.id for near in nearest if near.id not in known]
        entries = await self._store.by_ids(tenant, missing) if missing else {}
        for near in nearest:
            if near.id in entries:
                known[near.id] = Scored(entries[near.id], 0.0, 0.0)
        fused = fuse([item.entry.id for item in scored], [(near.id, near.weight) for near in nearest])
        close = {near.id for near in nearest if near.close}
        result = [
            replace(known[id], score=value * factor(known[id].entry, at), close=id in close)
            for id, value in fused.items()
            if id in known
        ]
        result.sort(key=lambda item: -item.score)
        return result


def score(candidate: Candidate, query: str, terms: Mapping[str, float], now: float) -> Scored:
    """1.0 where the whole query is a substring, else growing with the share of its rarity held; × decay ×
    scope."""
    entry = candidate.entry
    asked = query.strip().casefold()
    if len(asked) >= MIN_SUBSTRING and asked in entry.content.casefold():
        relevance = 1.0
    else:
        relevance = 1.0 - math.exp(-candidate.score / candidate.ceiling)
        speaker = entry.metadata.get("speaker")
        if speaker and all(term in terms for term in query_terms(speaker)):
            relevance *= SPEAKER_FACTOR
    return Scored(entry, min(1.0, relevance) * factor(entry, now), candidate.score / candidate.ceiling)


def factor(entry: MemoryEntry, now: float) -> float:
    """Time decay (1.0 now, 0.5 at a day and after) × 1.2 for long-term memory."""
    age = max(0.0, now - entry.timestamp)
    decay = max(DECAY_FLOOR, math.pow(DECAY_FLOOR, age / DECAY_HALF_S))
    return decay * (LONG_TERM_FACTOR if entry.scope in LONG_TERM else 1.0)


def focus(query: str) -> str:
    """The part of a message that asks: all of it, or the head and tail of a long one."""
    if len(query) <= MAX_QUERY_CHARS:
        return query
    half = MAX_QUERY_CHARS // 2
    return query[:half] + "\n" + query[-half:]


def tokens_of(entry: MemoryEntry) -> int:
    """Its token count, or an estimate where it came without."""
    return entry.token_count or sum(1 if c.isascii() else CHARS_PER_TOKEN for c in entry.content) // CHARS_PER_TOKEN + 1


def relevant(query: str, ranked: Sequence[Scored], most: int) -> Iterator[Scored]:
    """Those above the floor, in their order, of the first `most`."""
    asked = {term: weight * strength(term) for term, weight in query_terms(query).items()}
    floor = RELATIVE_FLOOR * max((item.score for item in ranked), default=0.0)
    for item in ranked[:most]:
        near = item.close or (item.entry.type == EntryType.CONVERSATION and item.text_score >= CONVERSATION_FLOOR)
        if item.score >= floor and (near or has_in_common(item.entry, asked)):
            yield item


def has_in_common(entry: MemoryEntry, asked: Mapping[str, float]) -> bool:
    """Whether query and entry share enough: of the query, or of the entry's own words. asked: the query's terms with
    their strength. The store's rarity isn't used: a tenant with ten facts has none to speak of."""
    text = " ".join((entry.content, *entry.aliases, entry.value))
    held = {term: min(weight, 1.0) * strength(term) for term, weight in weighted_terms(text).items()}
    common = [term for term in asked if term in held]
    if sum(asked[term] for term in common if strength(term) == 1.0) < FLOOR_WEIGHT:
        return False
    asked_whole = sum(asked.values())
    entry_floor = FLOOR_ENTRY_SHARE * (1.0 + max(0.0, math.log2(asked_whole / LONG_QUERY)) / FLOOR_DOUBLES_AFTER)
    return sum(asked[term] for term in common) >= FLOOR_QUERY_SHARE * asked_whole or sum(
        held[term] for term in common
    ) >= min(FLOOR_ENTRY_SHARE_MOST, entry_floor) * sum(held.values())


def fuse(words: Sequence[str], meaning: Sequence[tuple[str, float]]) -> dict[str, float]:
    """Reciprocal rank fusion of two rankings, the second with a weight for each: id -> 0..1, where 1 is the head of
    both."""
    fused: dict[str, float] = {}
    for place, (id, weight) in [*enumerate((id, 1.0) for id in words), *enumerate(meaning)]:
        fused[id] = fused.get(id, 0.0) + weight * FUSION_K / (FUSION_K + place)
    return {id: value / 2.0 for id, value in fused.items()}
