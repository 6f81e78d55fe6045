"""Memories on their way out and in: one JSON object a line, the same over REST, from the command line and between
gateways.

What comes in is judged as if a person had typed it: secrets are refused, what tries to instruct the model goes to
quarantine. The owner is always the tenant that imports; a line's own word on that is not read.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec
import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gateway.memory.entries import EntryType, MemoryEntry, Trust
from gateway.memory.filters import Judge
from gateway.memory.proposals import Proposal
from gateway.memory.working import WorkingMemory
from gateway.store.protocol import Session, Store
from gateway.store.text import normalised_hash
from gateway.tokens.fast import text_tokens
from gateway.types import JsonObject

LATEST_TIME = 1e11
"""Seconds since the epoch, some three thousand years on: a timestamp above is in milliseconds by mistake."""
MAX_CONTENT = 100_000
"""Characters; as `gateway.store.protocol.Limits.max_entry_chars`."""
JUDGED_CHARS = 4_000
"""Looked at in one go by the scanner for secrets; longer content is judged piece by piece."""
JUDGED_OVERLAP = 200
MAX_SESSIONS = 10_000
ERRORS_MOST = 100
"""Bad lines named in one answer."""

Short = Annotated[str, Field(max_length=256)]
Time = Annotated[float, Field(ge=0, le=LATEST_TIME)]


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False, defer_build=True)


class EntryLine(_Line):
    """A memory; only `content` is needed. `tenant` and `token_count` are not read: they are the gateway's to say."""

    object: Literal["memory.entry"] = "memory.entry"
    id: Annotated[str, Field(max_length=128)] = ""
    content: Annotated[str, Field(min_length=1, max_length=MAX_CONTENT)]
    type: EntryType = EntryType.FACT
    timestamp: Time | None = None
    project: Short = ""
    session: Short = ""
    scope: Literal["long", "session", "project"] = "long"
    source_role: Literal["", "user", "assistant", "api"] = "api"
    language: Annotated[str, Field(max_length=64)] = ""
    message_hash: Annotated[str, Field(max_length=128)] = ""
    trust: Trust = Trust.EXPLICIT
    key: Annotated[str, Field(max_length=1000)] = ""
    value: Annotated[str, Field(max_length=4000)] = ""
    aliases: Annotated[list[Annotated[str, Field(max_length=600)]], Field(max_length=64)] = []
    valid_from: Time | None = None
    valid_to: Time | None = None
    superseded_by: Annotated[str, Field(max_length=128)] = ""
    metadata: Annotated[dict[Short, Annotated[str, Field(max_length=4000)]], Field(max_length=64)] = {}


class SessionLine(_Line):
    """A session, with the state of its task where it has one."""

    object: Literal["memory.session"]
    id: Annotated[str, Field(min_length=1, max_length=256)]
    project: Short = ""
    title: Annotated[str, Field(max_length=1000)] = ""
    turns: Annotated[int, Field(ge=0, le=10**9)] = 0
    updated: Time | None = None
    finished: Time | None = None
    working: dict[str, Any] | None = None


_WHOLE = msgspec.json.Decoder(dict[str, list[msgspec.Raw]])


@dataclass(frozen=True, slots=True)
class LineError:
    """Why a line can't be imported; `line` counts from 1."""

    line: int
    message: str


@dataclass(slots=True)
class ImportReport:
    """What an import did; nothing where it was `refused`."""

    added: int = 0
    existing: int = 0
    """Known already, by id or by text."""
    history: int = 0
    """Kept as superseded, or superseded by what came in."""
    quarantined: int = 0
    sessions: int = 0
    errors: list[LineError] = field(default_factory=list)
    refused: bool = False


@dataclass(slots=True)
class Batch:
    """The lines of an import, read."""

    entries: list[MemoryEntry] = field(default_factory=list)
    sessions: list[SessionLine] = field(default_factory=list)
    errors: list[LineError] = field(default_factory=list)
    whole: bool = False
    """One JSON document and not lines: it is good or bad as one."""


def entry_json(entry: MemoryEntry) -> JsonObject:
    """An entry as its owner sees it: all but the tenant's name, which is a hash of the owner's key."""
    shown: JsonObject = {"object": "memory.entry"}
    for item in dataclasses.fields(entry):
        if item.name != "tenant":
            shown[item.name] = getattr(entry, item.name)
    return shown


def session_json(session: Session, working: bytes | None = None) -> JsonObject:
    """A session as its owner sees it."""
    shown: JsonObject = {"object": "memory.session", **dataclasses.asdict(session)}
    if working is not None:
        shown["working"] = orjson.loads(working)
    return shown


async def export_lines(store: Store, tenant: str) -> AsyncIterator[bytes]:
    """Every entry, oldest first, history and quarantine included, then the sessions with their working state."""
    async for entry in store.export(tenant):
        yield orjson.dumps(entry_json(entry)) + b"\n"
    for session in await store.sessions(tenant, MAX_SESSIONS):
        yield orjson.dumps(session_json(session, await store.get_working(tenant, session.id))) + b"\n"


def read_lines(raw: bytes, tenant: str, judge: Judge, now: float) -> Batch:
    """Read and judge JSONL for one tenant; slow for long input, for a thread. Empty lines are left out."""
    items = _items(raw)
    batch = Batch(whole=items is not None)
    for number, line in enumerate(raw.split(b"\n") if items is None else items, 1):
        if not line.strip():
            continue
        try:
            _read_line(line, tenant, judge, now, batch)
        except ValidationError as error:
            batch.errors.append(LineError(number, explain(error)))
        except ValueError as error:
            batch.errors.append(LineError(number, str(error)))
    return batch


def _items(raw: bytes) -> list[bytes] | None:
    """The JSON text of each of a document's `entries`; None where `raw` is no such document."""
    if raw.lstrip()[:1] != b"{":
        return None
    try:
        return [bytes(item) for item in _WHOLE.decode(raw)["entries"]]
    except (msgspec.DecodeError, KeyError):
        return None


def _read_line(line: bytes, tenant: str, judge: Judge, now: float, batch: Batch) -> None:
    data = orjson.loads(line)
    if not isinstance(data, dict):
        raise ValueError("expected a JSON object")
    if data.get("object") == "memory.session":
        session = SessionLine.model_validate_json(line)
        if session.working is not None:
            WorkingMemory.loads(orjson.dumps(session.working))
        batch.sessions.append(session)
        return
    batch.entries.append(_judged(EntryLine.model_validate_json(line), tenant, judge, now))


def _judged(line: EntryLine, tenant: str, judge: Judge, now: float) -> MemoryEntry:
    said = now if line.timestamp is None else line.timestamp
    fields = line.model_dump(exclude={"object", "id", "timestamp", "valid_from", "aliases"})
    entry = MemoryEntry(
        id=line.id or uuid.uuid4().hex,
        tenant=tenant,
        timestamp=said,
        valid_from=said if line.valid_from is None else line.valid_from,
        token_count=text_tokens(line.content),
        aliases=tuple(line.aliases),
        **fields,
    )
    whole = "\n".join((entry.content, entry.value, *entry.aliases, *entry.metadata.values()))
    for piece in _pieces(whole):
        verdict = judge.judge(Proposal("fact", piece), source_text=piece, source_role="api")
        if verdict.outcome == "drop":
            raise ValueError(f"not kept: {verdict.reason}")
        if verdict.outcome == "quarantine" and (entry.scope == "long" or verdict.reason != "URL"):
            return quarantined(entry, verdict.reason)
    return entry


def quarantined(entry: MemoryEntry, reason: str) -> MemoryEntry:
    """The entry as it is kept for a person to look at: it holds no key, so it can't take another's place."""
    metadata = {"quarantine": reason, **entry.metadata}
    return dataclasses.replace(entry, trust=Trust.QUARANTINED, key="", value="", metadata=metadata)


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), JUDGED_CHARS - JUDGED_OVERLAP):
        yield text[start : start + JUDGED_CHARS]


def explain(error: ValidationError) -> str:
    """The first thing that pydantic found wrong, on one line."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    path = ".".join(str(part) for part in first["loc"])
    return f"{path}: {first['msg']}" if path else first["msg"]


async def write_batch(store: Store, tenant: str, batch: Batch, *, partial: bool = False) -> ImportReport:
    """Write what was read. Entries go in one transaction: all of them or, where one can't be written, none.

    A statement known already by its id or its text is left as it is; of two current ones for the same key, the newer
    stays current and the older becomes history. `partial` writes the good lines where others are bad, if there are any.
    """
    report = ImportReport(errors=batch.errors[:ERRORS_MOST])
    some = partial and not batch.whole and (batch.entries or batch.sessions)
    if batch.errors and not some:
        report.refused = True
        return report
    fresh, demoted = await _reconciled(store, tenant, batch.entries)
    report.added = await store.add(fresh)
    report.existing = len(batch.entries) - report.added
    report.quarantined = sum(entry.trust is Trust.QUARANTINED for entry in fresh)
    report.history = sum(entry.valid_to is not None for entry in fresh) + len(demoted)
    for old_id, new in demoted:
        await store.update(tenant, old_id, valid_to=_since(new), superseded_by=new.id)
    for session in batch.sessions:
        await _write_session(store, tenant, session)
    report.sessions = len(batch.sessions)
    return report


async def _write_session(store: Store, tenant: str, line: SessionLine) -> None:
    await store.touch_session(tenant, line.id, line.project, line.turns, line.title, line.updated)
    if line.finished is not None:
        await store.finish_session(tenant, line.id, line.finished)
    if line.working is not None:
        await store.set_working(tenant, line.id, WorkingMemory.loads(orjson.dumps(line.working)).dumps())


async def _reconciled(
    store: Store, tenant: str, entries: Sequence[MemoryEntry]
) -> tuple[list[MemoryEntry], list[tuple[str, MemoryEntry]]]:
    """What to write, and which of the tenant's (by id) become history for it."""
    fresh: dict[str, MemoryEntry] = {}
    texts: set[str] = set()
    holders: dict[str, MemoryEntry] = {}
    demoted: dict[str, MemoryEntry] = {}
    for entry in entries:
        if entry.id in fresh:
            continue
        if not _is_statement(entry):
            if await store.get(tenant, entry.id) is None:
                fresh[entry.id] = entry
            continue
        digest = normalised_hash(entry.content)
        twin = await store.exists_text(tenant, digest)
        if digest in texts or (twin is not None and twin.id != entry.id and twin.scope == "long"):
            continue
        texts.add(digest)
        fresh[entry.id] = entry
        if not entry.key:
            continue
        rival = holders.get(entry.key) or await store.by_key(tenant, entry.key)
        if rival is None or rival.id == entry.id or _since(entry) > _since(rival):
            if rival is not None and rival.id != entry.id:
                demoted.pop(rival.id, None)
                if rival.id in fresh:
                    fresh[rival.id] = _superseded(rival, entry)
                else:
                    demoted[rival.id] = entry
            holders[entry.key] = entry
        else:
            fresh[entry.id] = _superseded(entry, rival)
    return list(fresh.values()), [(old, new) for old, new in demoted.items() if new.id in fresh]


def _is_statement(entry: MemoryEntry) -> bool:
    """Whether two of the same text are one: long-term statements, not turns of a conversation or notes of a session."""
    current = entry.valid_to is None and entry.trust is not Trust.QUARANTINED
    return current and entry.scope == "long" and entry.type in (EntryType.FACT, EntryType.PREFERENCE)


def _superseded(old: MemoryEntry, new: MemoryEntry) -> MemoryEntry:
    return dataclasses.replace(old, valid_to=max(_since(new), _since(old)), superseded_by=new.id)


def _since(entry: MemoryEntry) -> float:
    return entry.valid_from or entry.timestamp
