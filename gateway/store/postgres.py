"""The shared store: PostgreSQL 14 or later, for any number of gateway replicas.

The operations are the SQLite store's own, run on a few threads with a pooled connection each: one SQL text, one
behaviour, one set of tests. Where two replicas touch the same rows the operations lock in a fixed order; should
PostgreSQL still have to break a tie, the loser is run again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from gateway.errors import SettingsError, Unavailable
from gateway.store.base import SqlStore
from gateway.store.db import Operation, Row
from gateway.store.migrations import POSTGRES, TENANT_TABLES, migrate
from gateway.store.protocol import Limits

if TYPE_CHECKING:
    import psycopg
    from psycopg_pool import ConnectionPool

T = TypeVar("T")
log = logging.getLogger(__name__)

CONNECTIONS = 8
"""Of one replica: PostgreSQL's default takes a hundred in all."""
CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_MS = 1_500
"""Under the 2 s that recall may take."""
WRITE_TIMEOUT_MS = 30_000
ATTEMPTS = 4
"""Runs of a write that lost a deadlock or a race for a unique name."""
MIGRATION_LOCK = 0x6272656B
"""Key of the advisory lock that replicas starting together queue on; any number that is ours."""


@lru_cache(maxsize=512)
def _translated(sql: str) -> str:
    """`?` to `%s`; no statement of ours has either in a literal."""
    return sql.replace("?", "%s")


class _PostgresDb:
    """`Db` over one connection. Byte columns come back in binary form: half the size on the wire."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection

    def _execute(self, sql: str, params: Sequence[object]) -> psycopg.Cursor[Any]:
        cursor = self.connection.cursor(binary=True)
        return cursor.execute(cast(Any, _translated(sql)), params or None)

    def rows(self, sql: str, params: Sequence[object] = ()) -> list[Row]:
        return self._execute(sql, params).fetchall()

    def run(self, sql: str, params: Sequence[object] = ()) -> int:
        return self._execute(sql, params).rowcount

    def many(self, sql: str, params: Iterable[Sequence[object]]) -> None:
        self.connection.cursor(binary=True).executemany(cast(Any, _translated(sql)), params)

    def joined(self, left: str, right: str) -> str:
        return f"{left} || {right}"


class PostgresStore(SqlStore):
    """`Store` in a PostgreSQL database. Make one with `connect`."""

    def __init__(self, pool: ConnectionPool[Any], limits: Limits | None = None) -> None:
        super().__init__(limits)
        self._pool = pool
        self._closed = False
        self._threads = ThreadPoolExecutor(CONNECTIONS, "store-postgres")

    @classmethod
    async def connect(cls, url: str, limits: Limits | None = None) -> PostgresStore:
        """Connect and bring the schema up to date. Unavailable where the server can't be reached or refuses."""
        try:
            import psycopg
            from psycopg_pool import ConnectionPool, PoolTimeout
        except ImportError as error:
            raise SettingsError(
                "database_url needs the postgres extra: pip install 'breakwater-gateway[postgres]'"
            ) from error
        pool: ConnectionPool[Any] = ConnectionPool(
            url,
            min_size=1,
            max_size=CONNECTIONS,
            timeout=CONNECT_TIMEOUT_S,
            open=False,
            check=ConnectionPool.check_connection,
            kwargs={"application_name": "breakwater", "connect_timeout": int(CONNECT_TIMEOUT_S)},
        )
        store = cls(pool, limits)
        try:
            await asyncio.to_thread(store._start)
        except (psycopg.Error, PoolTimeout) as error:
            await store.close()
            raise Unavailable(f"the database can't be opened: {error}") from error
        except RuntimeError:
            await store.close()
            raise
        return store

    def _start(self) -> None:
        self._pool.open(wait=True, timeout=CONNECT_TIMEOUT_S)
        with self._pool.connection() as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
            migrate(_PostgresDb(connection), POSTGRES)

    async def _run(self, op: Operation[T], timeout_ms: int, read_only: bool) -> T:
        import psycopg
        from psycopg_pool import PoolTimeout

        if self._closed:
            raise Unavailable("the store is closed")
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, self._transact, op, timeout_ms, read_only)
        except (psycopg.Error, PoolTimeout) as error:
            raise Unavailable(f"the database can't answer: {error}") from error

    def _transact(self, op: Operation[T], timeout_ms: int, read_only: bool) -> T:
        from psycopg import errors

        for attempt in range(1, ATTEMPTS + 1):
            try:
                with self._pool.connection() as connection:
                    # one snapshot for all of a read's statements; the time limit ends with the transaction
                    mode = "ISOLATION LEVEL REPEATABLE READ READ ONLY" if read_only else "READ WRITE"
                    connection.execute(cast(Any, f"SET TRANSACTION {mode}"))
                    connection.execute(cast(Any, f"SET LOCAL statement_timeout = {timeout_ms}"))
                    return op(_PostgresDb(connection))
            except (errors.DeadlockDetected, errors.SerializationFailure, errors.UniqueViolation):
                if attempt == ATTEMPTS:
                    raise
                log.debug("a write lost a race and is run again")
        raise AssertionError("unreachable")

    async def _read(self, op: Operation[T]) -> T:
        return await self._run(op, READ_TIMEOUT_MS, read_only=True)

    async def _write(self, op: Operation[T]) -> T:
        return await self._run(op, WRITE_TIMEOUT_MS, read_only=False)

    async def _scrub(self) -> None:
        """Free the dead rows' space. Their bytes in PostgreSQL's own write-ahead log and backups age out by the
        server's rules."""
        import psycopg
        from psycopg_pool import PoolTimeout

        try:
            await asyncio.to_thread(self._vacuum)
        except (psycopg.Error, PoolTimeout) as error:
            log.warning("erased rows wait for the server's own vacuum: %s", error)

    def _vacuum(self) -> None:
        with self._pool.connection() as connection:
            connection.autocommit = True
            try:
                connection.execute(cast(Any, f"VACUUM {', '.join((*TENANT_TABLES, 'postings'))}"))
            finally:
                connection.autocommit = False

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await asyncio.to_thread(self._close_now)

    def _close_now(self) -> None:
        self._threads.shutdown(wait=True)
        self._pool.close()
