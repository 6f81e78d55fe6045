"""One HTTP/1.1 connection to an upstream, and the reply that comes in on it.

llhttp does the parsing (httptools, as in uvicorn). What is here: when to wait and for how long, when to stop reading
because nobody takes what has come, and whether a connection may be used again. Nothing is decoded or renamed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import cast

import httptools

HELD_MOST = 256 * 1024
"""Bytes of a reply that wait for their reader before reading from the socket stops."""
HEAD_MOST = 256 * 1024
"""Bytes of a reply's head; more is no HTTP server that anybody meant."""
SLICE = 256 * 1024
"""Bytes handed to the socket at once of a large body, so that no write holds the loop for long."""
INTERIM = range(100, 200)
SWITCHING = 101


class Disconnected(OSError):
    """The connection ended before the reply was whole."""


class NotHttp(OSError):
    """What came is no HTTP/1.1 reply."""


Body = bytes | AsyncIterator[bytes] | None


class Connection(asyncio.Protocol):
    """A connection that carries one exchange at a time: `exchange`, then `read` to the end, then `reusable` tells."""

    __slots__ = (
        "_bodiless",
        "_bounded",
        "_error",
        "_expecting",
        "_head_size",
        "_held",
        "_interim",
        "_keep",
        "_loop",
        "_on_lost",
        "_on_made",
        "_parser",
        "_pieces",
        "_reading",
        "_room",
        "_sender",
        "_silence_s",
        "_timer",
        "_transport",
        "_waiter",
        "closed",
        "complete",
        "headed",
        "headers",
        "idle_since",
        "status",
        "used",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_made: Callable[[Connection], None],
        on_lost: Callable[[Connection], None],
    ) -> None:
        self._loop = loop
        self._on_made, self._on_lost = on_made, on_lost
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        # What other clients let pass too: servers that end lines with LF alone, or pad a chunk's size.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._room: asyncio.Event | None = None
        self._sender: asyncio.Task[None] | None = None
        self._silence_s = 0.0
        self._expecting = False
        self._reading = True
        self.closed = False
        self.used = False
        """Whether an exchange was made on it before the present one."""
        self.idle_since = 0.0
        self._begin(bodiless=False)

    def _begin(self, *, bodiless: bool) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.headed = self.complete = False
        self._pieces: list[bytes] = []
        self._held = self._head_size = 0
        self._error: BaseException | None = None
        self._bodiless = bodiless
        self._keep = self._interim = self._bounded = False

    # -- the exchange ------------------------------------------------------------------------------------------------
    async def exchange(self, head: bytes, body: Body, *, bodiless: bool, chunked: bool, silence_s: float) -> None:
        """Send a request and wait for the head of its reply: `status` and `headers`.

        Args:
            bodiless: the reply to this method has no body, whatever its headers say (HEAD).
            chunked: an iterator's pieces are framed as chunks.
            silence_s: the longest wait for anything to come, once the request has been sent.

        Raises:
            OSError: the connection broke, or what came is no reply (`Disconnected`, `NotHttp`).
            TimeoutError: nothing came.
            Whatever iterating over the body raises.
        """
        transport = self._transport
        if transport is None or self.closed:
            raise Disconnected("the connection is closed")
        self._begin(bodiless=bodiless)
        self._expecting, self._silence_s = True, silence_s
        if body is None:
            transport.write(head)
        elif isinstance(body, bytes) and len(body) <= SLICE:
            transport.write(head + body)
        else:
            transport.write(head)
            pieces = _slices(body) if isinstance(body, bytes) else body
            self._sender = self._loop.create_task(self._send(transport, pieces, chunked=chunked))
        while not self.headed:
            if self._error is not None:
                raise self._error
            await self._wait()

    async def read(self) -> bytes:
        """The next bytes of the body as they arrive; empty at its end. Raises as `exchange`."""
        while True:
            if self._pieces:
                data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
                self._pieces.clear()
                self._held = 0
                if not self._reading and not self.closed and self._transport is not None:
                    self._reading = True
                    self._transport.resume_reading()
                return data
            if self.complete:
                return b""
            if self._error is not None:
                raise self._error
            await self._wait()

    def reusable(self) -> bool:
        """Whether another exchange may follow: this one is over on both sides, and nothing else has come."""
        if self._sender is not None and not self._sender.done():
            return False
        self._sender = None
        done = self.complete and self._keep and self._error is None and not self.closed and not self._pieces
        if done:
            self._expecting, self.used = False, True
        return done

    def abort(self) -> None:
        """End the connection at once; an upstream that is still generating sees that."""
        self._keep = False
        if self._sender is not None:
            self._sender.cancel()
        if self._transport is not None and not self.closed:
            self._transport.abort()

    async def _send(self, transport: asyncio.Transport, pieces: AsyncIterator[bytes], *, chunked: bool) -> None:
        try:
            async for piece in pieces:
                if self.closed:
                    return
                if chunked and piece:
                    transport.write(b"%x\r\n" % len(piece))
                transport.write(piece)
                if chunked and piece:
                    transport.write(b"\r\n")
                if self._room is not None:
                    await self._room.wait()
            if chunked:
                transport.write(b"0\r\n\r\n")
        except Exception as error:  # noqa: BLE001  the upload's own failure belongs to whoever waits for the reply
            self._fail(error)

    # -- waiting -----------------------------------------------------------------------------------------------------
    async def _wait(self) -> None:
        waiter = self._waiter = self._loop.create_future()
        self._timer = self._loop.call_later(self._silence_s, self._expire, waiter)
        try:
            await waiter
        finally:
            self._timer.cancel()
            self._waiter = None

    def _expire(self, waiter: asyncio.Future[None]) -> None:
        if waiter.done():
            return
        if self._sender is not None and not self._sender.done():  # a slow upload is not the upstream's silence
            self._timer = self._loop.call_later(self._silence_s, self._expire, waiter)
            return
        waiter.set_exception(TimeoutError())

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: BaseException) -> None:
        if self._error is None and not self.complete:
            self._error = error
        self._keep = False
        self._wake()
        if self._transport is not None and not self.closed:
            self._transport.abort()

    # -- asyncio's side ----------------------------------------------------------------------------------------------
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are no subclasses
        self._on_made(self)

    def data_received(self, data: bytes) -> None:
        """Bytes have come; a reply that nobody asked for ends the connection."""
        if not self._expecting or self._error is not None:
            self.abort()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(NotHttp(f"not an HTTP/1.1 reply: {error}"))
            return
        if self.headed:
            self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended, which is also how a body without a length ends."""
        self.closed = True
        if self._expecting and not self.complete and self._error is None:
            if self.headed and not self._bounded and exc is None:
                self.complete = True
            else:
                self._error = Disconnected("the connection ended before the reply was whole")
        self._wake()
        self.resume_writing()
        self._on_lost(self)

    def pause_writing(self) -> None:
        """The socket's buffer is full."""
        self._room = asyncio.Event()

    def resume_writing(self) -> None:
        """It has room again."""
        if self._room is not None:
            self._room.set()
            self._room = None

    # -- the parser's side -------------------------------------------------------------------------------------------
    def on_message_begin(self) -> None:
        """A reply begins; a second one in the same exchange makes the connection useless."""
        if self.complete:
            self._keep = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer, which nobody is told of."""
        if self.headed:
            return
        self._head_size += len(name) + len(value)
        if self._head_size > HEAD_MOST:
            raise NotHttp("the reply's head is too large")
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """The head is whole; of interim replies nobody is told."""
        if self.headed:
            return
        status = self._parser.get_status_code()
        if status == SWITCHING:
            raise NotHttp("the upstream changes the protocol, which nobody asked it to")
        if status in INTERIM:
            self._interim = True
            self.headers.clear()
            return
        self.status, self.headed = status, True
        self._bounded = any(name in (b"content-length", b"transfer-encoding") for name, _ in self.headers)
        self._keep = self._parser.should_keep_alive()
        if self._bodiless:
            self._keep, self.complete = False, True

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        if self.complete:
            return
        self._pieces.append(body)
        self._held += len(body)
        if self._held > HELD_MOST and self._reading and self._transport is not None:
            self._reading = False
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        """The reply is whole."""
        if self._interim:
            self._interim = False
        else:
            self.complete = True


async def _slices(body: bytes) -> AsyncIterator[bytes]:
    view = memoryview(body)
    for start in range(0, len(body), SLICE):
        yield view[start : start + SLICE]  # type: ignore[misc]  # any bytes-like goes to the socket; slicing would copy
