"""Every other `/v1/*`: any method, any body, to the upstream and back, untouched and streamed both ways.

A key's rate and budget hold here too. Its `models` hold where a body is JSON: for such a key (and only for one) the
body is read whole before it is sent on, as a chat's is; forms, which carry files, are never looked into.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence

import structlog
from starlette.types import Receive, Scope, Send

from gateway.api.wire import ClientGone, Upload, send_chunk, send_error, send_start
from gateway.body import as_object, decode
from gateway.errors import GatewayError
from gateway.intake import caller_of
from gateway.services import Services
from gateway.tenants import Caller, Gatekeeper
from gateway.upstream.http import UpstreamReply, request_headers

log = structlog.get_logger(__name__)

PREFIX = b"/v1"
BODILESS = frozenset(("GET", "HEAD", "DELETE", "OPTIONS"))
MIB = 1024 * 1024


def is_bound(caller: Caller) -> bool:
    """Whether its key may use some models only, so that a body has to be looked at before it is passed on."""
    return caller.key is not None and "*" not in caller.key.models


def allow(gatekeeper: Gatekeeper, caller: Caller, body: bytes) -> None:
    """Hold a request to its key's rate, budget and, where its body is JSON and names a model, models.

    Raises:
        Forbidden, RateLimited: as `Gatekeeper.allow`.
    """
    gatekeeper.allow(caller, _model(body) if is_bound(caller) else None)


def _model(body: bytes) -> str | None:
    try:
        model = as_object(decode(body)).get("model")
    except (ValueError, RecursionError):
        return None
    return model if isinstance(model, str) else None


def _is_form(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """An upload of files: too large to be held, and never JSON."""
    kind = next((value for name, value in headers if name == b"content-type"), b"")
    return kind.strip().lower().startswith(b"multipart/form-data")


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
        upload = Upload(receive, self._most)
        try:
            caller = caller_of(self._services, scope["headers"])
            async with upload.cancelled_with_client():
                reply = await self._forward(scope, upload, upstream, caller)
                status, started = reply.status, True
                await send_start(send, reply.status, [*reply.headers, (b"x-gateway-request-id", request_id.encode())])
                while chunk := await reply.read():
                    await send_chunk(send, chunk)
                await send_chunk(send, b"", more=False)
        except ClientGone:
            status = 499
        except GatewayError as failed:
            error = upload.refusal or failed
            status = status or error.status
            log.warning("passthrough failed", request_id=request_id, error=error.message)
            if started:
                raise
            await send_error(send, error, [(b"x-gateway-request-id", request_id.encode())])
        finally:
            if reply is not None:
                reply.close()
            self._services.metrics.passthrough.labels(upstream, str(status)).inc()

    async def _forward(self, scope: Scope, upload: Upload, upstream: str, caller: Caller) -> UpstreamReply:
        headers = scope["headers"]
        path = scope.get("raw_path") or scope["path"].encode()
        path = path.split(b"?", 1)[0].removeprefix(PREFIX)
        query = scope.get("query_string", b"")
        target = (path + (b"?" + query if query else b"")).decode("latin-1")
        lengths = [value for name, value in headers if name == b"content-length"]
        chunked = any(name == b"transfer-encoding" for name, _ in headers)
        if any(length.isdigit() and int(length) > self._most for length in lengths):
            raise upload.too_large()
        body: bytes | AsyncIterator[bytes] | None
        if chunked or any(length != b"0" for length in lengths):
            body = aiter(upload)
        else:
            body = None if scope["method"] in BODILESS else b""
        if body and is_bound(caller) and not _is_form(headers):
            body = b"".join([piece async for piece in upload])
        allow(self._services.gatekeeper, caller, body if isinstance(body, bytes) else b"")
        kept = request_headers(headers, keep_length=bool(lengths) and not chunked and body is not None)
        return await self._services.upstreams.pass_on(upstream, scope["method"], target, kept, body)
