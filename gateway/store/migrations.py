"""The schema, as numbered functions that are only ever appended to. One text serves SQLite and PostgreSQL but for a few
type names.

Every table that holds a tenant's data is in `TENANT_TABLES`, so that erasing a tenant can't forget one.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from gateway.store.db import Db, one

TENANT_TABLES = ("entries", "vectors", "sessions", "decisions", "working", "pending", "spill", "spaces")
"""`postings` has no tenant column: it hangs on `spaces` and goes with it."""

SQLITE = {"serial": "INTEGER PRIMARY KEY AUTOINCREMENT", "blob": "BLOB", "clustered": " WITHOUT ROWID"}
POSTGRES = {"serial": "BIGSERIAL PRIMARY KEY", "blob": "BYTEA", "clustered": ""}


def _m1_memory() -> tuple[str, ...]:
    """Entries, and the index over them: a space is one tenant's scope, a posting list one term's in a chunk of a
    space."""
    return (
        """CREATE TABLE entries (seq {serial}, tenant TEXT NOT NULL, id TEXT NOT NULL, scope TEXT NOT NULL, slot BIGINT,
        live INTEGER NOT NULL, type TEXT NOT NULL, content TEXT NOT NULL, timestamp DOUBLE PRECISION NOT NULL,
        token_count INTEGER NOT NULL, project TEXT NOT NULL, session TEXT NOT NULL, source_role TEXT NOT NULL, language
        TEXT NOT NULL, message_hash TEXT NOT NULL, trust TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, aliases
        TEXT NOT NULL, valid_from DOUBLE PRECISION NOT NULL, valid_to DOUBLE PRECISION, superseded_by TEXT NOT NULL,
        metadata TEXT NOT NULL, text_hash TEXT NOT NULL, space BIGINT, terms {blob})""",
        "CREATE UNIQUE INDEX entries_id ON entries (tenant, id)",
        "CREATE INDEX entries_order ON entries (tenant, seq)",
        "CREATE INDEX entries_type ON entries (tenant, type, seq)",
        "CREATE INDEX entries_session ON entries (tenant, session, seq)",
        "CREATE INDEX entries_hash ON entries (tenant, text_hash)",
        "CREATE INDEX entries_key ON entries (tenant, key) WHERE key <> ''",
        "CREATE INDEX entries_dead ON entries (tenant) WHERE live = 0",
        "CREATE UNIQUE INDEX entries_slot ON entries (space, slot) WHERE slot IS NOT NULL",
        """CREATE TABLE spaces (space {serial}, tenant TEXT NOT NULL, scope TEXT NOT NULL, next_slot BIGINT NOT NULL,
        docs BIGINT NOT NULL, total_len BIGINT NOT NULL)""",
        "CREATE UNIQUE INDEX spaces_tenant ON spaces (tenant, scope)",
        """CREATE TABLE postings (space BIGINT NOT NULL, term BIGINT NOT NULL, chunk BIGINT NOT NULL, n INTEGER NOT
        NULL, data {blob} NOT NULL, PRIMARY KEY (space, term, chunk)){clustered}""",
        """CREATE TABLE vectors (tenant TEXT NOT NULL, model TEXT NOT NULL, entry_id TEXT NOT NULL, data {blob} NOT
        NULL, PRIMARY KEY (tenant, model, entry_id)){clustered}""",
    )


def _m2_conversations() -> tuple[str, ...]:
    """What is remembered of a conversation so that its later turns come out the same."""
    return (
        """CREATE TABLE sessions (tenant TEXT NOT NULL, session TEXT NOT NULL, project TEXT NOT NULL, title TEXT NOT
        NULL, turns INTEGER NOT NULL, created DOUBLE PRECISION NOT NULL, updated DOUBLE PRECISION NOT NULL, finished
        DOUBLE PRECISION, PRIMARY KEY (tenant, session))""",
        "CREATE INDEX sessions_idle ON sessions (updated) WHERE finished IS NULL",
        """CREATE TABLE decisions (tenant TEXT NOT NULL, session TEXT NOT NULL, chain {blob} NOT NULL, kind TEXT NOT
        NULL, payload {blob} NOT NULL, created DOUBLE PRECISION NOT NULL, PRIMARY KEY (tenant, session, chain,
        kind))""",
        "CREATE INDEX decisions_chain ON decisions (tenant, chain)",
        "CREATE INDEX decisions_age ON decisions (tenant, created)",
        """CREATE TABLE working (tenant TEXT NOT NULL, session TEXT NOT NULL, data {blob} NOT NULL,
        updated DOUBLE PRECISION NOT NULL, PRIMARY KEY (tenant, session))""",
        """CREATE TABLE pending (id {serial}, tenant TEXT NOT NULL, session TEXT NOT NULL, payload {blob} NOT NULL,
        created DOUBLE PRECISION NOT NULL, attempts INTEGER NOT NULL, leased_until DOUBLE PRECISION NOT NULL)""",
        "CREATE INDEX pending_tenant ON pending (tenant, id)",
        """CREATE TABLE spill (tenant TEXT NOT NULL, id TEXT NOT NULL, data {blob} NOT NULL, chars BIGINT NOT NULL,
        bytes BIGINT NOT NULL, created DOUBLE PRECISION NOT NULL, PRIMARY KEY (tenant, id))""",
        "CREATE INDEX spill_age ON spill (created)",
    )


def _m3_shared() -> tuple[str, ...]:
    """What replicas share and no tenant owns."""
    return (
        """CREATE TABLE calibration (route TEXT NOT NULL, model TEXT NOT NULL, ratio DOUBLE PRECISION NOT NULL,
        weight DOUBLE PRECISION NOT NULL, PRIMARY KEY (route, model))""",
        """CREATE TABLE windows (route TEXT NOT NULL, model TEXT NOT NULL, tokens BIGINT NOT NULL,
        PRIMARY KEY (route, model))""",
        """CREATE TABLE spend (key_hash TEXT NOT NULL, month TEXT NOT NULL, usd DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (key_hash, month))""",
        "CREATE TABLE meta (key TEXT PRIMARY KEY, value {blob} NOT NULL)",
    )


MIGRATIONS: tuple[Callable[[], tuple[str, ...]], ...] = (_m1_memory, _m2_conversations, _m3_shared)


def version(db: Db) -> int:
    """How many migrations the database has had; needs the `migrations` table."""
    row = one(db, "SELECT MAX(number) FROM migrations")
    return int(row[0] or 0) if row else 0


def migrate(db: Db, dialect: dict[str, str]) -> None:
    """Bring the schema up to date. Call it inside a transaction that keeps every other writer out.

    RuntimeError where the database was written by a newer gateway.
    """
    db.run("CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, applied DOUBLE PRECISION NOT NULL)")
    done = version(db)
    if done > len(MIGRATIONS):
        raise RuntimeError(
            f"the store has schema {done}, this gateway knows {len(MIGRATIONS)}: it was written by a newer one"
        )
    for number, migration in enumerate(MIGRATIONS[done:], done + 1):
        for statement in migration():
            db.run(statement.format(**dialect))
        db.run("INSERT INTO migrations (number, applied) VALUES (?, ?)", (number, time.time()))
