"""The `Store` over SQL: every method is an operation handed to the database's own threads. SQLite and PostgreSQL differ
only in how they run it."""

from __future__ import annotations

import asyncio
import builtins
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TypeVar

from gateway.memory.entries import EntryType, MemoryEntry
from gateway.message import Recent
from gateway.store import memory_ops, search_ops, shared_ops, state_ops
from gateway.store.db import Operation, one
from gateway.store.protocol import (
    CalibrationRow,
    Candidate,
    Decision,
    Limits,
    Page,
    Pending,
    Session,
    SpillInfo,
    VectorSet,
)
from gateway.store.rows import Prepared, prepare
from gateway.store.text import storable

T = TypeVar("T")

ALL_SCOPES = ("long", "session", "project")
CHANGES_KEPT = 10_000
"""Tenants of which it is remembered that they changed; a forgotten one counts as unchanged, and caches age anyway."""
GLANCE_ROWS = 50
GLANCE_DOCS = 300
"""Entries that are searched on the event loop where the database is at hand: going to a thread costs more."""
PRUNE_AFTER = 0.01
"""Of `max_decisions` written: then the tenant at hand is pruned. Looking on each write would cost more than that."""
EXPORT_PAGE = 500
PREPARE_INLINE = 4
"""Entries tokenised on the spot; more go to a thread (about 0.1 ms each)."""
INLINE_CHARS = 2_000
SPILL_LEVEL = 3
"""zstandard's default: logs shrink 8 to 20 times at some 300 MB/s."""


class SqlStore(ABC):
    """Everything but the connection."""

    glances = False
    """Whether a small read may be done on the event loop itself."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._changes: Recent[str, int] = Recent(CHANGES_KEPT)
        self._change = 0
        self._unpruned = 0
        """Decisions written by this process since it last looked for old ones."""

    @abstractmethod
    async def _read(self, op: Operation[T]) -> T:
        """Run in a read transaction, off the loop."""

    async def _glance(self, op: Operation[T]) -> T:
        """Run a read that is known to take well under a millisecond, whatever the tenant keeps."""
        return await self._read(op)

    @abstractmethod
    async def _write(self, op: Operation[T]) -> T:
        """Run in a write transaction, off the loop; when it returns the write outlives the process."""

    @abstractmethod
    async def _scrub(self) -> None:
        """Overwrite what deleted rows left in pages and log, as far as the database lets one."""

    @abstractmethod
    async def close(self) -> None:
        """Finish queued writes and let go."""

    # -- memory ------------------------------------------------------------------------------------------------------
    async def _prepare(self, entries: Sequence[MemoryEntry]) -> builtins.list[Prepared]:
        def work() -> builtins.list[Prepared]:
            return [prepare(entry, self.limits.max_entry_chars) for entry in entries]

        small = len(entries) <= PREPARE_INLINE and sum(len(entry.content) for entry in entries) <= INLINE_CHARS
        if small and all(entry.content.isascii() for entry in entries):  # else the dictionary may still have to load
            return work()
        return await asyncio.to_thread(work)

    async def add(self, entries: Sequence[MemoryEntry]) -> int:
        if not entries:
            return 0
        prepared = await self._prepare(entries)
        try:
            return await self._write(lambda db: memory_ops.add(db, prepared, self.limits))
        finally:
            self._changed(*{entry.tenant for entry in entries})

    async def get(self, tenant: str, id: str) -> MemoryEntry | None:
        return await self._read(lambda db: memory_ops.get(db, storable(tenant), storable(id)))

    async def update(self, tenant: str, id: str, **fields: object) -> MemoryEntry | None:
        memory_ops.check_fields(fields)
        try:
            return await self._write(
                lambda db: memory_ops.update(db, storable(tenant), storable(id), fields, self.limits)
            )
        finally:
            self._changed(tenant)

    async def delete(self, tenant: str, id: str) -> bool:
        try:
            return await self._write(lambda db: memory_ops.delete(db, storable(tenant), storable(id)))
        finally:
            self._changed(tenant)

    async def list(
        self,
        tenant: str,
        *,
        scope: str | None = None,
        type: EntryType | str | None = None,
        project: str | None = None,
        session: str | None = None,
        include_history: bool = False,
        oldest_first: bool = False,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        filters: dict[str, str | EntryType | None] = {
            "scope": scope,
            "type": type,
            "project": project,
            "session": session,
        }
        small = type is not None and scope is project is session is None and limit <= GLANCE_ROWS
        return await (self._glance if small else self._read)(
            lambda db: memory_ops.list_page(db, storable(tenant), filters, include_history, oldest_first, limit, cursor)
        )

    def changes(self, tenant: str) -> int:
        return self._changes.get(tenant) or 0

    def _changed(self, *tenants: str) -> None:
        self._change += 1
        for tenant in tenants:
            self._changes.put(tenant, self._change)

    async def is_empty(self, tenant: str) -> bool:
        return await self._glance(lambda db: memory_ops.is_empty(db, storable(tenant)))

    async def count(self, tenant: str) -> int:
        return await self._read(lambda db: memory_ops.count(db, storable(tenant)))

    async def by_key(self, tenant: str, key: str) -> MemoryEntry | None:
        if not key:
            return None
        return await self._glance(lambda db: memory_ops.by_key(db, storable(tenant), storable(key)))

    async def supersede(self, tenant: str, old_id: str, new_entry: MemoryEntry) -> bool:
        (prepared,) = await self._prepare([new_entry])
        try:
            return await self._write(
                lambda db: memory_ops.supersede(db, storable(tenant), storable(old_id), prepared, self.limits)
            )
        finally:
            self._changed(tenant)

    async def exists_text(self, tenant: str, normalised_hash: str) -> MemoryEntry | None:
        return await self._read(lambda db: memory_ops.by_text(db, storable(tenant), storable(normalised_hash)))

    async def candidates(
        self,
        tenant: str,
        terms: Mapping[str, float] | Sequence[str],
        limit: int,
        scopes: Sequence[str] = ALL_SCOPES,
        project: str | None = None,
        session: str | None = None,
    ) -> builtins.list[Candidate]:
        weights = terms if isinstance(terms, Mapping) else dict.fromkeys(terms, 1.0)
        return await self._found(search_ops.candidates, storable(tenant), weights, limit, scopes, project, session)

    async def containing(
        self, tenant: str, text: str, limit: int, scopes: Sequence[str] = ALL_SCOPES
    ) -> builtins.list[Candidate]:
        return await self._found(search_ops.containing, storable(tenant), storable(text), limit, scopes)

    async def _found(
        self, search: Callable[..., builtins.list[Candidate] | None], *asked: object
    ) -> builtins.list[Candidate]:
        """A search, on the event loop where that is allowed and there is little to search."""
        if self.glances:
            found = await self._glance(lambda db: search(db, *asked, GLANCE_DOCS))
            if found is not None:
                return found
        return await self._read(lambda db: search(db, *asked)) or []

    async def export(self, tenant: str) -> AsyncIterator[MemoryEntry]:
        cursor: str | None = None
        while True:
            page = await self.list(tenant, include_history=True, oldest_first=True, limit=EXPORT_PAGE, cursor=cursor)
            for entry in page.entries:
                yield entry
            cursor = page.cursor
            if cursor is None:
                return

    async def erase(self, tenant: str) -> int:
        try:
            gone = await self._write(lambda db: shared_ops.erase(db, storable(tenant)))
        finally:
            self._changed(tenant)
        await self._scrub()
        return gone

    # -- vectors -----------------------------------------------------------------------------------------------------
    async def put_vectors(self, tenant: str, model: str, vectors: Mapping[str, bytes]) -> None:
        await self._write(lambda db: search_ops.put_vectors(db, storable(tenant), model, vectors))

    async def vectors(self, tenant: str, model: str, scopes: Sequence[str] = ALL_SCOPES) -> VectorSet:
        return await self._read(lambda db: search_ops.vectors(db, storable(tenant), model, scopes))

    async def without_vector(self, tenant: str, model: str, limit: int) -> builtins.list[MemoryEntry]:
        return await self._read(lambda db: search_ops.without_vector(db, storable(tenant), model, limit))

    async def by_ids(self, tenant: str, ids: Sequence[str]) -> dict[str, MemoryEntry]:
        return await self._read(lambda db: search_ops.by_ids(db, storable(tenant), ids))

    # -- conversation decisions --------------------------------------------------------------------------------------
    async def load_decisions(self, tenant: str, session: str) -> builtins.list[Decision]:
        return await self._read(lambda db: state_ops.load_decisions(db, storable(tenant), storable(session)))

    async def save_decisions(self, decisions: Mapping[tuple[str, str], Sequence[Decision]]) -> None:
        rows = [
            (storable(tenant), storable(session), decision)
            for (tenant, session), made in decisions.items()
            for decision in made
        ]
        if not rows:
            return
        now = time.time()
        self._unpruned += len(rows)
        prune = self._unpruned > self.limits.max_decisions * PRUNE_AFTER
        self._unpruned = 0 if prune else self._unpruned
        await self._write(lambda db: state_ops.save_decisions(db, rows, now, self.limits if prune else None))

    async def find_decisions(self, tenant: str, chains: Sequence[bytes]) -> builtins.list[Decision]:
        return await self._read(lambda db: state_ops.find_decisions(db, storable(tenant), chains))

    # -- sessions ----------------------------------------------------------------------------------------------------
    async def touch_session(
        self, tenant: str, session: str, project: str = "", turns: int = 0, title: str = "", now: float | None = None
    ) -> None:
        at = time.time() if now is None else now
        await self._write(
            lambda db: state_ops.touch_session(
                db, storable(tenant), storable(session), storable(project), turns, storable(title), at
            )
        )

    async def sessions(self, tenant: str, limit: int = 100) -> builtins.list[Session]:
        return await self._read(lambda db: state_ops.sessions(db, storable(tenant), limit))

    async def finish_session(self, tenant: str, session: str, now: float | None = None) -> bool:
        at = time.time() if now is None else now
        return await self._write(lambda db: state_ops.finish_session(db, storable(tenant), storable(session), at))

    async def idle_sessions(self, before: float, limit: int = 100) -> builtins.list[tuple[str, str]]:
        return await self._read(lambda db: state_ops.idle_sessions(db, before, limit))

    # -- working state -----------------------------------------------------------------------------------------------
    async def get_working(self, tenant: str, session: str) -> bytes | None:
        return await self._glance(lambda db: state_ops.get_working(db, storable(tenant), storable(session)))

    async def set_working(self, tenant: str, session: str, data: bytes | None) -> None:
        now = time.time()
        try:
            await self._write(lambda db: state_ops.set_working(db, storable(tenant), storable(session), data, now))
        finally:
            self._changed(tenant)

    # -- pending extraction ------------------------------------------------------------------------------------------
    async def add_pending(self, tenant: str, session: str, payload: bytes) -> int:
        now = time.time()
        return await self._write(
            lambda db: state_ops.add_pending(db, storable(tenant), storable(session), payload, now, self.limits)
        )

    async def take_pending(self, limit: int, lease_s: float = 300.0) -> builtins.list[Pending]:
        now = time.time()
        return await self._write(lambda db: state_ops.take_pending(db, limit, lease_s, now))

    async def drop_pending(self, id: int) -> None:
        await self._write(lambda db: state_ops.drop_pending(db, id))

    # -- spill -------------------------------------------------------------------------------------------------------
    async def put_spill(self, tenant: str, id: str, text: str) -> bool:
        import zstandard

        def compress() -> bytes:
            return zstandard.ZstdCompressor(level=SPILL_LEVEL).compress(text.encode("utf-8", "surrogatepass"))

        data = await asyncio.to_thread(compress)
        now = time.time()
        return await self._write(
            lambda db: shared_ops.put_spill(db, storable(tenant), storable(id), data, len(text), now, self.limits)
        )

    async def get_spill(self, tenant: str, id: str) -> str | None:
        import zstandard

        data = await self._read(lambda db: shared_ops.get_spill(db, storable(tenant), storable(id)))
        if data is None:
            return None
        raw = await asyncio.to_thread(lambda: zstandard.ZstdDecompressor().decompress(data))
        return raw.decode("utf-8", "surrogatepass")

    async def list_spill(self, tenant: str, limit: int = 1000) -> builtins.list[SpillInfo]:
        return await self._read(lambda db: shared_ops.list_spill(db, storable(tenant), limit))

    async def prune_spill(self, max_bytes: int, max_age_s: float) -> int:
        oldest = time.time() - max_age_s
        return await self._write(lambda db: shared_ops.prune_spill(db, max_bytes, oldest))

    # -- shared odds and ends ----------------------------------------------------------------------------------------
    async def load_calibration(self) -> builtins.list[CalibrationRow]:
        return await self._read(shared_ops.load_calibration)

    async def save_calibration(self, rows: Sequence[CalibrationRow]) -> None:
        await self._write(lambda db: shared_ops.save_calibration(db, rows))

    async def load_windows(self) -> dict[tuple[str, str], int]:
        return await self._read(shared_ops.load_windows)

    async def save_window(self, route: str, model: str, window: int) -> None:
        await self._write(lambda db: shared_ops.save_window(db, storable(route), storable(model), window))

    async def add_spend(self, key_hash: str, month: str, usd: float) -> float:
        return await self._write(lambda db: shared_ops.add_spend(db, key_hash, month, usd))

    async def get_spend(self, key_hash: str, month: str) -> float:
        return await self._read(lambda db: shared_ops.get_spend(db, key_hash, month))

    async def get_meta(self, key: str) -> bytes | None:
        return await self._read(lambda db: shared_ops.get_meta(db, key))

    async def set_meta(self, key: str, value: bytes) -> None:
        await self._write(lambda db: shared_ops.set_meta(db, key, value))

    async def seed(self) -> bytes:
        return await self._write(shared_ops.seed)

    async def ping(self) -> None:
        await self._read(lambda db: one(db, "SELECT MAX(number) FROM migrations"))
