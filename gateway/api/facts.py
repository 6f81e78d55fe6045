"""Facts, preferences, search and quarantine over HTTP: what the gateway remembers, one memory at a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from gateway.api.models import EntriesQuery, FactChange, FactsQuery, NewFact, NewValue, PageQuery, SearchQuery
from gateway.api.operation import Answered, Asked, answer
from gateway.errors import NotFound
from gateway.memory.edit import Editor, Written, outcome_of, preference_key
from gateway.memory.entries import EntryType, MemoryEntry, Trust
from gateway.memory.service import MemoryService, Source
from gateway.memory.transfer import entry_json
from gateway.store.protocol import Store
from gateway.store.text import normalised_hash

SCANS_MOST = 40
"""Pages read for one page of a filtered listing; past that the client asks again with the cursor."""
SCAN = 500
CREATED = 201
ACCEPTED = 202
"""Kept, but in quarantine: not in use until somebody approves it."""


class Facts:
    """Handlers over one tenant's entries."""

    def __init__(self, store: Store, memory: MemoryService, editor: Editor) -> None:
        self._store = store
        self._memory = memory
        self._editor = editor

    async def list(self, asked: Asked) -> Answered:
        """Long-term memory, newest first; notes of sessions or projects by `scope`."""
        query: FactsQuery = asked.query
        return await self._listed(asked, _not_quarantined, scope=query.scope, type=query.type)

    async def add(self, asked: Asked) -> Answered:
        """Remember a sentence: merged with what is known, superseding what it contradicts."""
        body: NewFact = asked.body
        source = Source(
            asked.tenant,
            asked.session if body.session is None else body.session,
            asked.project if body.project is None else body.project,
        )
        written = outcome_of(await self._memory.remember(body.content, source))
        if written.entry is None:
            twin = await self._store.exists_text(asked.tenant, normalised_hash(body.content))
            written = Written(written.outcome, twin)
        return _changed(written)

    async def get(self, asked: Asked) -> Answered:
        """One entry, history and quarantine included."""
        return answer(entry_json(await self._entry(asked)))

    async def change(self, asked: Asked) -> Answered:
        """Correct an entry in place."""
        body: FactChange = asked.body
        fields: dict[str, Any] = body.model_dump(exclude_unset=True)
        if "aliases" in fields:
            fields["aliases"] = tuple(fields["aliases"])
        return _entry_or_404(await self._editor.change(await self._entry(asked), fields, time.time()), asked.path["id"])

    async def delete(self, asked: Asked) -> Answered:
        """Forget one entry."""
        if not await self._store.delete(asked.tenant, asked.path["id"]):
            raise _unknown(asked.path["id"])
        return _deleted(asked.path["id"])

    async def search(self, asked: Asked) -> Answered:
        """Current memories that have to do with the query, best first."""
        query: SearchQuery = asked.query
        scopes = ("long", "session", "project") if query.scope is None else (query.scope,)
        hits = await self._memory.retriever.retrieve(
            asked.tenant,
            query.q,
            query.limit,
            project=query.project or None,
            session=query.session or None,
            scopes=scopes,
        )
        data = [{"score": hit.score, "entry": entry_json(hit.entry)} for hit in hits]
        return answer({"object": "list", "data": data})

    async def preferences(self, asked: Asked) -> Answered:
        """What the user prefers, newest first."""
        return await self._listed(asked, _not_quarantined, type=EntryType.PREFERENCE)

    async def preference(self, asked: Asked) -> Answered:
        """The current value of one preference."""
        for key in self._keys(asked):
            entry = await self._store.by_key(asked.tenant, key)
            if entry is not None:
                return answer(entry_json(entry))
        raise _unknown(asked.path["key"])

    async def set_preference(self, asked: Asked) -> Answered:
        """Set one preference; the value before it becomes history."""
        body: NewValue = asked.body
        project = asked.project if body.project is None else body.project
        written = await self._editor.set_preference(
            asked.tenant, asked.path["key"], body.value, project=project, now=time.time()
        )
        return _changed(written)

    async def delete_preference(self, asked: Asked) -> Answered:
        """Forget a preference and every value it had."""
        keys = self._keys(asked)
        gone = 0
        cursor: str | None = None
        while True:
            page = await self._store.list(asked.tenant, include_history=True, limit=SCAN, cursor=cursor)
            for entry in page.entries:
                if entry.key in keys:
                    gone += await self._store.delete(asked.tenant, entry.id)
            cursor = page.cursor
            if cursor is None:
                break
        if not gone:
            raise _unknown(asked.path["key"])
        return _deleted(asked.path["key"])

    async def quarantine(self, asked: Asked) -> Answered:
        """What is held back for a person to look at; `metadata.quarantine` says why."""
        return await self._listed(asked, _is_quarantined)

    async def approve(self, asked: Asked) -> Answered:
        """Take an entry out of quarantine into use."""
        entry = await self._quarantined(asked)
        return _entry_or_404(await self._editor.approve(entry, time.time()), entry.id)

    async def reject(self, asked: Asked) -> Answered:
        """Delete an entry in quarantine."""
        entry = await self._quarantined(asked)
        await self._store.delete(asked.tenant, entry.id)
        return _deleted(entry.id)

    def _keys(self, asked: Asked) -> tuple[str, ...]:
        """The spellings under which the preference in the path may be kept."""
        key = asked.path["key"]
        return tuple(dict.fromkeys((preference_key(key, project=asked.project), preference_key(key), key)))[
            : 1 if asked.project else None
        ]

    async def _entry(self, asked: Asked) -> MemoryEntry:
        entry = await self._store.get(asked.tenant, asked.path["id"])
        if entry is None:
            raise _unknown(asked.path["id"])
        return entry

    async def _quarantined(self, asked: Asked) -> MemoryEntry:
        entry = await self._entry(asked)
        if not _is_quarantined(entry):
            raise _unknown(asked.path["id"])
        return entry

    async def _listed(self, asked: Asked, wanted: Callable[[MemoryEntry], bool], **filters: Any) -> Answered:
        query: PageQuery = asked.query
        history = False
        if isinstance(query, EntriesQuery):
            history = query.history
            filters |= {"project": query.project or None, "session": query.session or None}
        found: list[MemoryEntry] = []
        cursor = query.cursor
        for _ in range(SCANS_MOST):
            page = await self._store.list(
                asked.tenant, include_history=history, limit=query.limit - len(found), cursor=cursor, **filters
            )
            found += [entry for entry in page.entries if wanted(entry)]
            cursor = page.cursor
            if cursor is None or len(found) >= query.limit:
                break
        return answer({"object": "list", "data": [entry_json(entry) for entry in found], "next_cursor": cursor})


def _not_quarantined(entry: MemoryEntry) -> bool:
    return entry.trust is not Trust.QUARANTINED


def _is_quarantined(entry: MemoryEntry) -> bool:
    return entry.trust is Trust.QUARANTINED


def _unknown(name: str) -> NotFound:
    return NotFound(f"No memory '{name[:100]}' is kept for you.")


def _deleted(name: str) -> Answered:
    return answer({"object": "memory.deleted", "id": name, "deleted": True})


def _entry_or_404(entry: MemoryEntry | None, name: str) -> Answered:
    if entry is None:
        raise _unknown(name)
    return answer(entry_json(entry))


def _changed(written: Written) -> Answered:
    entry = None if written.entry is None else entry_json(written.entry)
    document = {
        "object": "memory.change",
        "outcome": written.outcome,
        "superseded": written.superseded,
        "entry": entry,
    }
    return answer(document, {"merged": 200, "quarantined": ACCEPTED}.get(written.outcome, CREATED))
