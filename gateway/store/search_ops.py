"""Finding: from weighted terms to the best entries, reading only the tenant's own posting lists."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gateway.store.db import Db, Row, batches, marks
from gateway.store.index import (
    MARK_TERM,
    WINDOW,
    Own,
    Ranked,
    chunks_of,
    idf,
    rank,
    score,
    surroundings,
    term_id,
    within_budget,
)
from gateway.store.protocol import Candidate, VectorSet
from gateway.store.rows import COLUMNS, to_entry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_QUERY_TERMS = 64
"""A pasted page as a question: its heaviest terms are enough."""
MAX_SCANNED = 3_000
"""Entries that a search for a bare substring reads: about 5 ms."""
SPARE = 8
"""Fetched beyond the limit: a posting may outlive its entry for a moment where two writers meet."""


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
    score: float


def candidates(
    db: Db,
    tenant: str,
    terms: Mapping[str, float],
    limit: int,
    scopes: Sequence[str],
    project: str | None,
    session: str | None,
    most: int | None = None,
) -> list[Candidate] | None:
    """See `Store.candidates`. None, with hardly anything read, where there are more than `most` entries to search."""
    heaviest = sorted(terms.items(), key=lambda item: -item[1])[:MAX_QUERY_TERMS]
    weights = {term_id(term): weight for term, weight in heaviest if weight > 0}
    spaces = _spaces(db, tenant, scopes)
    if not weights or not spaces or limit < 1:
        return []
    if most is not None and sum(space.slots for space in spaces) > most:
        return None
    frequencies = _frequencies(db, spaces, weights)
    docs = sum(space.docs for space in spaces)
    rarity = {term: idf(docs, sum(by_space[term] for by_space in frequencies.values())) for term in weights}
    found: list[_Found] = []
    ceiling = 0.0
    for space in spaces:
        chosen = within_budget({term: df for term, df in frequencies[space.id].items() if df})
        if chosen:
            lists = _lists(db, space, chosen)
            own = score(lists, weights, rarity, space.slots, space.total_len / max(1, space.docs))
            ceiling = own.ceiling
            if session is not None and space.scope == "session":
                _only_session(db, tenant, space, own, session)
            by_project = project if space.scope != "long" else None
            found += _best(db, space, own, limit, by_project)
    found.sort(key=lambda f: (-f.score, -f.slot))
    return _with_entries(db, found[: limit + SPARE], ceiling)[:limit]


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


def _lists(db: Db, space: _Space, terms: Sequence[int]) -> dict[int, list[tuple[int, bytes]]]:
    """(chunk, data) by term."""
    lists: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
    rows = db.rows(
        f"SELECT term, chunk, data FROM postings WHERE space = ? AND term IN ({marks(len(terms))})",  # noqa: S608
        (space.id, *terms),
    )
    for term, chunk, data in rows:
        lists[term].append((chunk, data))
    return lists


def _only_session(db: Db, tenant: str, space: _Space, own: Own, session: str) -> None:
    """Take every other session's scores away."""
    import numpy as np

    rows = db.rows(
        "SELECT slot FROM entries WHERE tenant = ? AND session = ? AND space = ?", (tenant, session, space.id)
    )
    others = np.ones(len(own.bm25), dtype=bool)
    others[[row[0] + WINDOW for row in rows]] = False
    own.bm25[others] = 0.0


def _best(db: Db, space: _Space, own: Own, limit: int, project: str | None) -> list[_Found]:
    """The best `limit` of a space; with a project, of those that belong to it or to none."""
    positions = surroundings(own, own.centres(limit))
    ranked = _ranked(db, space, own, positions, limit if project is None else len(positions))
    allowed = None
    if project is not None:
        allowed = _of_project(db, space, ranked.slots.tolist(), project)
        if len(allowed) < limit < len(ranked.slots):  # another project's entries crowd this one's out
            ranked, allowed = _project_only(db, space, own, limit, project)
    found = []
    for slot, total in zip(ranked.slots.tolist(), ranked.scores.tolist(), strict=True):
        if allowed is None or slot in allowed:
            found.append(_Found(space, slot, float(own.bm25[slot + WINDOW]), total))
    return found[: limit + SPARE]


def _ranked(db: Db, space: _Space, own: Own, positions: NDArray[np.int64], limit: int) -> Ranked:
    rows: list[Row] = []
    for some in batches(chunks_of(positions, space.slots)):
        rows += db.rows(
            f"SELECT chunk, data FROM postings WHERE space = ? AND term = ? AND chunk IN ({marks(len(some))})",  # noqa: S608
            (space.id, MARK_TERM, *some),
        )
    return rank(own, positions, rows, limit + SPARE)


def _of_project(db: Db, space: _Space, slots: Sequence[int], project: str) -> set[int]:
    allowed: set[int] = set()
    for some in batches(slots):
        rows = db.rows(
            f"SELECT slot FROM entries WHERE space = ? AND slot IN ({marks(len(some))}) AND project IN ('', ?)",  # noqa: S608
            (space.id, *some, project),
        )
        allowed.update(row[0] for row in rows)
    return allowed


def _project_only(db: Db, space: _Space, own: Own, limit: int, project: str) -> tuple[Ranked, set[int]]:
    """Rank the project's entries alone. One pass over the space's rows, for the rare query that needs it."""
    import numpy as np

    rows = db.rows("SELECT slot FROM entries WHERE space = ? AND project IN ('', ?)", (space.id, project))
    allowed = {row[0] for row in rows}
    others = np.ones(len(own.bm25), dtype=bool)
    others[[slot + WINDOW for slot in allowed]] = False
    own.bm25[others] = 0.0
    positions = surroundings(own, own.centres(limit))
    return _ranked(db, space, own, positions, len(positions)), allowed


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
        Candidate(entries[f.space.id, f.slot], f.bm25, f.score, ceiling)
        for f in found
        if (f.space.id, f.slot) in entries
    ]


def containing(
    db: Db, tenant: str, text: str, limit: int, scopes: Sequence[str], most: int | None = None
) -> list[Candidate] | None:
    """For what the index can't find, such as a part of a word. None as in `candidates`."""
    if not text or not scopes:
        return []
    if most is not None and sum(space.slots for space in _spaces(db, tenant, scopes)) > most:
        return None
    pattern = "%" + text.lower().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
    rows = db.rows(
        f"SELECT * FROM (SELECT {COLUMNS} FROM entries WHERE tenant = ? AND live = 1 "  # noqa: S608
        f"AND scope IN ({marks(len(scopes))}) ORDER BY seq DESC LIMIT ?) AS newest "
        "WHERE LOWER(content) LIKE ? ESCAPE '\\' LIMIT ?",
        (tenant, *scopes, MAX_SCANNED, pattern, limit),
    )
    return [Candidate(to_entry(row), 1.0, 1.0, 1.0) for row in rows]


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
