"""Finding: from weighted terms to the best entries, reading only the tenant's own posting lists."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.store.db import Db, Row, batches, marks
from gateway.store.index import NEIGHBOUR_DAMPING, Scores, idf, score, term_id, within_budget
from gateway.store.protocol import Candidate, VectorSet
from gateway.store.rows import COLUMNS, to_entry

MAX_QUERY_TERMS = 64
"""A pasted page as a question: its heaviest terms are enough."""
POOL_FACTOR = 3
POOL_FLOOR = 40
"""Slots looked at for one answer: neighbours are verified and projects filtered after the index has spoken."""
POOL_GROWTH = 8
POOL_CEILING = 5_000
"""How far the pool grows where a project's filter leaves too few."""


@dataclass(frozen=True, slots=True)
class _Space:
    id: int
    scope: str
    slots: int
    docs: int
    total_len: int


@dataclass(frozen=True, slots=True)
class _Found:
    space: _Space
    slot: int
    bm25: float
    neighbours: float
    matched: float


def candidates(
    db: Db,
    tenant: str,
    terms: Mapping[str, float],
    limit: int,
    scopes: Sequence[str],
    project: str | None,
    session: str | None,
) -> list[Candidate]:
    """See `Store.candidates`."""
    heaviest = sorted(terms.items(), key=lambda item: -item[1])[:MAX_QUERY_TERMS]
    weights = {term_id(term): weight for term, weight in heaviest if weight > 0}
    spaces = _spaces(db, tenant, scopes)
    if not weights or not spaces or limit < 1:
        return []
    frequencies = _frequencies(db, spaces, weights)
    docs = sum(space.docs for space in spaces)
    rarity = {term: idf(docs, sum(by_space[term] for by_space in frequencies.values())) for term in weights}
    found: list[_Found] = []
    ceiling = 0.0
    for space in spaces:
        chosen = within_budget({term: df for term, df in frequencies[space.id].items() if df})
        if chosen:
            lists = _lists(db, space, chosen)
            scores = score(lists, weights, rarity, space.slots, space.total_len / max(1, space.docs))
            ceiling = scores.ceiling
            found += _verified(db, tenant, space, scores, limit, project, session)
    found.sort(key=lambda f: (-(f.bm25 + f.neighbours), -f.slot))
    return _with_entries(db, found[:limit], ceiling)


def _spaces(db: Db, tenant: str, scopes: Sequence[str]) -> list[_Space]:
    if not scopes:
        return []
    rows = db.rows(
        "SELECT space, scope, next_slot, docs, total_len FROM spaces "  # noqa: S608
        f"WHERE tenant = ? AND scope IN ({marks(len(scopes))}) AND docs > 0 ORDER BY space",
        (tenant, *scopes),
    )
    return [_Space(*row) for row in rows]


def _frequencies(db: Db, spaces: Sequence[_Space], weights: Mapping[int, float]) -> dict[int, dict[int, int]]:
    """Documents holding each term, by space. The sum reads counters, not the lists."""
    result: dict[int, dict[int, int]] = {space.id: dict.fromkeys(weights, 0) for space in spaces}
    ids = [space.id for space in spaces]
    rows = db.rows(
        f"SELECT space, term, SUM(n) FROM postings WHERE space IN ({marks(len(ids))}) "  # noqa: S608
        f"AND term IN ({marks(len(weights))}) GROUP BY space, term",
        (*ids, *weights),
    )
    for space, term, n in rows:
        result[space][term] = int(n)
    return result


def _lists(db: Db, space: _Space, terms: Sequence[int]) -> list[Row]:
    return db.rows(
        f"SELECT term, chunk, data FROM postings WHERE space = ? AND term IN ({marks(len(terms))})",  # noqa: S608
        (space.id, *terms),
    )


def _verified(
    db: Db, tenant: str, space: _Space, scores: Scores, limit: int, project: str | None, session: str | None
) -> list[_Found]:
    """The best slots that pass the filters, with the scores of those neighbours only that are of the same session."""
    import numpy as np

    by_project = project if space.scope != "long" else None
    if session is not None and space.scope == "session":
        rows = db.rows(
            "SELECT slot FROM entries WHERE tenant = ? AND session = ? AND space = ?", (tenant, session, space.id)
        )
        mask = np.zeros(len(scores.own), dtype=bool)
        mask[[row[0] for row in rows]] = True
        scores.own[~mask] = 0.0
    size = max(POOL_FLOOR, limit * POOL_FACTOR)
    while True:
        pool = [int(slot) for slot in scores.best(size)]
        places = _places(db, space, pool)
        kept = [slot for slot in pool if slot in places and (by_project is None or places[slot][1] in ("", by_project))]
        if len(kept) >= limit or len(pool) < size or size >= POOL_CEILING:
            break
        size *= POOL_GROWTH
    found = []
    for slot in kept:
        near = 0.0
        for distance, damping in enumerate(NEIGHBOUR_DAMPING, 1):
            for other in (slot - distance, slot + distance):
                if other in places and places[other][0] and places[other][0] == places[slot][0]:
                    near += damping * float(scores.own[other])
        if scores.own[slot] > 0 or near > 0:
            found.append(_Found(space, slot, float(scores.own[slot]), near, float(scores.share[slot])))
    return found


def _places(db: Db, space: _Space, pool: Sequence[int]) -> dict[int, tuple[str, str]]:
    """(session, project) by slot, for the pool and its neighbours. A slot whose entry is gone is not in it."""
    reach = range(-len(NEIGHBOUR_DAMPING), len(NEIGHBOUR_DAMPING) + 1)
    wanted = sorted({slot + d for slot in pool for d in reach if 0 <= slot + d < space.slots})
    places: dict[int, tuple[str, str]] = {}
    for some in batches(wanted):
        rows = db.rows(
            f"SELECT slot, session, project FROM entries WHERE space = ? AND slot IN ({marks(len(some))})",  # noqa: S608
            (space.id, *some),
        )
        places.update((row[0], (row[1], row[2])) for row in rows)
    return places


def _with_entries(db: Db, found: Sequence[_Found], ceiling: float) -> list[Candidate]:
    by_space: dict[int, list[int]] = defaultdict(list)
    for item in found:
        by_space[item.space.id].append(item.slot)
    entries: dict[tuple[int, int], Any] = {}
    for space, slots in by_space.items():
        for some in batches(slots):
            rows = db.rows(
                f"SELECT {COLUMNS}, slot FROM entries WHERE space = ? AND slot IN ({marks(len(some))})",  # noqa: S608
                (space, *some),
            )
            entries.update(((space, row[-1]), to_entry(row[:-1])) for row in rows)
    return [
        Candidate(entries[f.space.id, f.slot], f.bm25, f.neighbours, f.matched, ceiling)
        for f in found
        if (f.space.id, f.slot) in entries
    ]


def put_vectors(db: Db, tenant: str, model: str, vectors: Mapping[str, bytes]) -> None:
    """Store float16 vectors by entry id; an id without an entry is left out."""
    db.many(
        "INSERT INTO vectors (tenant, model, entry_id, data) SELECT tenant, ?, id, ? FROM entries "
        "WHERE tenant = ? AND id = ? AND live = 1 "
        "ON CONFLICT (tenant, model, entry_id) DO UPDATE SET data = excluded.data",
        [(model, data, tenant, id) for id, data in vectors.items()],
    )


def vectors(db: Db, tenant: str, model: str, scopes: Sequence[str]) -> VectorSet:
    """All of the tenant's vectors of that model, in order of writing."""
    rows = db.rows(
        "SELECT v.entry_id, v.data FROM vectors v JOIN entries e ON e.tenant = v.tenant AND e.id = v.entry_id "  # noqa: S608
        f"WHERE v.tenant = ? AND v.model = ? AND e.live = 1 AND e.scope IN ({marks(len(scopes))}) ORDER BY e.seq",
        (tenant, model, *scopes),
    )
    if not rows:
        return VectorSet([], 0, b"")
    width = len(rows[0][1])
    same = [row for row in rows if len(row[1]) == width]  # a model that changed its width under the same name
    return VectorSet([row[0] for row in same], width // 2, b"".join(bytes(row[1]) for row in same))


def without_vector(db: Db, tenant: str, model: str, limit: int) -> list[Any]:
    """Live entries that have none yet, oldest first."""
    columns = ", ".join(f"e.{name.strip()}" for name in COLUMNS.split(","))
    rows = db.rows(
        f"SELECT {columns} FROM entries e LEFT JOIN vectors v ON v.tenant = e.tenant AND v.entry_id = e.id "  # noqa: S608
        "AND v.model = ? WHERE e.tenant = ? AND e.live = 1 AND v.entry_id IS NULL ORDER BY e.seq LIMIT ?",
        (model, tenant, limit),
    )
    return [to_entry(row) for row in rows]


def by_ids(db: Db, tenant: str, ids: Sequence[str]) -> dict[str, Any]:
    """Live entries by id."""
    found: dict[str, Any] = {}
    for some in batches(ids):
        rows = db.rows(
            f"SELECT {COLUMNS} FROM entries WHERE tenant = ? AND live = 1 AND id IN ({marks(len(some))})",  # noqa: S608
            (tenant, *some),
        )
        found.update((row[0], to_entry(row)) for row in rows)
    return found
