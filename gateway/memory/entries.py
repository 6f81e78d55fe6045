"""What a memory is: one typed record, the same in every store, over REST and in an export."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class EntryType(enum.StrEnum):
    """The kinds of entry."""

    CONVERSATION = "CONVERSATION"
    FACT = "FACT"
    SUMMARY = "SUMMARY"
    TOOL_RESULT = "TOOL_RESULT"
    PREFERENCE = "PREFERENCE"
    TASK = "TASK"


class Trust(enum.StrEnum):
    """How an entry came to be, from most to least trusted."""

    EXPLICIT = "explicit"
    """Set by the user: REST, command line, `/save`."""
    STATED = "stated"
    """Said by the user in a conversation, found by rules or by a model."""
    DERIVED = "derived"
    """Written by the gateway about the work: session notes, summaries."""
    QUARANTINED = "quarantined"
    """Kept for a person to look at; never retrieved, never injected."""


@dataclass(slots=True)
class MemoryEntry:
    """One thing remembered. Times are seconds since the epoch; `tenant` is the owner, and nothing crosses it."""

    id: str
    tenant: str
    content: str
    type: EntryType
    timestamp: float
    """When it was said; kept on load and import."""
    token_count: int = 0
    project: str = ""
    session: str = ""
    scope: str = "long"
    """`long` (LongTermMemory), `session` (SessionMemory, ConversationMemory), `project` (ProjectMemory)."""
    source_role: str = ""
    """`user`, `assistant`, or `api`; never `tool` or `system`."""
    language: str = ""
    message_hash: str = ""
    """Hex digest of the message it was read from."""
    trust: Trust = Trust.STATED
    key: str = ""
    """A preference's key, or a relation's `subject|predicate`: a newer entry of the same key supersedes."""
    value: str = ""
    """A preference's value, or a relation's object."""
    aliases: tuple[str, ...] = ()
    valid_from: float = 0.0
    valid_to: float | None = None
    """Set when superseded; such an entry is history and is never injected."""
    superseded_by: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    """Anything else: speaker, date, session title. Searchable."""
