"""Conversation state: decisions, sessions, working memory, and raw messages waiting for extraction."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.store.db import Db, batches, marks, one
from gateway.store.protocol import Decision, Limits, Pending, Session

_DECISION = "chain, kind, payload, created"


def load_decisions(db: Db, tenant: str, session: str) -> list[Decision]:
    """Oldest first."""
    rows = db.rows(
        f"SELECT {_DECISION} FROM decisions WHERE tenant = ? AND session = ? ORDER BY created, chain, kind",  # noqa: S608
        (tenant, session),
    )
    return [Decision(bytes(c), kind, bytes(payload), created) for c, kind, payload, created in rows]


def save_decisions(db: Db, rows: Sequence[tuple[str, str, Decision]], now: float, limits: Limits | None) -> None:
    """Write or replace, each with its tenant and session; where `limits` are given prune these tenants'."""
    db.many(
        f"INSERT INTO decisions (tenant, session, {_DECISION}) VALUES (?, ?, ?, ?, ?, ?) "  # noqa: S608
        "ON CONFLICT (tenant, session, chain, kind) "
        "DO UPDATE SET payload = excluded.payload, created = excluded.created",
        [(tenant, session, d.chain, d.kind, d.payload, d.created or now) for tenant, session, d in rows],
    )
    if limits is not None:
        for tenant in sorted({tenant for tenant, _, _ in rows}):
            _prune_decisions(db, tenant, now, limits)


def _prune_decisions(db: Db, tenant: str, now: float, limits: Limits) -> None:
    db.run("DELETE FROM decisions WHERE tenant = ? AND created < ?", (tenant, now - limits.max_decision_age_s))
    row = one(
        db,
        "SELECT created FROM decisions WHERE tenant = ? ORDER BY created DESC LIMIT 1 OFFSET ?",
        (tenant, limits.max_decisions),
    )
    if row:
        db.run("DELETE FROM decisions WHERE tenant = ? AND created <= ?", (tenant, row[0]))


def find_decisions(db: Db, tenant: str, chains: Sequence[bytes]) -> list[Decision]:
    """From whichever session; of several for one (chain, kind), the newest."""
    newest: dict[tuple[bytes, str], Decision] = {}
    for some in batches(chains):
        rows = db.rows(
            f"SELECT {_DECISION} FROM decisions WHERE tenant = ? AND chain IN ({marks(len(some))}) ORDER BY created",  # noqa: S608
            (tenant, *some),
        )
        for chain, kind, payload, created in rows:
            newest[bytes(chain), kind] = Decision(bytes(chain), kind, bytes(payload), created)
    return list(newest.values())


def touch_session(db: Db, tenant: str, session: str, project: str, turns: int, title: str, now: float) -> None:
    """Create or refresh."""
    db.run(
        "INSERT INTO sessions (tenant, session, project, title, turns, created, updated, finished) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, NULL) ON CONFLICT (tenant, session) DO UPDATE SET "
        "project = CASE WHEN excluded.project = '' THEN sessions.project ELSE excluded.project END, "
        "title = CASE WHEN excluded.title = '' THEN sessions.title ELSE excluded.title END, "
        "turns = CASE WHEN excluded.turns > sessions.turns THEN excluded.turns ELSE sessions.turns END, "
        "updated = CASE WHEN excluded.updated > sessions.updated THEN excluded.updated ELSE sessions.updated END, "
        "finished = NULL",
        (tenant, session, project, title, turns, now, now),
    )


def sessions(db: Db, tenant: str, limit: int) -> list[Session]:
    """Newest activity first."""
    rows = db.rows(
        "SELECT session, project, title, turns, created, updated, finished FROM sessions WHERE tenant = ? "
        "ORDER BY updated DESC, session LIMIT ?",
        (tenant, limit),
    )
    return [Session(*row) for row in rows]


def finish_session(db: Db, tenant: str, session: str, now: float) -> bool:
    """True for exactly one caller."""
    return (
        db.run(
            "UPDATE sessions SET finished = ? WHERE tenant = ? AND session = ? AND finished IS NULL",
            (now, tenant, session),
        )
        > 0
    )


def idle_sessions(db: Db, before: float, limit: int) -> list[tuple[str, str]]:
    """Unfinished and untouched since, longest idle first."""
    rows = db.rows(
        "SELECT tenant, session FROM sessions WHERE finished IS NULL AND updated < ? ORDER BY updated LIMIT ?",
        (before, limit),
    )
    return [(row[0], row[1]) for row in rows]


def get_working(db: Db, tenant: str, session: str) -> bytes | None:
    """As it was set."""
    row = one(db, "SELECT data FROM working WHERE tenant = ? AND session = ?", (tenant, session))
    return bytes(row[0]) if row else None


def set_working(db: Db, tenant: str, session: str, data: bytes | None, now: float) -> None:
    """None removes it."""
    if data is None:
        db.run("DELETE FROM working WHERE tenant = ? AND session = ?", (tenant, session))
        return
    db.run(
        "INSERT INTO working (tenant, session, data, updated) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (tenant, session) DO UPDATE SET data = excluded.data, updated = excluded.updated",
        (tenant, session, data, now),
    )


def add_pending(db: Db, tenant: str, session: str, payload: bytes, now: float, limits: Limits) -> int:
    """Keep for a retry; the tenant's oldest go past the limit."""
    (row,) = db.rows(
        "INSERT INTO pending (tenant, session, payload, created, attempts, leased_until) "
        "VALUES (?, ?, ?, ?, 0, 0) RETURNING id",
        (tenant, session, payload, now),
    )
    old = one(
        db, "SELECT id FROM pending WHERE tenant = ? ORDER BY id DESC LIMIT 1 OFFSET ?", (tenant, limits.max_pending)
    )
    if old:
        db.run("DELETE FROM pending WHERE tenant = ? AND id <= ?", (tenant, old[0]))
    return int(row[0])


def take_pending(db: Db, limit: int, lease_s: float, now: float) -> list[Pending]:
    """Lease the oldest free ones. The update checks the lease again, so of two replicas that chose the same one only
    one gets it."""
    rows = db.rows("SELECT id FROM pending WHERE leased_until <= ? ORDER BY id LIMIT ?", (now, limit))
    taken: list[Pending] = []
    for (id,) in rows:
        got = db.rows(
            "UPDATE pending SET leased_until = ?, attempts = attempts + 1 WHERE id = ? AND leased_until <= ? "
            "RETURNING id, tenant, session, payload, created, attempts",
            (now + lease_s, id, now),
        )
        taken += [Pending(i, tenant, s, bytes(payload), created, n) for i, tenant, s, payload, created, n in got]
    return taken


def drop_pending(db: Db, id: int) -> None:
    """Done, or given up."""
    db.run("DELETE FROM pending WHERE id = ?", (id,))
