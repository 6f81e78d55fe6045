"""Writing the full-text index: slots are handed out, posting lists appended to and thinned, inside the caller's
transaction.

On PostgreSQL several replicas write at once: whoever touches a space's postings first locks its row in `spaces` by
updating it, and those who touch several do so in one order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from gateway.store.db import Db, one
from gateway.store.index import CHUNK, MARK_TERM, Doc, posting, with_mark, without
from gateway.store.rows import Prepared

_APPEND = """INSERT INTO postings (space, term, chunk, n, data) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (space, term, chunk) DO UPDATE SET n = postings.n + excluded.n, data = {joined}"""


def lock_spaces(db: Db, wanted: set[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Space numbers of (tenant, scope), made where missing and locked until the transaction ends, in one order for all
    writers."""
    spaces: dict[tuple[str, str], int] = {}
    for tenant, scope in sorted(wanted):
        db.run(
            "INSERT INTO spaces (tenant, scope, next_slot, docs, total_len) VALUES (?, ?, 0, 0, 0) "
            "ON CONFLICT (tenant, scope) DO NOTHING",
            (tenant, scope),
        )
        locked = db.rows(
            "UPDATE spaces SET docs = docs WHERE tenant = ? AND scope = ? RETURNING space", (tenant, scope)
        )
        spaces[tenant, scope] = int(locked[0][0])
    return spaces


def allocate(db: Db, fresh: Sequence[Prepared], spaces: dict[tuple[str, str], int]) -> list[int | None]:
    """A slot for each that is indexed, consecutive in the order given, so that a session's turns are neighbours."""
    lengths: dict[tuple[str, str], list[int]] = defaultdict(list)
    for item in fresh:
        if item.doc:
            lengths[item.entry.tenant, item.entry.scope].append(item.doc.length)
    first: dict[tuple[str, str], int] = {}
    for name, all_lengths in lengths.items():
        number = len(all_lengths)
        (row,) = db.rows(
            "UPDATE spaces SET next_slot = next_slot + ?, docs = docs + ?, total_len = total_len + ? "
            "WHERE space = ? RETURNING next_slot",
            (number, number, sum(all_lengths), spaces[name]),
        )
        first[name] = int(row[0]) - number
    slots: list[int | None] = []
    for item in fresh:
        name = (item.entry.tenant, item.entry.scope)
        slots.append(first[name] if item.doc else None)
        if item.doc:
            first[name] += 1
    return slots


def append(db: Db, docs: Sequence[tuple[int, int, Doc]]) -> None:
    """Index new entries: (space, slot, form), slots as `allocate` gave them, ascending."""
    lists: dict[tuple[int, int, int], list[bytes]] = defaultdict(list)
    for space, slot, doc in docs:
        _collect(lists, space, slot, doc)
        lists[space, MARK_TERM, slot // CHUNK].append(doc.mark)
    _append_lists(db, lists)


def _append_lists(db: Db, lists: Mapping[tuple[int, int, int], Sequence[bytes]]) -> None:
    rows = ((*where, len(records), b"".join(records)) for where, records in sorted(lists.items()))
    db.many(_APPEND.format(joined=db.joined("postings.data", "excluded.data")), rows)


def unindex(db: Db, space: int, slot: int, packed: bytes) -> None:
    """Take an entry's records out of the posting lists."""
    length, terms = Doc.unpack(packed)
    db.run("UPDATE spaces SET docs = docs - 1, total_len = total_len - ? WHERE space = ?", (length, space))
    for term in terms:
        where = (space, term, slot // CHUNK)
        row = one(db, "SELECT data FROM postings WHERE space = ? AND term = ? AND chunk = ?", where)
        if row is None:
            continue
        left = without(bytes(row[0]), slot)
        if left:
            db.run(
                "UPDATE postings SET data = ?, n = ? WHERE space = ? AND term = ? AND chunk = ?",
                (left, len(left) // 4, *where),
            )
        else:
            db.run("DELETE FROM postings WHERE space = ? AND term = ? AND chunk = ?", where)


def _collect(lists: dict[tuple[int, int, int], list[bytes]], space: int, slot: int, doc: Doc) -> None:
    for term, tf in doc.terms.items():
        lists[space, term, slot // CHUNK].append(posting(slot, tf, doc.length))


def reuse(db: Db, space: int, slot: int, doc: Doc) -> None:
    """Index an entry anew in the slot that `unindex` freed."""
    db.run("UPDATE spaces SET docs = docs + 1, total_len = total_len + ? WHERE space = ?", (doc.length, space))
    lists: dict[tuple[int, int, int], list[bytes]] = defaultdict(list)
    _collect(lists, space, slot, doc)
    _append_lists(db, lists)
    where = (space, MARK_TERM, slot // CHUNK)
    (row,) = db.rows("SELECT data FROM postings WHERE space = ? AND term = ? AND chunk = ?", where)
    marked = with_mark(bytes(row[0]), slot, doc.mark)
    db.run("UPDATE postings SET data = ? WHERE space = ? AND term = ? AND chunk = ?", (marked, *where))
