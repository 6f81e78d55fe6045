"""The spill, and what replicas share: calibration, learned windows, spend, small values; and the erasing of a
tenant."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from gateway.store.db import Db, batches, marks, one
from gateway.store.migrations import TENANT_TABLES
from gateway.store.protocol import CalibrationRow, Limits, QuotaExceeded, SpillInfo

SEED_KEY = "seed"
SEED_BYTES = 16


def put_spill(db: Db, tenant: str, id: str, data: bytes, chars: int, now: float, limits: Limits) -> bool:
    """False where it was there already; its age is renewed."""
    if db.run("UPDATE spill SET created = ? WHERE tenant = ? AND id = ?", (now, tenant, id)):
        return False
    row = one(db, "SELECT SUM(bytes) FROM spill WHERE tenant = ?", (tenant,))
    if int((row[0] if row else 0) or 0) + len(data) > limits.max_spill_bytes:
        raise QuotaExceeded(f"this tenant may spill {limits.max_spill_bytes} bytes")
    db.run(
        "INSERT INTO spill (tenant, id, data, chars, bytes, created) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (tenant, id) DO UPDATE SET created = excluded.created",
        (tenant, id, data, chars, len(data), now),
    )
    return True


def get_spill(db: Db, tenant: str, id: str) -> bytes | None:
    """Compressed, as it was put."""
    row = one(db, "SELECT data FROM spill WHERE tenant = ? AND id = ?", (tenant, id))
    return bytes(row[0]) if row else None


def list_spill(db: Db, tenant: str, limit: int) -> list[SpillInfo]:
    """Newest first."""
    rows = db.rows(
        "SELECT id, chars, bytes, created FROM spill WHERE tenant = ? ORDER BY created DESC, id LIMIT ?",
        (tenant, limit),
    )
    return [SpillInfo(*row) for row in rows]


def prune_spill(db: Db, max_bytes: int, oldest: float) -> int:
    """What was put before `oldest` goes, then the oldest until the rest fits."""
    gone = db.run("DELETE FROM spill WHERE created < ?", (oldest,))
    total = 0
    extra: list[tuple[str, str]] = []
    for tenant, id, size in db.rows("SELECT tenant, id, bytes FROM spill ORDER BY created DESC, tenant, id"):
        total += int(size)
        if total > max_bytes:
            extra.append((tenant, id))
    db.many("DELETE FROM spill WHERE tenant = ? AND id = ?", extra)
    return gone + len(extra)


def load_calibration(db: Db) -> list[CalibrationRow]:
    """All rows."""
    return [CalibrationRow(*row) for row in db.rows("SELECT route, model, ratio, weight FROM calibration")]


def save_calibration(db: Db, rows: Sequence[CalibrationRow]) -> None:
    """Write or replace; in one order, so that two replicas saving the same rows can't deadlock."""
    ordered = sorted(rows, key=lambda row: (row.route, row.model))
    db.many(
        "INSERT INTO calibration (route, model, ratio, weight) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (route, model) DO UPDATE SET ratio = excluded.ratio, weight = excluded.weight",
        [(row.route, row.model, row.ratio, row.weight) for row in ordered],
    )


def load_windows(db: Db) -> dict[tuple[str, str], int]:
    """Tokens by (route, model)."""
    return {(route, model): int(tokens) for route, model, tokens in db.rows("SELECT route, model, tokens FROM windows")}


def save_window(db: Db, route: str, model: str, window: int) -> None:
    """Write or replace."""
    db.run(
        "INSERT INTO windows (route, model, tokens) VALUES (?, ?, ?) "
        "ON CONFLICT (route, model) DO UPDATE SET tokens = excluded.tokens",
        (route, model, window),
    )


def add_spend(db: Db, key_hash: str, month: str, usd: float) -> float:
    """The month's new total."""
    (row,) = db.rows(
        "INSERT INTO spend (key_hash, month, usd) VALUES (?, ?, ?) "
        "ON CONFLICT (key_hash, month) DO UPDATE SET usd = spend.usd + excluded.usd RETURNING usd",
        (key_hash, month, usd),
    )
    return float(row[0])


def get_spend(db: Db, key_hash: str, month: str) -> float:
    """0.0 where nothing was spent."""
    row = one(db, "SELECT usd FROM spend WHERE key_hash = ? AND month = ?", (key_hash, month))
    return float(row[0]) if row else 0.0


def get_meta(db: Db, key: str) -> bytes | None:
    """A small shared value."""
    row = one(db, "SELECT value FROM meta WHERE key = ?", (key,))
    return bytes(row[0]) if row else None


def set_meta(db: Db, key: str, value: bytes) -> None:
    """Write or replace."""
    db.run(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def seed(db: Db) -> bytes:
    """Made by whoever comes first."""
    db.run(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING",
        (SEED_KEY, secrets.token_bytes(SEED_BYTES)),
    )
    found = get_meta(db, SEED_KEY)
    assert found is not None
    return found


def erase(db: Db, tenant: str) -> int:
    """Every row of the tenant in every table; the number of entries that went."""
    spaces = [row[0] for row in db.rows("SELECT space FROM spaces WHERE tenant = ? ORDER BY space", (tenant,))]
    for space in spaces:
        db.run("UPDATE spaces SET docs = docs WHERE space = ?", (space,))
    for some in batches(spaces):
        db.run(f"DELETE FROM postings WHERE space IN ({marks(len(some))})", some)  # noqa: S608
    gone = {table: db.run(f"DELETE FROM {table} WHERE tenant = ?", (tenant,)) for table in TENANT_TABLES}  # noqa: S608
    return gone["entries"]
