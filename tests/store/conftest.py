"""Stores to test: SQLite always, PostgreSQL where its server is installed (always in CI)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from gateway.store.open import open_store
from gateway.store.protocol import Store
from tests.store.postgres_server import PostgresServer, start_or_skip


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for the whole run; each test makes its own database in it."""
    server = start_or_skip()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """An empty store."""
    if request.param == "sqlite":
        opened = await open_store(data_dir=tmp_path)
    else:
        server: PostgresServer = request.getfixturevalue("postgres_server")
        opened = await open_store(database_url=server.new_database())
    try:
        yield opened
    finally:
        await opened.close()
