"""Every other `/v1/*`: any method, any body, to the upstream and back, untouched and streamed both ways."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import structlog
from starlette.types import Receive, Scope, Send

from gateway.api.wire import (
    ClientGone,
    body_chunks,
    cancelled_with_client,
    send_chunk,
    send_error,
    send_start,
)
from gateway.errors import BodyTooLarge, GatewayError
from gateway.intake import caller_of
from gateway.services import Services
from gateway.upstream.http import UpstreamReply, request_headers

log = structlog.get_logger(__name__)

PREFIX = b"/v1"
BODILESS = frozenset(("GET", "HEAD", "DELETE", "OPTIONS"))
MIB = 1024 * 1024


class Passthrough:
    """The ASGI application behind the catch-all route."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._most = services.settings.server.max_body_mb * MIB

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on; no exception leaves but a broken reply's, which closes the connection."""
        request_id = uuid.uuid4().hex
        upstream = self._services.router.default().name
        status, started = 0, False
        reply: UpstreamReply | None = None
        try:
            caller_of(self._services, scope["headers"])
            reply = await self._forward(scope, receive, upstream)
            status = reply.status
            async with cancelled_with_client(receive):
                started = True
                await send_start(send, reply.status, [*reply.headers, (b"x-gateway-request-id", request_id.encode())])
                while chunk := await reply.read():
                    await send_chunk(send, chunk)
                await send_chunk(send, b"", more=False)
        except ClientGone:
            status = 499
        except GatewayError as error:
            status = status or error.status
            log.warning("passthrough failed", request_id=request_id, error=error.message)
            if started:
                raise
            await send_error(send, error, [(b"x-gateway-request-id", request_id.encode())])
        finally:
            if reply is not None:
                reply.close()
            self._services.metrics.passthrough.labels(upstream, str(status)).inc()

    async def _forward(self, scope: Scope, receive: Receive, upstream: str) -> UpstreamReply:
        headers = scope["headers"]
        path = scope.get("raw_path") or scope["path"].encode()
        path = path.split(b"?", 1)[0].removeprefix(PREFIX)
        query = scope.get("query_string", b"")
        target = (path + (b"?" + query if query else b"")).decode("latin-1")
        names = {name for name, _ in headers}
        has_body = b"transfer-encoding" in names or any(n == b"content-length" and v != b"0" for n, v in headers)
        if not has_body:
            async with cancelled_with_client(receive):
                body = None if scope["method"] in BODILESS else b""
                return await self._services.upstreams.pass_on(
                    upstream, scope["method"], target, request_headers(headers), body
                )
        self._check_length(headers)
        return await self._services.upstreams.pass_on(
            upstream,
            scope["method"],
            target,
            request_headers(headers, keep_length=b"transfer-encoding" not in names),
            self._bounded(receive),
        )

    def _check_length(self, headers: list[tuple[bytes, bytes]]) -> None:
        for name, value in headers:
            if name == b"content-length" and value.isdigit() and int(value) > self._most:
                raise self._too_large()

    async def _bounded(self, receive: Receive) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in body_chunks(receive):
            size += len(chunk)
            if size > self._most:
                raise self._too_large()
            yield chunk

    def _too_large(self) -> BodyTooLarge:
        return BodyTooLarge(f"The request body is larger than {self._most // MIB} MiB (server.max_body_mb).")
