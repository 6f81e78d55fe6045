"""Memory entries as table rows, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import orjson

from gateway.memory.entries import EntryType, MemoryEntry, Trust
from gateway.store.db import Row
from gateway.store.index import Doc, make_doc
from gateway.store.text import normalised_hash, storable

COLUMNS = (
    "id, tenant, content, type, timestamp, token_count, project, session, scope, source_role, language, message_hash, "
    "trust, key, value, aliases, valid_from, valid_to, superseded_by, metadata"
)
"""In the order of MemoryEntry's fields; `to_entry` and `to_row` rely on it."""
FIELDS = tuple(name.strip() for name in COLUMNS.split(","))

CONTENT_WEIGHT = 1.0
ALIAS_WEIGHT = 1.0
"""An alias is another spelling of the content, not a remark about it."""
METADATA_WEIGHT = 0.5
"""Speaker, date, title: they narrow a search and shouldn't carry one alone."""


def to_entry(row: Row) -> MemoryEntry:
    """From a row of `COLUMNS`."""
    entry = MemoryEntry(*row)
    entry.type = EntryType(row[3])
    entry.trust = Trust(row[12])
    entry.aliases = tuple(orjson.loads(row[15])) if row[15] != "[]" else ()
    entry.metadata = orjson.loads(row[19]) if row[19] != "{}" else {}
    return entry


def to_row(entry: MemoryEntry) -> list[Any]:
    """Values for `COLUMNS`."""
    values = [getattr(entry, name) for name in FIELDS]
    values[3], values[12] = str(EntryType(entry.type)), str(Trust(entry.trust))
    values[15] = orjson.dumps(entry.aliases).decode()
    values[19] = orjson.dumps(entry.metadata).decode()
    return values


def tidy(entry: MemoryEntry, max_chars: int) -> MemoryEntry:
    """A copy that any database can hold: no NUL, no lone surrogates, content within the limit."""
    changes: dict[str, Any] = {
        name: storable(value) for name in FIELDS if isinstance(value := getattr(entry, name), str)
    }
    changes["content"] = changes["content"][:max_chars]
    changes["aliases"] = tuple(storable(str(alias)) for alias in entry.aliases)
    changes["metadata"] = {storable(str(k)): storable(str(v)) for k, v in entry.metadata.items()}
    return dataclasses.replace(entry, **changes)


def is_live(entry: MemoryEntry) -> bool:
    """Whether it may be found: current, and not in quarantine."""
    return entry.valid_to is None and entry.trust != Trust.QUARANTINED


def index_form(entry: MemoryEntry) -> Doc | None:
    """What the index holds of it; None where it may not be found."""
    if not is_live(entry):
        return None
    session = entry.session or entry.metadata.get("session", "")
    return make_doc(_texts(entry), session, entry.content)


def _texts(entry: MemoryEntry) -> Iterable[tuple[str, float]]:
    yield entry.content, CONTENT_WEIGHT
    for alias in entry.aliases:
        yield alias, ALIAS_WEIGHT
    for text in (entry.key, entry.value, *entry.metadata.values()):
        if text:
            yield text, METADATA_WEIGHT


@dataclasses.dataclass(frozen=True, slots=True)
class Prepared:
    """An entry made ready outside the transaction: tokenising is the slow part of a write."""

    entry: MemoryEntry
    doc: Doc | None
    text_hash: str


def prepare(entry: MemoryEntry, max_chars: int) -> Prepared:
    """Tidy, tokenise and hash."""
    entry = tidy(entry, max_chars)
    return Prepared(entry, index_form(entry), normalised_hash(entry.content))
