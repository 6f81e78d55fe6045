"""The ASGI side of things: reading bodies, watching for clients that hang up, sending answers."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from starlette.types import Receive, Scope, Send

from gateway.errors import BodyTooLarge, GatewayError

QUEUED_PIECES = 8
"""Pieces of an upload (64 KiB each, mostly) that may wait for the upstream to take them."""


WATCH_AFTER_S = 0.02
"""A client is watched for hanging up from so long after its request; no model answers sooner."""


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


class cancelled_with_client:  # read as a function: `async with cancelled_with_client(receive):`
    """Runs the block until it ends or the client hangs up; then it is cancelled and ClientGone raised.

    To be entered once the request's body has been read: from then on `receive` tells of the disconnect alone. The
    watching begins after `WATCH_AFTER_S`, so that an answer that comes sooner costs no task.
    """

    __slots__ = ("_gone", "_receive", "_task", "_timer", "_watcher")

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._gone = False
        self._watcher: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._timer = asyncio.get_running_loop().call_later(WATCH_AFTER_S, self._begin)

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()
        if kind is asyncio.CancelledError and self._gone and self._task.uncancel() == 0:
            raise ClientGone from None

    def _begin(self) -> None:
        self._watcher = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        self._task.cancel()


class Upload:
    """A body passed on as it comes in, while its client is watched to the end of the answer.

    One reader takes the request's events: the body's pieces wait in a short queue, a disconnect cancels the block.
    """

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._most = most
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue(maxsize=QUEUED_PIECES)
        self._gone = False
        self.refusal: BodyTooLarge | None = None

    def too_large(self) -> BodyTooLarge:
        """The refusal of a body over the limit."""
        return _too_large(self._most)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while piece := await self._pieces.get():
            yield piece
        if self.refusal is not None:
            raise self.refusal

    @asynccontextmanager
    async def cancelled_with_client(self) -> AsyncIterator[None]:
        """As the function of that name, from before the body has been read."""
        task = asyncio.current_task()
        assert task is not None
        reader = asyncio.create_task(self._read(task))
        try:
            yield
        except asyncio.CancelledError:
            if self._gone and task.uncancel() == 0:
                raise ClientGone from None
            raise
        finally:
            reader.cancel()

    async def _read(self, task: asyncio.Task[Any]) -> None:
        size, more = 0, True
        while True:
            event = await self._receive()
            if event["type"] == "http.disconnect":
                self._gone = True
                task.cancel()
                return
            if not more:
                continue
            piece = event.get("body", b"")
            size += len(piece)
            more = bool(event.get("more_body"))
            if size > self._most:
                self.refusal, more, piece = _too_large(self._most), False, b""
            if piece:
                await self._pieces.put(piece)
            if not more:
                await self._pieces.put(b"")


_COUNTER = itertools.count()
_PROCESS = secrets.token_hex(8)


def new_request_id() -> str:
    """Unique over processes and starts, without a system call for each."""
    return f"{_PROCESS}{next(_COUNTER):08x}"


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
