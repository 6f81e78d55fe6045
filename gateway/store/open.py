"""Which store to open, from the two settings that say so."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gateway.store.protocol import Limits

if TYPE_CHECKING:
    from gateway.store.protocol import Store

FILE_NAME = "breakwater.db"


async def open_store(
    data_dir: Path | None = None, database_url: str | None = None, limits: Limits | None = None
) -> Store:
    """PostgreSQL where `database_url` (postgresql://…) is given, else SQLite in `data_dir`.

    Raises Unavailable where it can't be opened, ValueError where neither is given or the URL isn't PostgreSQL's, and
    SettingsError where the `postgres` extra isn't installed.
    """
    import asyncio

    if database_url:
        if not database_url.startswith(("postgresql://", "postgres://")):
            raise ValueError("database_url must start with postgresql://")
        from gateway.store.postgres import PostgresStore

        return await PostgresStore.connect(database_url, limits)
    if data_dir is None:
        raise ValueError("either data_dir or database_url is needed")
    from gateway.store.sqlite import SqliteStore

    return await asyncio.to_thread(lambda: SqliteStore(data_dir.expanduser() / FILE_NAME, limits))
