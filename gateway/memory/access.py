"""One tenant's memory as the command line reaches it: in the store itself, or through a gateway that is running.

Both ways give the same JSON objects as the REST API.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Protocol

from gateway.errors import BadRequest, Forbidden, GatewayError, NotFound, Unauthorized, UpstreamUnreachable
from gateway.memory.transfer import ImportReport, LineError, entry_json, export_lines, read_lines, write_batch
from gateway.types import JsonObject

if TYPE_CHECKING:
    import httpx

    from gateway.store.protocol import Store

PAGE = 500
TIMEOUT_S = 60.0
"""For a gateway that has to read or write a large memory first."""


class Access(Protocol):
    """What the commands need. Every method raises GatewayError where it can't be done."""

    def entries(self, filters: Mapping[str, str], *, history: bool) -> AsyncIterator[JsonObject]:
        """Entries that have these fields, newest first; those in quarantine only where they are asked for."""
        ...

    async def add(self, text: str, project: str) -> JsonObject:
        """Remember a sentence; the change, as the API gives it."""
        ...

    async def search(self, query: str, limit: int, project: str) -> list[JsonObject]:
        """`{"score", "entry"}`, best first."""
        ...

    def export(self) -> AsyncIterator[bytes]:
        """JSON lines, in pieces of any size."""
        ...

    async def bring_in(self, raw: bytes, *, partial: bool) -> ImportReport:
        """Import JSON lines."""
        ...

    async def clear(self) -> int:
        """Erase everything; the number of entries that went."""
        ...

    async def close(self) -> None:
        """Let go."""
        ...


class Local:
    """The tenant's part of a store, opened here. A gateway may be running on the same file or database."""

    def __init__(self, store: Store, tenant: str) -> None:
        self._store = store
        self._tenant = tenant

    async def entries(self, filters: Mapping[str, str], *, history: bool) -> AsyncIterator[JsonObject]:
        cursor: str | None = None
        while True:
            page = await self._store.list(
                self._tenant,
                scope=filters.get("scope"),
                type=filters.get("type"),
                project=filters.get("project"),
                session=filters.get("session"),
                include_history=history,
                limit=PAGE,
                cursor=cursor,
            )
            for entry in page.entries:
                yield entry_json(entry)
            cursor = page.cursor
            if cursor is None:
                return

    async def add(self, text: str, project: str) -> JsonObject:
        from gateway.memory.edit import outcome_of
        from gateway.memory.extract import Extractor
        from gateway.tokens.fast import text_tokens

        extractor = Extractor(None, self._store, text_tokens)
        report = await extractor.remember(text, tenant=self._tenant, project=project, now=time.time())
        written = outcome_of(report)
        entry = None if written.entry is None else entry_json(written.entry)
        return {"outcome": written.outcome, "superseded": written.superseded, "entry": entry}

    async def search(self, query: str, limit: int, project: str) -> list[JsonObject]:
        from gateway.memory.retrieve import Retriever

        hits = await Retriever(self._store).retrieve(self._tenant, query, limit, project=project or None)
        return [{"score": hit.score, "entry": entry_json(hit.entry)} for hit in hits]

    def export(self) -> AsyncIterator[bytes]:
        return export_lines(self._store, self._tenant)

    async def bring_in(self, raw: bytes, *, partial: bool) -> ImportReport:
        from gateway.memory.filters import Judge

        batch = await asyncio.to_thread(read_lines, raw, self._tenant, Judge(), time.time())
        return await write_batch(self._store, self._tenant, batch, partial=partial)

    async def clear(self) -> int:
        return await self._store.erase(self._tenant)

    async def close(self) -> None:
        await self._store.close()


class Remote:
    """The memory API of a running gateway. `url`: where it listens, with or without `/v1`."""

    def __init__(self, url: str, key: str, user: str) -> None:
        import httpx

        headers = {b"authorization": b"Bearer " + os.fsencode(key)} if key else {}
        if user:
            headers[b"x-memory-user"] = user.encode()
        base = url.rstrip("/").removesuffix("/v1")
        self._client = httpx.AsyncClient(base_url=f"{base}/v1/memory", headers=headers, timeout=TIMEOUT_S)

    async def entries(self, filters: Mapping[str, str], *, history: bool) -> AsyncIterator[JsonObject]:
        asked = {"limit": str(PAGE), "history": "true" if history else "false", **filters}
        held = {"limit": str(PAGE)}
        for path, query in (("/facts", asked), ("/quarantine", held)):
            cursor: str | None = ""
            while cursor is not None:
                page = await self._json("GET", path, params={**query, **({"cursor": cursor} if cursor else {})})
                for entry in page["data"]:
                    if all(entry[name] == value for name, value in filters.items()):
                        yield entry
                cursor = page["next_cursor"]

    async def add(self, text: str, project: str) -> JsonObject:
        return await self._json("POST", "/facts", json={"content": text, "project": project})

    async def search(self, query: str, limit: int, project: str) -> list[JsonObject]:
        params = {"q": query, "limit": str(limit), "project": project}
        found: list[JsonObject] = (await self._json("GET", "/search", params=params))["data"]
        return found

    async def export(self) -> AsyncIterator[bytes]:
        import httpx

        try:
            async with self._client.stream("GET", "/export") as reply:
                if reply.status_code != 200:
                    await reply.aread()
                    raise _error(reply)
                async for piece in reply.aiter_bytes():
                    yield piece
        except httpx.HTTPError as error:
            raise UpstreamUnreachable(f"The gateway can't be reached: {error}") from error

    async def bring_in(self, raw: bytes, *, partial: bool) -> ImportReport:
        params = {"partial": "true" if partial else "false"}
        try:
            done = await self._json("POST", "/import", params=params, content=raw)
        except _Refused as refused:
            errors = [LineError(item["line"], item["message"]) for item in refused.lines]
            return ImportReport(errors=errors, refused=True)
        errors = [LineError(item["line"], item["message"]) for item in done["errors"]]
        names = ("added", "existing", "history", "quarantined", "sessions")
        return ImportReport(**{name: done[name] for name in names}, errors=errors)

    async def clear(self) -> int:
        return int((await self._json("DELETE", "", params={"confirm": "true"}))["entries"])

    async def close(self) -> None:
        await self._client.aclose()

    async def _json(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, str] | None = None,
        json: JsonObject | None = None,
        content: bytes | None = None,
    ) -> JsonObject:
        import httpx

        try:
            reply = await self._client.request(method, path, params=params, json=json, content=content)
        except httpx.HTTPError as error:
            raise UpstreamUnreachable(f"The gateway can't be reached: {error or type(error).__name__}") from error
        if reply.status_code >= 300:
            raise _error(reply)
        document: JsonObject = reply.json()
        return document


class _Refused(BadRequest):
    """An import that was refused, line by line."""

    lines: list[JsonObject]


def _error(reply: httpx.Response) -> GatewayError:
    """The gateway's own error, as it was there."""
    try:
        said: JsonObject = reply.json()["error"]
        message = str(said["message"])
    except (ValueError, KeyError, TypeError):
        return UpstreamUnreachable(f"No gateway answers there: status {reply.status_code}.")
    if said.get("lines"):
        refused = _Refused(message)
        refused.lines = said["lines"]
        return refused
    kinds: dict[int, type[GatewayError]] = {401: Unauthorized, 403: Forbidden, 404: NotFound}
    return kinds.get(reply.status_code, BadRequest)(message)
