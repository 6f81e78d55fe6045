"""The embedded store: one SQLite file in WAL mode, one thread that writes, two that read.

The writer commits in groups: whatever queued up while the last commit ran goes into the next, so many small writes cost
one. A write that has returned survives `kill -9`: it is in the log file, which the kernel keeps. It may not survive a
power cut: `synchronous=NORMAL` syncs at checkpoints only, which loses no consistency, only the last moments. Several
processes may share the file; SQLite's own lock serialises their writers.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

from gateway.errors import Unavailable
from gateway.store.base import SqlStore
from gateway.store.db import Operation, Row
from gateway.store.migrations import SQLITE, migrate
from gateway.store.protocol import Limits

T = TypeVar("T")
log = logging.getLogger(__name__)

READERS = 2
READ_TIMEOUT_S = 1.5
"""Under the 2 s that recall may take: a reader thread never waits longer for a lock."""
WRITE_TIMEOUT_S = 10.0
MAX_GROUP = 256
"""Writes in one commit."""
CACHE_KIB = 8_192
"""Page cache of each connection."""
LOG_LIMIT_BYTES = 16 << 20
"""What the log file is cut back to after a checkpoint."""
VACUUM_MAX_BYTES = 512 << 20
"""Up to this size erasing rewrites the whole file; above, deleted rows are overwritten in place and free pages given
back."""
SCRUB_ATTEMPTS = 20
SCRUB_PAUSE_S = 0.1
OPEN_ATTEMPTS = 50
OPEN_PAUSE_S = 0.1
"""Processes that start together on a new file take turns at making it."""


class _SqliteDb:
    """`Db` over one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def rows(self, sql: str, params: Sequence[object] = ()) -> list[Row]:
        return self.connection.execute(sql, cast(Any, params)).fetchall()

    def run(self, sql: str, params: Sequence[object] = ()) -> int:
        return self.connection.execute(sql, cast(Any, params)).rowcount

    def many(self, sql: str, params: Iterable[Sequence[object]]) -> None:
        self.connection.executemany(sql, cast(Any, params))

    def joined(self, left: str, right: str) -> str:
        return f"CAST({left} || {right} AS BLOB)"


class _Write:
    """A queued write and who waits for it. A solo one runs outside any transaction."""

    __slots__ = ("future", "op", "solo")

    def __init__(self, op: Callable[[_SqliteDb], Any], solo: bool = False) -> None:
        self.op = op
        self.solo = solo
        self.future: Future[Any] = Future()


class SqliteStore(SqlStore):
    """`Store` in one file. Opening makes or migrates it; raises Unavailable where that can't be done."""

    glances = True

    def __init__(self, path: Path, limits: Limits | None = None) -> None:
        super().__init__(limits)
        self.path = path
        self._closed = False
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._db = _SqliteDb(self._open())
        self._local = threading.local()
        self._loop_db: _SqliteDb | None = None
        self._connections: list[sqlite3.Connection] = []
        self._readers = ThreadPoolExecutor(READERS, "store-read", self._start_reader)
        self._writer = threading.Thread(target=self._write_loop, name="store-write", daemon=True)
        self._writer.start()

    # -- opening -----------------------------------------------------------------------------------------------------
    def _connect(self, timeout_s: float) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=timeout_s, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        connection.execute("PRAGMA temp_store=MEMORY")
        return connection

    def _open(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))  # memories are for their owner's eyes
        except OSError as error:
            raise Unavailable(f"the store's file can't be opened: {error}") from error
        for attempt in range(OPEN_ATTEMPTS):
            try:
                return self._prepare_file()
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or attempt + 1 == OPEN_ATTEMPTS:
                    raise Unavailable(f"the store can't be opened: {error}") from error
                time.sleep(OPEN_PAUSE_S)
            except sqlite3.Error as error:
                raise Unavailable(f"the store can't be opened: {error}") from error
        raise Unavailable("the store can't be opened")

    def _prepare_file(self) -> sqlite3.Connection:
        connection = self._connect(WRITE_TIMEOUT_S)
        try:
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute(f"PRAGMA journal_size_limit={LOG_LIMIT_BYTES}")
            connection.execute("PRAGMA secure_delete=ON")
            connection.execute("BEGIN IMMEDIATE")
            migrate(_SqliteDb(connection), SQLITE)
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection

    def _start_reader(self) -> None:
        connection = self._connect(READ_TIMEOUT_S)
        connection.execute("PRAGMA query_only=ON")
        self._local.db = _SqliteDb(connection)
        self._connections.append(connection)

    # -- reading -----------------------------------------------------------------------------------------------------
    async def _read(self, op: Operation[T]) -> T:
        if self._closed:
            raise Unavailable("the store is closed")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._readers, self._read_now, op)
        except sqlite3.Error as error:
            raise Unavailable(f"the store can't be read: {error}") from error

    async def _glance(self, op: Operation[T]) -> T:
        """On the loop itself: a point query takes 15 µs there and ten times that by way of a thread."""
        if self._closed:
            raise Unavailable("the store is closed")
        try:
            if self._loop_db is None:
                connection = self._connect(0)  # a locked file must not hold the loop: the thread waits instead
                connection.execute("PRAGMA query_only=ON")
                self._loop_db = _SqliteDb(connection)
                self._connections.append(connection)
            return self._in_snapshot(self._loop_db, op)
        except sqlite3.OperationalError:
            return await self._read(op)

    def _read_now(self, op: Operation[T]) -> T:
        return self._in_snapshot(self._local.db, op)

    @staticmethod
    def _in_snapshot(db: _SqliteDb, op: Operation[T]) -> T:
        """One snapshot for all the operation's statements."""
        db.connection.execute("BEGIN")
        try:
            return op(db)
        finally:
            db.connection.execute("COMMIT")

    # -- writing -----------------------------------------------------------------------------------------------------
    async def _write(self, op: Operation[T]) -> T:
        return cast(T, await self._submit(_Write(op)))

    async def _submit(self, write: _Write) -> Any:
        if self._closed:
            raise Unavailable("the store is closed")
        self._queue.put(write)
        try:
            return await asyncio.wrap_future(write.future)
        except sqlite3.Error as error:
            raise Unavailable(f"the store can't be written: {error}") from error

    def _write_loop(self) -> None:
        while (item := self._queue.get()) is not None:
            group = [item]
            last = False
            while len(group) < MAX_GROUP and not group[-1].solo:
                try:
                    following = self._queue.get_nowait()
                except queue.Empty:
                    break
                if following is None:
                    last = True
                    break
                group.append(following)
            solo = group.pop() if group[-1].solo else None
            if group:
                self._commit([write for write in group if write.future.set_running_or_notify_cancel()])
            if solo and solo.future.set_running_or_notify_cancel():
                _settle(solo, *_attempt(solo.op, self._db))
            if last:
                return

    def _commit(self, group: list[_Write]) -> None:
        """One transaction for all; each in a savepoint of its own, so that one's failure is only its own."""
        execute = self._db.connection.execute
        outcomes: list[tuple[Any, BaseException | None]] = []
        try:
            execute("BEGIN IMMEDIATE")
            for write in group:
                execute("SAVEPOINT one")
                result, error = _attempt(write.op, self._db)
                if error is not None:
                    execute("ROLLBACK TO one")
                execute("RELEASE one")
                outcomes.append((result, error))
            execute("COMMIT")
        except sqlite3.Error as failure:
            with suppress(sqlite3.Error):
                execute("ROLLBACK")
            outcomes = [(None, failure)] * len(group)
        for write, outcome in zip(group, outcomes, strict=True):
            _settle(write, *outcome)

    # -- erasing and closing -----------------------------------------------------------------------------------------
    async def _scrub(self) -> None:
        await self._submit(_Write(self._scrub_now, solo=True))

    def _scrub_now(self, db: _SqliteDb) -> None:
        """Empty the log into the file, then rewrite the file or give its free pages back, and empty the log again."""
        for step in ("checkpoint", "vacuum", "checkpoint"):
            for _ in range(SCRUB_ATTEMPTS):
                try:
                    if step == "vacuum":
                        small = self.path.stat().st_size <= VACUUM_MAX_BYTES
                        db.rows("VACUUM" if small else "PRAGMA incremental_vacuum")
                        break
                    if db.rows("PRAGMA wal_checkpoint(TRUNCATE)")[0][0] == 0:
                        break
                except sqlite3.OperationalError as error:
                    log.debug("scrub waits: %s", error)
                time.sleep(SCRUB_PAUSE_S)  # another process is reading an older snapshot
            else:
                log.warning("erased rows may linger in %s until its other readers are done", self.path)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._queue.put(None)
        await asyncio.to_thread(self._close_now)

    def _close_now(self) -> None:
        self._writer.join()
        self._readers.shutdown(wait=True)
        for connection in self._connections:
            connection.close()
        self._db.connection.close()


def _attempt(op: Callable[[_SqliteDb], Any], db: _SqliteDb) -> tuple[Any, BaseException | None]:
    try:
        return op(db), None
    except Exception as error:  # noqa: BLE001  it belongs to whoever awaits the write; the writer thread must go on
        return None, error


def _settle(write: _Write, result: Any, error: BaseException | None) -> None:
    if error is None:
        write.future.set_result(result)
    else:
        write.future.set_exception(error)
