"""Reading and writing memory entries, as synchronous operations on one connection inside one transaction."""

from __future__ import annotations

import builtins
import dataclasses
from collections import defaultdict
from collections.abc import Sequence

from gateway.memory.entries import EntryType, MemoryEntry
from gateway.store import index_ops
from gateway.store.db import Db, Row, batches, marks, one
from gateway.store.protocol import Limits, Page, QuotaExceeded
from gateway.store.rows import COLUMNS, FIELDS, Prepared, prepare, to_entry, to_row

_INSERT = f"INSERT INTO entries ({COLUMNS}, text_hash, live, space, slot, terms) VALUES ({marks(25)})"  # noqa: S608
_READ_ONLY_FIELDS = {"id", "tenant"}


def add(db: Db, prepared: Sequence[Prepared], limits: Limits) -> int:
    """Write those whose (tenant, id) is new; returns how many."""
    spaces = index_ops.lock_spaces(db, {(item.entry.tenant, item.entry.scope) for item in prepared if item.doc})
    fresh = _unknown(db, prepared)
    _check_quota(db, fresh, limits)
    slots = index_ops.allocate(db, fresh, spaces)
    rows = []
    for item, slot in zip(fresh, slots, strict=True):
        entry, doc = item.entry, item.doc
        space = spaces[entry.tenant, entry.scope] if doc else None
        packed = doc.packed() if doc else None
        rows.append([*to_row(entry), item.text_hash, int(doc is not None), space, slot, packed])
    db.many(_INSERT, rows)
    index_ops.append(
        db,
        [
            (spaces[i.entry.tenant, i.entry.scope], s, i.doc)
            for i, s in zip(fresh, slots, strict=True)
            if i.doc and s is not None
        ],
    )
    return len(fresh)


def _unknown(db: Db, prepared: Sequence[Prepared]) -> list[Prepared]:
    known: set[tuple[str, str]] = set()
    by_tenant: dict[str, list[str]] = defaultdict(list)
    for item in prepared:
        by_tenant[item.entry.tenant].append(item.entry.id)
    for tenant, ids in by_tenant.items():
        for some in batches(ids):
            found = db.rows(f"SELECT id FROM entries WHERE tenant = ? AND id IN ({marks(len(some))})", (tenant, *some))  # noqa: S608
            known.update((tenant, row[0]) for row in found)
    fresh = []
    for item in prepared:
        name = (item.entry.tenant, item.entry.id)
        if name not in known:
            known.add(name)
            fresh.append(item)
    return fresh


def _check_quota(db: Db, fresh: Sequence[Prepared], limits: Limits) -> None:
    wanted: dict[str, int] = defaultdict(int)
    for item in fresh:
        wanted[item.entry.tenant] += 1
    for tenant, number in wanted.items():
        if count(db, tenant) + number > limits.max_entries:
            raise QuotaExceeded(f"this tenant may keep {limits.max_entries} memory entries")


def get(db: Db, tenant: str, id: str) -> MemoryEntry | None:
    """The entry, history included."""
    row = one(db, f"SELECT {COLUMNS} FROM entries WHERE tenant = ? AND id = ?", (tenant, id))  # noqa: S608
    return to_entry(row) if row else None


def update(db: Db, tenant: str, id: str, fields: dict[str, object], limits: Limits) -> MemoryEntry | None:
    """Change fields and index anew, in the same slot where the scope stays."""
    if not db.run("UPDATE entries SET live = live WHERE tenant = ? AND id = ?", (tenant, id)):
        return None
    entry = get(db, tenant, id)
    assert entry is not None
    item = prepare(dataclasses.replace(entry, **fields), limits.max_entry_chars)  # type: ignore[arg-type]
    new = item.entry
    old_space, old_slot, packed = _place(db, tenant, id)
    if old_space is not None and old_slot is not None:
        index_ops.unindex(db, old_space, old_slot, packed)
    space: int | None = None
    slot: int | None = None
    if item.doc:
        spaces = index_ops.lock_spaces(db, {(tenant, new.scope)})
        space = spaces[tenant, new.scope]
        if space == old_space and old_slot is not None:
            slot = old_slot
            index_ops.reuse(db, space, slot, item.doc)
        else:
            (slot,) = index_ops.allocate(db, [item], spaces)
            assert slot is not None
            index_ops.append(db, [(space, slot, item.doc)])
    names = [*FIELDS[2:], "text_hash", "live", "space", "slot", "terms"]
    values = [*to_row(new)[2:], item.text_hash, int(item.doc is not None), space, slot]
    assignments = ", ".join(f"{name} = ?" for name in names)
    db.run(
        f"UPDATE entries SET {assignments} WHERE tenant = ? AND id = ?",  # noqa: S608
        (*values, item.doc.packed() if item.doc else None, tenant, id),
    )
    if not item.doc:
        db.run("DELETE FROM vectors WHERE tenant = ? AND entry_id = ?", (tenant, id))
    return new


def check_fields(fields: dict[str, object]) -> None:
    """ValueError on a name that `update` can't set."""
    unknown = set(fields) - (set(FIELDS) - _READ_ONLY_FIELDS)
    if unknown:
        raise ValueError(f"not a field that can be changed: {', '.join(sorted(unknown))}")


def _place(db: Db, tenant: str, id: str) -> tuple[int | None, int | None, bytes]:
    row = one(db, "SELECT space, slot, terms FROM entries WHERE tenant = ? AND id = ?", (tenant, id))
    return (row[0], row[1], bytes(row[2] or b"")) if row else (None, None, b"")


def delete(db: Db, tenant: str, id: str) -> bool:
    """Whether there was one."""
    gone = db.rows("DELETE FROM entries WHERE tenant = ? AND id = ? RETURNING space, slot, terms", (tenant, id))
    if not gone:
        return False
    space, slot, packed = gone[0]
    if space is not None:
        index_ops.unindex(db, space, slot, bytes(packed))
    db.run("DELETE FROM vectors WHERE tenant = ? AND entry_id = ?", (tenant, id))
    return True


def supersede(db: Db, tenant: str, old_id: str, new: Prepared, limits: Limits) -> bool:
    """Old to history, new written; False where there is no current entry of that id."""
    entry = new.entry
    if entry.tenant != tenant:
        raise ValueError("an entry can only supersede one of its own tenant")
    valid_to = entry.valid_from or entry.timestamp
    changed = db.run(
        "UPDATE entries SET valid_to = ?, superseded_by = ? WHERE tenant = ? AND id = ? AND valid_to IS NULL",
        (valid_to, entry.id, tenant, old_id),
    )
    if not changed:
        return False
    space, slot, packed = _place(db, tenant, old_id)
    if space is not None and slot is not None:
        index_ops.unindex(db, space, slot, packed)
        db.run(
            "UPDATE entries SET live = 0, space = NULL, slot = NULL, terms = NULL WHERE tenant = ? AND id = ?",
            (tenant, old_id),
        )
    db.run("DELETE FROM vectors WHERE tenant = ? AND entry_id = ?", (tenant, old_id))
    add(db, [new], limits)
    return True


def is_empty(db: Db, tenant: str) -> bool:
    """Whether there are neither entries nor working state."""
    sql = "SELECT EXISTS (SELECT 1 FROM entries WHERE tenant = ?) OR EXISTS (SELECT 1 FROM working WHERE tenant = ?)"
    return not one(db, sql, (tenant, tenant))[0]  # type: ignore[index]


def list_page(
    db: Db,
    tenant: str,
    filters: dict[str, str | EntryType | None],
    include_history: bool,
    oldest_first: bool,
    limit: int,
    cursor: str | None,
) -> Page:
    """A page in order of writing. `filters`: column -> value, None for any."""
    where = ["tenant = ?"]
    params: builtins.list[object] = [tenant]
    for column, value in filters.items():
        if value is not None:
            where.append(f"{column} = ?")
            params.append(str(value))
    if not include_history:
        where.append("valid_to IS NULL")
    if cursor is not None:
        if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
            raise ValueError("not a cursor of this listing")
        where.append("seq > ?" if oldest_first else "seq < ?")
        params.append(int(cursor))
    order = "ASC" if oldest_first else "DESC"
    limit = max(1, limit)
    rows = db.rows(
        f"SELECT {COLUMNS}, seq FROM entries WHERE {' AND '.join(where)} ORDER BY seq {order} LIMIT ?",  # noqa: S608
        (*params, limit + 1),
    )
    more = len(rows) > limit
    return Page([to_entry(row[:-1]) for row in rows[:limit]], str(rows[limit - 1][-1]) if more else None)


def count(db: Db, tenant: str) -> int:
    """Entries kept, history included. The index counts the live ones: counting rows would take 30 ms at a million."""
    live = one(db, "SELECT SUM(docs) FROM spaces WHERE tenant = ?", (tenant,))
    dead = one(db, "SELECT COUNT(*) FROM entries WHERE tenant = ? AND live = 0", (tenant,))
    return int((live[0] if live else 0) or 0) + int(dead[0] if dead else 0)


def by_key(db: Db, tenant: str, key: str) -> MemoryEntry | None:
    """The newest entry of that key that may be used."""
    return _newest(db, "tenant = ? AND key = ? AND live = 1", (tenant, key))


def by_text(db: Db, tenant: str, text_hash: str) -> MemoryEntry | None:
    """The newest entry of that text that isn't history; one in quarantine too, or copies of it would pile up."""
    return _newest(db, "tenant = ? AND text_hash = ? AND valid_to IS NULL", (tenant, text_hash))


def _newest(db: Db, where: str, params: Sequence[object]) -> MemoryEntry | None:
    row: Row | None = one(db, f"SELECT {COLUMNS} FROM entries WHERE {where} ORDER BY seq DESC LIMIT 1", params)  # noqa: S608
    return to_entry(row) if row else None
