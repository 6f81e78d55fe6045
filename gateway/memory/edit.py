"""What a person does to their memories by hand: set a preference, correct a fact, let something out of quarantine.

Everything written here is explicit: it outranks what was read from conversations. Secrets are refused all the same,
and what reads like an attack on the model goes to quarantine.
"""

from __future__ import annotations

import asyncio
import dataclasses
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gateway.errors import Forbidden
from gateway.memory.dedupe import entry_key
from gateway.memory.entries import EntryType, MemoryEntry, Trust
from gateway.memory.extract import ExtractionReport
from gateway.memory.filters import Judge, Verdict
from gateway.memory.keys import canonical_key
from gateway.memory.proposals import Proposal
from gateway.memory.prose import language_of
from gateway.memory.rules import extract_rules
from gateway.memory.transfer import quarantined
from gateway.store.protocol import Store
from gateway.tokens.fast import text_tokens

Outcome = Literal["kept", "merged", "superseded", "quarantined"]
QUARANTINE = "quarantine"
"""The metadata field that says why an entry is in quarantine."""


@dataclass(frozen=True, slots=True)
class Written:
    """What became of something a person wrote. `entry` is None where an equal memory was there already."""

    outcome: Outcome
    entry: MemoryEntry | None
    superseded: int = 0


def refused(reason: str) -> Forbidden:
    """The answer to what may not be kept."""
    return Forbidden(f"This can't be kept in memory: {reason}.", code="memory_refused")


def outcome_of(report: ExtractionReport) -> Written:
    """What one `remember` did.

    Raises:
        Forbidden: it was dropped: a secret, or the gateway's own block.
    """
    if report.kept:
        return Written("superseded" if report.superseded else "kept", report.kept[0], report.superseded)
    if report.quarantined:
        return Written("quarantined", report.quarantined[0])
    if report.dropped:
        raise refused(report.dropped[0][1])
    return Written("merged", None)


class Editor:
    """Edits the memories of all tenants in one store."""

    def __init__(self, store: Store, judge: Judge) -> None:
        self._store = store
        self._judge = judge

    async def set_preference(self, tenant: str, key: str, value: str, *, project: str = "", now: float) -> Written:
        """Make `value` the current one for `key` (in the project, where one is named); an earlier one becomes history.

        Raises:
            Forbidden: it holds a secret.
        """
        proposal = _preference(key, value, project)
        verdict = await self._verdict(proposal)
        name, held = preference_key(key, value, project), entry_key(proposal, project)[1]
        entry = MemoryEntry(
            id=uuid.uuid4().hex,
            tenant=tenant,
            content=proposal.content,
            type=EntryType.PREFERENCE,
            timestamp=now,
            token_count=text_tokens(proposal.content),
            project=project,
            source_role="api",
            language=language_of(proposal.content),
            trust=Trust.EXPLICIT,
            key=name,
            value=held,
            valid_from=now,
        )
        if not verdict.keep:
            entry = quarantined(entry, verdict.reason)
            await self._store.add([entry])
            return Written("quarantined", entry)
        old = await self._store.by_key(tenant, name)
        if old is not None and old.value == held:
            return Written("merged", old)
        if old is not None and await self._store.supersede(tenant, old.id, entry):
            return Written("superseded", entry, 1)
        await self._store.add([entry])
        return Written("kept", entry)

    async def change(self, entry: MemoryEntry, fields: Mapping[str, object], now: float) -> MemoryEntry | None:
        """Correct an entry in place: `fields` by MemoryEntry's names. None where it is gone by now.

        New content is judged, counted and keyed anew, and from then on counts as the person's own word.

        Raises:
            Forbidden: it holds a secret, or reads like an instruction to the model.
        """
        changes = dict(fields)
        changed = dataclasses.replace(entry, **changes)  # type: ignore[arg-type]
        whole = " ".join((changed.content, changed.value, *changed.aliases, *changed.metadata.values()))
        verdict = await self._verdict(Proposal("fact", whole))
        if not verdict.keep and entry.trust is not Trust.QUARANTINED:
            raise refused(verdict.reason)
        if "content" in changes:
            changes |= await self._restated(changed)
        elif changed.project != entry.project and entry.key.endswith(f"@{entry.project}"):
            base = entry.key.removesuffix(f"@{entry.project}")
            changes["key"] = f"{base}@{changed.project}" if changed.project else base
        return await self._written(entry, changes, now)

    async def approve(self, entry: MemoryEntry, now: float) -> MemoryEntry | None:
        """Let an entry out of quarantine: a person has read it and wants it kept."""
        metadata = {name: value for name, value in entry.metadata.items() if name != QUARANTINE}
        changes = await self._restated(entry)
        changes |= {"trust": Trust.EXPLICIT, "metadata": metadata}
        return await self._written(entry, changes, now)

    async def _verdict(self, proposal: Proposal) -> Verdict:
        verdict = await asyncio.to_thread(self._judge.judge, proposal, source_text=proposal.content, source_role="api")
        if verdict.outcome == "drop":
            raise refused(verdict.reason)
        return verdict

    async def _restated(self, entry: MemoryEntry) -> dict[str, object]:
        """The fields that follow from an entry's content."""
        found = await asyncio.to_thread(extract_rules, entry.content)
        proposal = found[0] if len(found) == 1 else Proposal("fact", entry.content)
        key, value = _still(entry) or entry_key(dataclasses.replace(proposal, content=entry.content), entry.project)
        restated: dict[str, object] = {
            "token_count": text_tokens(entry.content),
            "language": language_of(entry.content),
            "message_hash": "",
            "source_role": "api",
            "key": key,
            "value": value,
        }
        return restated if entry.trust is Trust.QUARANTINED else {**restated, "trust": Trust.EXPLICIT}

    async def _written(self, entry: MemoryEntry, changes: dict[str, object], now: float) -> MemoryEntry | None:
        """Write the changes; another current entry of the same key becomes history."""
        key = changes.get("key")
        rival = await self._store.by_key(entry.tenant, key) if isinstance(key, str) and key else None
        written = await self._store.update(entry.tenant, entry.id, **changes)
        live = written is not None and written.valid_to is None and written.trust is not Trust.QUARANTINED
        if live and rival is not None and rival.id != entry.id:
            await self._store.update(entry.tenant, rival.id, valid_to=now, superseded_by=entry.id)
        return written


def _still(entry: MemoryEntry) -> tuple[str, str] | None:
    """Key and value where the content is still `key: value` for the key that the entry has had; else None."""
    name, colon, value = (part.strip() for part in entry.content.partition(":"))
    base = entry.key.removesuffix(f"@{entry.project}") if entry.project else entry.key
    if not (colon and name and value and base) or preference_key(name, value) != base:
        return None
    return entry.key, entry_key(_preference(name, value, entry.project), entry.project)[1]


def _preference(key: str, value: str, project: str) -> Proposal:
    return Proposal("preference", f"{key}: {value}", key=key, value=value, subject="project" if project else "")


def preference_key(key: str, value: str = "", project: str = "") -> str:
    """The key under which a preference is kept: canonical, and marked with its project. Never empty."""
    name = canonical_key(key, value) or key.strip() or key
    return f"{name}@{project}" if project else name
