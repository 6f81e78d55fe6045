"""A scripted upstream: a real HTTP/1.1 server on loopback, in a thread with its own event loop.

It speaks bytes, not frameworks, because the front-door tests judge bytes: what exactly arrived, in which order,
when, and whether the caller hung up before the end. A reply is a list of steps (send these bytes, wait, hold until
a test lets go, cut the line), so a test can stop the upstream between two events and look at what the client has
by then.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import httptools
import orjson

WAIT_S = 20.0
"""How long a test waits for something that should happen at once on an idle machine, in seconds."""


class Cut:
    """A step: drop the connection here, without ending the message."""


class Hang:
    """A step: say nothing more, for ever (or until the caller goes)."""


Step = bytes | float | threading.Event | Cut | Hang
"""Bytes are sent, a float pauses that many seconds, an Event holds until it is set."""

Headers = list[tuple[str, str]]


@dataclass
class Reply:
    """One scripted answer. `steps` make the body; `before` runs ahead of the status line."""

    status: int = 200
    headers: Headers = field(default_factory=lambda: [("Content-Type", "application/json")])
    steps: Sequence[Step] = ()
    before: Sequence[Step] = ()
    chunked: bool = False
    """Chunked transfer, each `bytes` step its own chunk; else Content-Length of all bytes together."""

    def head(self) -> bytes:
        """Status line and headers, framing included."""
        lines = [f"HTTP/1.1 {self.status} Scripted"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if self.chunked:
            lines.append("Transfer-Encoding: chunked")
        elif self.status not in (204, 304):
            lines.append(f"Content-Length: {sum(len(step) for step in self.steps if isinstance(step, bytes))}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


@dataclass
class Call:
    """One request as it came over the wire. Times are `time.monotonic()` seconds."""

    method: str
    target: str
    """Path and query, undecoded."""
    headers: Headers
    started_at: float
    body: bytearray = field(default_factory=bytearray)
    complete_at: float | None = None
    answered_at: float | None = None
    disconnected_at: float | None = None
    """When the caller went away before the reply's end; None where it stayed."""

    def json(self) -> Any:
        """The body, parsed."""
        return orjson.loads(bytes(self.body))

    def header_all(self, name: str) -> list[str]:
        """Every value of one header, in order, matched without case."""
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def header(self, name: str) -> str | None:
        """The first value of one header, or None."""
        return next(iter(self.header_all(name)), None)


Handler = Callable[[Call], Reply]


def json_reply(document: Any, status: int = 200, headers: Headers | None = None) -> Reply:
    """A plain JSON answer."""
    body = document if isinstance(document, bytes) else orjson.dumps(document)
    return Reply(status, [("Content-Type", "application/json"), *(headers or [])], [body])


def error_reply(status: int, message: str, code: str | None = None, headers: Headers | None = None) -> Reply:
    """An error as OpenAI writes it."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return json_reply({"error": {"message": message, "type": kind, "param": None, "code": code}}, status, headers)


def split_events(stream: bytes) -> list[bytes]:
    """An SSE body cut after each blank line; joined, the pieces give the body again."""
    pieces = stream.split(b"\n\n")
    return [piece + b"\n\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])


def sse_reply(stream: bytes | Sequence[Step], *, chunk: int | None = None, pause: float = 0.0) -> Reply:
    """Replay an event stream: event by event, or in pieces of `chunk` bytes, `pause` seconds apart."""
    if not isinstance(stream, bytes):
        steps: list[Step] = list(stream)
    else:
        pieces = split_events(stream)
        if chunk is not None:
            pieces = [stream[start : start + chunk] for start in range(0, len(stream), chunk)]
        steps = list(pieces)
        if pause:
            steps = [step for piece in pieces for step in (pause, piece)]
    return Reply(200, [("Content-Type", "text/event-stream; charset=utf-8")], steps, chunked=True)


class _Connection(asyncio.Protocol):
    """One kept-alive connection; requests on it are answered in turn."""

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self.parser = httptools.HttpRequestParser(self)
        self.call: Call | None = None
        self.url = b""
        self.pending: list[tuple[bytes, bytes]] = []
        self.answer: asyncio.Task[None] | None = None
        self.writable = asyncio.Event()
        self.writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.upstream.connections.add(self)

    def data_received(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.upstream.protocol_errors.append(str(error))
            self.transport.abort()

    def eof_received(self) -> bool:
        self._gone()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone()
        self.writable.set()
        self.upstream.connections.discard(self)

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def _gone(self) -> None:
        if self.call is not None and self.call.disconnected_at is None:
            self.call.disconnected_at = time.monotonic()
            self.upstream.changed()
        if self.answer is not None:
            self.answer.cancel()

    def on_message_begin(self) -> None:
        self.url, self.pending = b"", []

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.pending.append((name, value))

    def on_headers_complete(self) -> None:
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self.pending]
        method = self.parser.get_method().decode()
        self.call = Call(method, self.url.decode("latin-1"), headers, time.monotonic())
        self.upstream.record(self.call)

    def on_body(self, body: bytes) -> None:
        assert self.call is not None
        self.call.body += body
        self.upstream.changed()

    def on_message_complete(self) -> None:
        assert self.call is not None
        self.call.complete_at = time.monotonic()
        self.upstream.changed()
        self.answer = asyncio.get_running_loop().create_task(self._answer(self.call))

    async def _answer(self, call: Call) -> None:
        try:
            reply = await asyncio.to_thread(self.upstream.choose, call)
        except Exception as error:  # noqa: BLE001 - a handler's own failure must reach the test, not hang the caller
            self.upstream.protocol_errors.append(f"{call.method} {call.target}: {error!r}")
            reply = error_reply(500, f"The scripted handler failed: {error!r}")
        if not await self._run(reply.before, framed=False):
            return
        self.transport.write(reply.head())
        steps = reply.steps if call.method != "HEAD" else ()
        if not await self._run(steps, framed=reply.chunked):
            return
        if reply.chunked:
            self.transport.write(b"0\r\n\r\n")
        call.answered_at = time.monotonic()
        self.call = None
        self.upstream.changed()

    async def _run(self, steps: Sequence[Step], *, framed: bool) -> bool:
        for step in steps:
            if isinstance(step, bytes):
                await self.writable.wait()
                if self.transport.is_closing():  # lost, which `connection_lost` is about to be told
                    return False
                self.transport.write(b"%x\r\n%b\r\n" % (len(step), step) if framed and step else step)
            elif isinstance(step, float):
                await asyncio.sleep(step)
            elif isinstance(step, threading.Event):
                while not step.is_set():  # noqa: ASYNC110 - the test sets it from another thread
                    await asyncio.sleep(0.005)
            elif isinstance(step, Cut):
                self.call = None
                self.transport.close()
                return False
            else:
                await asyncio.Event().wait()
        return True


class Upstream:
    """The server. Use as a context manager; `url` ends before `/v1`.

    Replies come from the queue first, else from `handler`. Everything public may be used from the test's thread.
    """

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.calls: list[Call] = []
        self.protocol_errors: list[str] = []
        self.connections: set[_Connection] = set()
        self._queue: deque[Reply | Handler] = deque()
        self._condition = threading.Condition()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="scripted-upstream", daemon=True)
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self.port = 0

    @property
    def url(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Upstream:
        self._thread.start()
        assert self._started.wait(WAIT_S), "the scripted upstream did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(WAIT_S)

    def queue(self, *replies: Reply | Handler) -> None:
        """Answer the next calls with these, in order."""
        self._queue.extend(replies)

    def reset(self) -> None:
        """Forget calls and queued replies."""
        with self._condition:
            self.calls = []
            self.protocol_errors = []
            self._queue.clear()

    def choose(self, call: Call) -> Reply:
        """The reply for one call."""
        try:
            chosen: Reply | Handler = self._queue.popleft()
        except IndexError:
            chosen = self.handler
        return chosen if isinstance(chosen, Reply) else chosen(call)

    def record(self, call: Call) -> None:
        """Add a call whose headers have just come."""
        with self._condition:
            self.calls.append(call)
            self._condition.notify_all()

    def changed(self) -> None:
        """Wake whoever waits."""
        with self._condition:
            self._condition.notify_all()

    def wait_until(self, condition: Callable[[], object], timeout: float = WAIT_S) -> bool:
        """Wait for a condition on the calls; False where it does not come true in time."""
        with self._condition:
            return bool(self._condition.wait_for(condition, timeout))

    def only_call(self) -> Call:
        """The one call there was, whole."""
        assert self.wait_until(lambda: self.calls and self.calls[-1].complete_at is not None)
        assert len(self.calls) == 1, [(call.method, call.target) for call in self.calls]
        return self.calls[0]

    @contextlib.contextmanager
    def answering(self, handler: Handler) -> Iterator[None]:
        """Answer with another handler for a while."""
        kept, self.handler = self.handler, handler
        try:
            yield
        finally:
            self.handler = kept

    def _serve(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await self._loop.create_server(lambda: _Connection(self), "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        await self._stop.wait()
        server.close()
        for connection in list(self.connections):
            connection.transport.abort()
        await asyncio.sleep(0)
