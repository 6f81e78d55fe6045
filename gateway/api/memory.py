"""`/v1/memory/…`: what the gateway remembers, in its owner's hands.

Nothing below this path ever goes upstream. The tenant is the credential and `X-Memory-User`, as in a chat request; no
name in a path, a query or a body can reach another's.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import orjson
import structlog
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from gateway.api.facts import Facts
from gateway.api.openapi import PREFIX, document
from gateway.api.operation import Answered, Asked, Operation, find, read_json, read_query
from gateway.api.sessions import Sessions
from gateway.api.spill import Spill
from gateway.api.table import operations
from gateway.api.whole import Whole
from gateway.api.wire import (
    ClientGone,
    cancelled_with_client,
    read_body,
    send_chunk,
    send_error,
    send_json,
    send_start,
)
from gateway.errors import BodyTooLarge, GatewayError
from gateway.intake import caller_of, header
from gateway.memory.edit import Editor
from gateway.memory.filters import Judge
from gateway.memory.scribe import Scribe
from gateway.services import Services

log = structlog.get_logger(__name__)

MIB = 1024 * 1024
DOCUMENT_PATH = f"{PREFIX}/openapi.json".encode()
PIECE = 64 * 1024
"""Bytes gathered before a stream of lines is written to the wire."""


class MemoryEndpoint:
    """The ASGI application behind `/v1/memory` and all below it."""

    def __init__(self, services: Services, scribe: Scribe) -> None:
        self._services = services
        judge = Judge()
        self.table = operations(
            Facts(services.store, services.memory, Editor(services.store, judge)),
            Sessions(services.store, scribe),
            Spill(services.store),
            Whole(services, judge),
            services.settings.server.max_body_mb * MIB,
        )
        self._document: bytes | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; no exception leaves."""
        request_id = uuid.uuid4().hex
        named = [(b"x-gateway-request-id", request_id.encode())]
        try:
            await self._answer(scope, receive, send, named)
        except ClientGone:
            pass
        except GatewayError as error:
            self._services.metrics.refusals.labels(str(error.status), error.code or error.type).inc()
            await send_error(send, error, named)
        except Exception as error:
            log.error("memory request failed", request_id=request_id, error=type(error).__name__, exc_info=error)
            await send_error(send, GatewayError("The gateway failed on this request.", code="internal_error"), named)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, named: list[tuple[bytes, bytes]]) -> None:
        method, raw_path = scope["method"], scope.get("raw_path") or scope["path"].encode()
        if raw_path.split(b"?", 1)[0] == DOCUMENT_PATH and method in ("GET", "HEAD"):
            await send_json(send, 200, b"" if method == "HEAD" else self._described(), named)
            return
        operation, path = find(self.table, method, raw_path)
        headers = scope["headers"]
        caller = caller_of(self._services, headers)
        raw = await self._body(operation, scope, receive)
        asked = Asked(
            tenant=caller.tenant,
            project=header(headers, b"x-memory-project"),
            session=header(headers, b"x-session-id"),
            headers=headers,
            path=path,
            query=read_query(operation.query, scope.get("query_string", b"")),
            body=None if operation.body is None or operation.raw_body else read_json(operation.body, raw),
            raw=raw,
        )
        async with cancelled_with_client(receive):
            reply = await operation.run(asked)
            await _send(send, reply, named, bodiless=method == "HEAD")

    async def _body(self, operation: Operation, scope: Scope, receive: Receive) -> bytes:
        try:
            return await read_body(scope, receive, operation.largest)
        except BodyTooLarge as error:
            error.message = f"The request body is larger than {operation.largest // MIB} MiB."
            raise

    def _described(self) -> bytes:
        if self._document is None:
            self._document = orjson.dumps(document(self.table, keyed=not self._services.gatekeeper.open))
        return self._document


class MemoryRoute(BaseRoute):
    """Everything at and below `/v1/memory`, whatever characters its names have (a pattern stops at a line feed)."""

    def __init__(self, endpoint: MemoryEndpoint) -> None:
        self._endpoint = endpoint

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """By the decoded path, so that no spelling of it slips through to the upstream."""
        path = scope.get("path", "")
        ours = scope["type"] == "http" and (path == PREFIX or path.startswith(f"{PREFIX}/"))
        return (Match.FULL if ours else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand over."""
        await self._endpoint(scope, receive, send)


async def _send(send: Send, reply: Answered, named: list[tuple[bytes, bytes]], *, bodiless: bool) -> None:
    headers = [(b"content-type", reply.content_type.encode()), *named]
    headers += [(name.encode(), value.encode("latin-1", "replace")) for name, value in reply.headers.items()]
    body = reply.body
    if isinstance(body, bytes):
        await send_start(send, reply.status, [*headers, (b"content-length", str(len(body)).encode())])
        await send_chunk(send, b"" if bodiless else body, more=False)
        return
    if bodiless:
        await send_start(send, reply.status, headers)
        await send_chunk(send, b"", more=False)
        return
    pieces = _gathered(body)
    first = await anext(pieces, b"")  # a store that can't be read is still an error, not a broken stream
    await send_start(send, reply.status, headers)
    await send_chunk(send, first)
    async for piece in pieces:
        await send_chunk(send, piece)
    await send_chunk(send, b"", more=False)


async def _gathered(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    waiting: list[bytes] = []
    size = 0
    async for line in lines:
        waiting.append(line)
        size += len(line)
        if size >= PIECE:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)
