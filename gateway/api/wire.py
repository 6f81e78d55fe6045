"""The ASGI side of things: reading bodies, watching for clients that hang up, sending answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from starlette.types import Receive, Scope, Send

from gateway.errors import BodyTooLarge, GatewayError


class ClientGone(Exception):
    """The client hung up."""


async def read_body(scope: Scope, receive: Receive, most: int) -> bytes:
    """The whole body.

    Raises:
        BodyTooLarge: over `most` bytes, announced or sent.
        ClientGone: hung up before its end.
    """
    announced = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
    if announced.isdigit() and int(announced) > most:
        raise _too_large(most)
    parts: list[bytes] = []
    size = 0
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise ClientGone
        chunk = event.get("body", b"")
        size += len(chunk)
        if size > most:
            raise _too_large(most)
        if chunk:
            parts.append(chunk)
        if not event.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(most: int) -> BodyTooLarge:
    return BodyTooLarge(f"The request body is larger than {most // (1024 * 1024)} MiB (server.max_body_mb).")


async def body_chunks(receive: Receive) -> AsyncIterator[bytes]:
    """The body piece by piece, as it comes in. Raises ClientGone."""
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise ClientGone
        if chunk := event.get("body", b""):
            yield chunk
        if not event.get("more_body"):
            return


@asynccontextmanager
async def cancelled_with_client(receive: Receive) -> AsyncIterator[None]:
    """Runs the block until it ends or the client hangs up; then it is cancelled and ClientGone raised.

    To be entered once the request's body has been read: from then on `receive` tells of the disconnect alone.
    """
    task = asyncio.current_task()
    assert task is not None
    gone = False

    async def watch() -> None:
        nonlocal gone
        while (await receive())["type"] != "http.disconnect":
            pass
        gone = True
        task.cancel()

    watcher = asyncio.create_task(watch())
    try:
        yield
    except asyncio.CancelledError:
        if gone and task.uncancel() == 0:
            raise ClientGone from None
        raise
    finally:
        watcher.cancel()


async def send_start(send: Send, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
    """The head of an answer."""
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})


async def send_chunk(send: Send, chunk: bytes, *, more: bool = True) -> None:
    """A piece of its body."""
    await send({"type": "http.response.body", "body": chunk, "more_body": more})


async def send_json(send: Send, status: int, body: bytes, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    """A whole JSON answer."""
    fixed: list[Any] = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send_start(send, status, [*fixed, *headers])
    await send_chunk(send, body, more=False)


async def send_error(send: Send, error: GatewayError, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    """A refusal, in OpenAI's error shape."""
    extra = [(name.encode(), value.encode()) for name, value in error.headers.items()]
    await send_json(send, error.status, error.body(), [*extra, *headers])
