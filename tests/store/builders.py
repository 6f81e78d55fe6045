"""Entries to put into stores."""

from __future__ import annotations

import itertools
from typing import Any

from gateway.memory.entries import EntryType, MemoryEntry

_numbers = itertools.count(1)


def entry(content: str, tenant: str = "t1", **fields: Any) -> MemoryEntry:
    """A fact of tenant `t1`, with any field of MemoryEntry replaced."""
    filled: dict[str, Any] = {"type": EntryType.FACT, "timestamp": 1_700_000_000.0, "id": f"e{next(_numbers)}"}
    return MemoryEntry(tenant=tenant, content=content, **filled | fields)
