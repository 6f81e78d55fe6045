"""What every store promises, so that the rest of the gateway never knows which one it talks to.

All methods are coroutines and none blocks the event loop. A method about data that belongs to a tenant takes the tenant
first, and no method reads across tenants. Times are seconds since the epoch, texts are str, hashes are raw bytes unless
said otherwise. A store that can't answer raises `gateway.errors.Unavailable`; over its quota, `QuotaExceeded`.
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from gateway.errors import GatewayError
from gateway.memory.entries import EntryType, MemoryEntry


class QuotaExceeded(GatewayError):
    """The tenant keeps as much as it may; nothing was written."""

    status = 429
    type = "rate_limit_error"
    code = "memory_quota_exceeded"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one tenant may keep. A hosted gateway lowers these; the defaults only stop a runaway client."""

    max_entries: int = 2_000_000
    """Twice the size the retrieval bench is run at."""
    max_entry_chars: int = 100_000
    """Longer content is cut there: an entry is a memory, not a document (those go to the spill)."""
    max_spill_bytes: int = 1 << 30
    """Compressed bytes, as `spill.max_mb`."""
    max_decisions: int = 20_000
    """Per tenant; the oldest go first."""
    max_decision_age_s: float = 30 * 86_400.0
    """A conversation untouched for a month has no prompt cache left to keep warm."""
    max_pending: int = 1_000
    """Per tenant; the oldest go first."""


@dataclass(frozen=True, slots=True)
class Page:
    """A slice of a listing. `cursor` fetches the next one; None at the end."""

    entries: list[MemoryEntry]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry that the index found, before the retriever's own scoring."""

    entry: MemoryEntry
    bm25: float
    """Okapi BM25 of the entry's own text over the query's terms, weighted by `terms`; >= 0."""
    score: float
    """`bm25` plus a part of what the entries before and after it in the same session score; > 0, best first."""
    ceiling: float
    """The `bm25` that an entry of average length holding each query term once would get; the same for one query's
    candidates."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Something decided for a conversation prefix, to be repeated byte for byte on later turns."""

    chain: bytes
    """16-byte hash of the conversation's messages up to and including the one decided on."""
    kind: str
    payload: bytes
    created: float = 0.0
    """0 lets the store put the time of writing."""


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation of a tenant, as the scribe and the memory API see it."""

    id: str
    project: str
    title: str
    turns: int
    created: float
    updated: float
    finished: float | None


@dataclass(frozen=True, slots=True)
class Pending:
    """Raw messages whose extraction failed, kept for a retry."""

    id: int
    tenant: str
    session: str
    payload: bytes
    created: float
    attempts: int
    """How often `take_pending` has handed it out, this time included."""


@dataclass(frozen=True, slots=True)
class SpillInfo:
    """One full text in the spill, without the text."""

    id: str
    chars: int
    stored_bytes: int
    """Compressed."""
    created: float


@dataclass(frozen=True, slots=True)
class CalibrationRow:
    """Running ratio of true to estimated prompt tokens for a model on a route."""

    route: str
    model: str
    ratio: float
    weight: float


@dataclass(frozen=True, slots=True)
class VectorSet:
    """All vectors of one tenant and model: `entry_ids[i]` belongs to row i of `data` (float16, row-major, `dim`
    wide)."""

    entry_ids: list[str]
    dim: int
    data: bytes = field(repr=False)


class Store(Protocol):
    """Persistence for memory, conversation state, spill and what replicas share."""

    limits: Limits

    # -- memory ------------------------------------------------------------------------------------------------------
    async def add(self, entries: Sequence[MemoryEntry]) -> int:
        """Write entries (of any tenants, all or nothing) and index them; returns how many were new. A known (tenant,
        id) is left as it is."""
        ...

    async def get(self, tenant: str, id: str) -> MemoryEntry | None:
        """The entry, history included."""
        ...

    async def update(self, tenant: str, id: str, **fields: object) -> MemoryEntry | None:
        """Change fields by MemoryEntry's names (not `id`, `tenant`); None where there is no such entry. ValueError on
        an unknown name."""
        ...

    async def delete(self, tenant: str, id: str) -> bool:
        """Whether there was one to delete."""
        ...

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
        """In order of writing, newest first by default. Superseded entries only with `include_history`. ValueError on a
        bad cursor."""
        ...

    def changes(self, tenant: str) -> int:
        """How often this process has changed what the tenant keeps; for caches, which also age by the clock."""
        ...

    async def is_empty(self, tenant: str) -> bool:
        """Whether the tenant has neither entries nor working state; cheaper than counting."""
        ...

    async def count(self, tenant: str) -> int:
        """Entries kept, history included."""
        ...

    async def by_key(self, tenant: str, key: str) -> MemoryEntry | None:
        """The current (not superseded) entry of that key."""
        ...

    async def supersede(self, tenant: str, old_id: str, new_entry: MemoryEntry) -> bool:
        """In one transaction: the old entry becomes history (`valid_to`, `superseded_by`) and the new one is written.
        False: no such old entry, or already history; then nothing is written."""
        ...

    async def exists_text(self, tenant: str, normalised_hash: str) -> MemoryEntry | None:
        """The current entry whose content has that `normalised_hash` (gateway.store.text.normalised_hash), or None."""
        ...

    async def candidates(
        self,
        tenant: str,
        terms: Mapping[str, float] | Sequence[str],
        limit: int,
        scopes: Sequence[str] = ("long", "session", "project"),
        project: str | None = None,
        session: str | None = None,
    ) -> builtins.list[Candidate]:
        """Best entries for weighted terms (gateway.memory.tokenise), best first. Never history, never quarantined.

        `project`: entries of another named project in scopes `session` and `project` are left out (long-term memory
        is the tenant's). `session`: only that session's entries in scope `session`.
        """
        ...

    async def containing(
        self, tenant: str, text: str, limit: int, scopes: Sequence[str] = ("long", "session", "project")
    ) -> builtins.list[Candidate]:
        """Live entries whose content contains `text` whatever its ASCII case, newest first, of the newest few
        thousand."""
        ...

    def export(self, tenant: str) -> AsyncIterator[MemoryEntry]:
        """Every entry, oldest first, history included."""
        ...

    async def erase(self, tenant: str) -> int:
        """Remove all that is kept of the tenant, from tables, indexes, freed pages and the log; returns the number of
        entries."""
        ...

    # -- vectors -----------------------------------------------------------------------------------------------------
    async def put_vectors(self, tenant: str, model: str, vectors: Mapping[str, bytes]) -> None:
        """Store float16 vectors (raw little-endian bytes) by entry id; ids that don't exist are left out."""
        ...

    async def vectors(
        self, tenant: str, model: str, scopes: Sequence[str] = ("long", "session", "project")
    ) -> VectorSet:
        """Vectors of the tenant's live entries."""
        ...

    async def without_vector(self, tenant: str, model: str, limit: int) -> builtins.list[MemoryEntry]:
        """Live entries that have no vector of that model yet."""
        ...

    async def by_ids(self, tenant: str, ids: Sequence[str]) -> dict[str, MemoryEntry]:
        """Live entries by id; unknown ids are missing from the answer."""
        ...

    # -- conversation decisions --------------------------------------------------------------------------------------
    async def load_decisions(self, tenant: str, session: str) -> builtins.list[Decision]:
        """All decisions of a session, oldest first."""
        ...

    async def save_decisions(self, decisions: Mapping[tuple[str, str], Sequence[Decision]]) -> None:
        """Write or replace, by tenant and session; now and then prunes these tenants' by the limits' age and count."""
        ...

    async def find_decisions(self, tenant: str, chains: Sequence[bytes]) -> builtins.list[Decision]:
        """Decisions on any of these prefixes from whichever session; of several for one (chain, kind), the newest."""
        ...

    # -- sessions ----------------------------------------------------------------------------------------------------
    async def touch_session(
        self, tenant: str, session: str, project: str = "", turns: int = 0, title: str = "", now: float | None = None
    ) -> None:
        """Create or refresh; `turns` is the new total (never lowers it), an empty `title` or `project` keeps the old
        one; reopens a finished session."""
        ...

    async def sessions(self, tenant: str, limit: int = 100) -> builtins.list[Session]:
        """Newest activity first."""
        ...

    async def finish_session(self, tenant: str, session: str, now: float | None = None) -> bool:
        """Mark as finished; False where it already was or does not exist, so that one caller of many does the work."""
        ...

    async def idle_sessions(self, before: float, limit: int = 100) -> builtins.list[tuple[str, str]]:
        """(tenant, session) of unfinished sessions last touched before that time."""
        ...

    # -- working state -----------------------------------------------------------------------------------------------
    async def get_working(self, tenant: str, session: str) -> bytes | None:
        """The session's working memory as `set_working` left it."""
        ...

    async def set_working(self, tenant: str, session: str, data: bytes | None) -> None:
        """None removes it."""
        ...

    # -- pending extraction ------------------------------------------------------------------------------------------
    async def add_pending(self, tenant: str, session: str, payload: bytes) -> int:
        """Keep raw messages for a retry; returns the id."""
        ...

    async def take_pending(self, limit: int, lease_s: float = 300.0) -> builtins.list[Pending]:
        """Lease the oldest for `lease_s`: no other caller or replica gets them meanwhile. `drop_pending` when done."""
        ...

    async def drop_pending(self, id: int) -> None:
        """Done, or given up."""
        ...

    # -- spill -------------------------------------------------------------------------------------------------------
    async def put_spill(self, tenant: str, id: str, text: str) -> bool:
        """Keep a full text under its sha256 hex; False where it was there already (its age is renewed). QuotaExceeded
        past `max_spill_bytes`."""
        ...

    async def get_spill(self, tenant: str, id: str) -> str | None:
        """The text, exactly."""
        ...

    async def list_spill(self, tenant: str, limit: int = 1000) -> builtins.list[SpillInfo]:
        """Newest first."""
        ...

    async def prune_spill(self, max_bytes: int, max_age_s: float) -> int:
        """Over all tenants: drop what is older than `max_age_s`, then the oldest until the rest fits `max_bytes`;
        returns how many went."""
        ...

    # -- shared odds and ends ----------------------------------------------------------------------------------------
    async def load_calibration(self) -> builtins.list[CalibrationRow]:
        """All rows."""
        ...

    async def save_calibration(self, rows: Sequence[CalibrationRow]) -> None:
        """Write or replace by (route, model)."""
        ...

    async def load_windows(self) -> dict[tuple[str, str], int]:
        """Learned context windows in tokens by (route, model)."""
        ...

    async def save_window(self, route: str, model: str, window: int) -> None:
        """Write or replace."""
        ...

    async def add_spend(self, key_hash: str, month: str, usd: float) -> float:
        """Add atomically; returns the month's new total. `month` is like `2026-11`."""
        ...

    async def get_spend(self, key_hash: str, month: str) -> float:
        """0.0 where nothing was spent."""
        ...

    async def get_meta(self, key: str) -> bytes | None:
        """A small shared value."""
        ...

    async def set_meta(self, key: str, value: bytes) -> None:
        """Write or replace."""
        ...

    async def seed(self) -> bytes:
        """16 random bytes, made once per store and the same for every replica."""
        ...

    async def ping(self) -> None:
        """Raises Unavailable where the store can't be read."""
        ...

    async def close(self) -> None:
        """Finish queued writes and let go; the store can't be used after."""
        ...
