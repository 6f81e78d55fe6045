"""All of a tenant's memory at once: take it out, bring it in, count it, erase it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

import orjson

from gateway.api.models import EraseQuery, ImportQuery
from gateway.api.operation import LINES_TYPE, Answered, Asked, answer
from gateway.errors import BadRequest
from gateway.memory.entries import Trust
from gateway.memory.filters import Judge
from gateway.memory.transfer import MAX_SESSIONS, ImportReport, export_lines, read_lines, write_batch
from gateway.services import Services
from gateway.types import JsonObject

COUNT_MOST = 20_000
"""Entries up to which they are counted by type: that reads them all."""
SETTLE_S = 5.0
"""How long an erasure waits for what is still being written in the background."""
BACKGROUND = frozenset(("scribe", "decisions", "spill", "compaction"))
"""Names of background work that may write for a tenant (`gateway.tasks.Tasks.spawn`)."""
CONFIRM_HEADER = b"x-confirm-erase"


class ImportRefused(BadRequest):
    """Lines that can't be imported; nothing was written."""

    code = "invalid_import"

    def __init__(self, report: ImportReport) -> None:
        first = report.errors[0]
        count = len(report.errors)
        super().__init__(
            f"{count} of the lines can't be imported, so nothing was written. Line {first.line}: {first.message}",
            param=f"line {first.line}",
        )
        self._lines = [{"line": error.line, "message": error.message} for error in report.errors]

    def body(self) -> bytes:
        """The error, with every bad line named."""
        document = orjson.loads(super().body())
        document["error"]["lines"] = self._lines
        return orjson.dumps(document)


class Whole:
    """Handlers over everything of a tenant."""

    def __init__(self, services: Services, judge: Judge) -> None:
        self._services = services
        self._judge = judge

    async def export(self, asked: Asked) -> Answered:
        """JSON lines, as they are read."""
        headers = {"content-disposition": 'attachment; filename="memory.jsonl"'}
        return Answered(export_lines(self._services.store, asked.tenant), content_type=LINES_TYPE, headers=headers)

    async def bring_in(self, asked: Asked) -> Answered:
        """Read JSON lines, then write them; one bad line and, without `partial`, nothing is written."""
        query: ImportQuery = asked.query
        batch = await asyncio.to_thread(read_lines, asked.raw, asked.tenant, self._judge, time.time())
        report = await write_batch(self._services.store, asked.tenant, batch, partial=query.partial)
        if report.refused:
            raise ImportRefused(report)
        return answer({"object": "memory.import", **report_json(report)})

    async def erase(self, asked: Asked) -> Answered:
        """Remove all that is kept of the tenant, once it is confirmed."""
        query: EraseQuery = asked.query
        header = next((value for name, value in asked.headers if name == CONFIRM_HEADER), b"")
        if not query.confirm and header.strip().lower() != b"true":
            raise BadRequest(
                "This erases everything that is kept of you. Confirm with ?confirm=true or 'X-Confirm-Erase: true'.",
                param="confirm",
                code="confirmation_required",
            )
        await _settled()
        self._services.conversations.forget(asked.tenant)
        self._services.prefixes.forget(asked.tenant)
        self._services.spilled.clear()
        gone = await self._services.store.erase(asked.tenant)
        self._services.conversations.forget(asked.tenant)
        self._services.prefixes.forget(asked.tenant)
        self._services.spilled.clear()
        return answer({"object": "memory.erased", "entries": gone})

    async def stats(self, asked: Asked) -> Answered:
        """How much is kept, and how much may be."""
        store, tenant = self._services.store, asked.tenant
        entries = await store.count(tenant)
        spill = await store.list_spill(tenant, COUNT_MOST)
        document: JsonObject = {
            "object": "memory.stats",
            "entries": entries,
            "by_type": None,
            "history": None,
            "quarantined": None,
            "sessions": len(await store.sessions(tenant, MAX_SESSIONS)),
            "spill": {"texts": len(spill), "bytes": sum(info.stored_bytes for info in spill)},
            "limits": {"entries": store.limits.max_entries, "spill_bytes": store.limits.max_spill_bytes},
        }
        if entries <= COUNT_MOST:
            document |= await self._counted(tenant)
        return answer(document)

    async def _counted(self, tenant: str) -> JsonObject:
        types: Counter[str] = Counter()
        history = held = 0
        async for entry in self._services.store.export(tenant):
            if entry.valid_to is not None:
                history += 1
            elif entry.trust is Trust.QUARANTINED:
                held += 1
            else:
                types[str(entry.type)] += 1
        return {"by_type": dict(sorted(types.items())), "history": history, "quarantined": held}


def report_json(report: ImportReport) -> JsonObject:
    """An import's report, as it is answered."""
    errors = [{"line": error.line, "message": error.message} for error in report.errors]
    names = ("added", "existing", "history", "quarantined", "sessions")
    return {**{name: getattr(report, name) for name in names}, "errors": errors}


async def _settled() -> None:
    """Wait for background work that began before this: a fact still being written would outlive the erasure."""
    own = asyncio.current_task()
    running = {task for task in asyncio.all_tasks() if task is not own and task.get_name() in BACKGROUND}
    if running:
        await asyncio.wait(running, timeout=SETTLE_S)
