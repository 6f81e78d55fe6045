"""The schema of a blank database, name by name, and that opening migrates once, in any number of processes at once."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.errors import Unavailable
from gateway.store.migrations import MIGRATIONS, TENANT_TABLES
from gateway.store.open import open_store

SCHEMA = {
    "migrations": "number applied",
    "entries": "seq tenant id scope slot live type content timestamp token_count project session source_role language "
    "message_hash trust key value aliases valid_from valid_to superseded_by metadata text_hash space terms",
    "spaces": "space tenant scope next_slot docs total_len",
    "postings": "space term chunk n data",
    "vectors": "tenant model entry_id data",
    "sessions": "tenant session project title turns created updated finished",
    "decisions": "tenant session chain kind payload created",
    "working": "tenant session data updated",
    "pending": "id tenant session payload created attempts leased_until",
    "spill": "tenant id data chars bytes created",
    "calibration": "route model ratio weight",
    "windows": "route model tokens",
    "spend": "key_hash month usd",
    "meta": "key value",
}
INDEXES = {
    "entries_id", "entries_order", "entries_type", "entries_session", "entries_hash", "entries_key", "entries_slot",
    "entries_dead", "spaces_tenant", "sessions_idle", "decisions_chain", "decisions_age", "pending_tenant", "spill_age",
}  # fmt: skip


async def open_and_close(directory: Path) -> sqlite3.Connection:
    store = await open_store(data_dir=directory)
    await store.close()
    return sqlite3.connect(directory / "breakwater.db")


async def test_a_blank_database_has_exactly_this_schema(tmp_path: Path) -> None:
    db = await open_and_close(tmp_path)
    names = [
        row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    ]
    schema = {name: " ".join(row[1] for row in db.execute(f"PRAGMA table_info({name})")) for name in names}
    indexes = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")}
    versions = [row[0] for row in db.execute("SELECT number FROM migrations ORDER BY number")]
    db.close()
    assert schema == SCHEMA
    assert indexes == INDEXES
    assert versions == [1, 2, 3] == list(range(1, len(MIGRATIONS) + 1))


def test_every_table_with_a_tenant_is_erased() -> None:
    assert set(TENANT_TABLES) == {name for name, columns in SCHEMA.items() if "tenant" in columns.split()}


async def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    db = await open_and_close(tmp_path)
    with db:
        db.execute("INSERT INTO migrations VALUES (999, 0)")
    db.close()
    with pytest.raises(RuntimeError, match="newer"):
        await open_store(data_dir=tmp_path)


async def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    db = await open_and_close(tmp_path / "new")
    db.close()
    assert (tmp_path / "new" / "breakwater.db").stat().st_mode & 0o077 == 0
    assert (tmp_path / "new").stat().st_mode & 0o077 == 0


async def test_what_is_not_a_database_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "breakwater.db").write_bytes(b"not a database, but long enough to look like something" * 40)
    with pytest.raises(Unavailable, match="can't be opened"):
        await open_store(data_dir=tmp_path)
    with pytest.raises(Unavailable, match="can't be opened"):
        await open_store(data_dir=tmp_path / "breakwater.db")


def test_processes_that_start_together_make_one_schema(tmp_path: Path) -> None:
    code = (
        "import asyncio, pathlib, sys\n"
        "from gateway.store.open import open_store\n"
        "async def main():\n"
        "    store = await open_store(data_dir=pathlib.Path(sys.argv[1]))\n"
        "    print((await store.seed()).hex())\n"
        "    await store.close()\n"
        "asyncio.run(main())\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    seeds = {process.communicate(timeout=60)[0].strip() for process in running}
    assert [process.returncode for process in running] == [0] * 4
    assert len(seeds) == 1 and len(seeds.pop()) == 32
