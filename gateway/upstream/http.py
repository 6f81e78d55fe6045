"""One OpenAI-compatible upstream over HTTP/1.1: bytes out, bytes back, nothing read into them.

The connections are our own (`connection.py`): header bytes go on as they came, and a request costs a third of what the
leanest client library takes (docs/overhead.md).
"""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
import time
from collections import deque
from collections.abc import Iterable, Sequence, Set
from typing import Protocol
from urllib.parse import quote, unquote, urlsplit

from aiohappyeyeballs import start_connection

from gateway.errors import UpstreamTimeout, UpstreamUnreachable
from gateway.settings import UpstreamSettings
from gateway.upstream.connection import Body, Connection, Disconnected

Headers = list[tuple[bytes, bytes]]
"""Raw header pairs; names in lower case."""

HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer"
    b" transfer-encoding upgrade".split()
)
"""RFC 9110, section 7.6.1; `proxy-*` and `keep-alive` by custom."""
OURS = (b"x-memory-", b"x-session-id", b"x-gateway-")
"""Prefixes of the headers that speak to the gateway and stay there."""
CREDENTIALS = (b"authorization", b"api-key", b"x-api-key")
_ALWAYS = frozenset((b"host",))
_ALWAYS_AND_LENGTH = _ALWAYS | {b"content-length"}
PLAIN_CONNECTION = (b"keep-alive", b"close", b"Keep-Alive", b"Close")
"""Values of `Connection` that name no header beside hop-by-hop ones."""
RETRY_PAUSE_S = 0.1
EYEBALLS_S = 0.25
"""A head start for an address before the next one is tried beside it (RFC 8305)."""
IDLE_S = 15.0
"""A connection that has been idle for longer is not used again: many servers close theirs after 15 s or more, and a
request that meets such a closing is lost. aiohttp's default."""
STALE_S = 0.25
"""A connection that breaks within this time of sending was a kept-alive one that the upstream had closed: nothing can
have been generated yet, so sending again is safe."""


class UpstreamReply(Protocol):
    """An answer whose head has come, and whose body is read piece by piece."""

    status: int
    headers: Headers

    async def read(self) -> bytes:
        """The next bytes as they arrive; empty at the end. Raises UpstreamUnreachable or UpstreamTimeout."""
        ...

    def close(self) -> None:
        """Let go; an unfinished answer is cancelled at the upstream by closing its connection."""
        ...


class HttpReply:
    """The reply of an HTTP upstream."""

    def __init__(self, upstream: HttpUpstream, connection: Connection) -> None:
        self._upstream = upstream
        self._connection: Connection | None = connection
        self.status = connection.status
        self.headers = end_to_end(connection.headers)

    async def read(self) -> bytes:
        """The next bytes as they arrive; empty at the end."""
        if self._connection is None:
            return b""
        try:
            return await self._connection.read()
        except TimeoutError as error:
            raise UpstreamTimeout("The upstream fell silent in the middle of its reply.") from error
        except OSError as error:
            raise UpstreamUnreachable(f"The upstream's reply broke off ({type(error).__name__}).") from error

    def close(self) -> None:
        """Give the connection back where the reply was read to its end, close it otherwise."""
        if self._connection is not None:
            self._upstream.give_back(self._connection)
            self._connection = None


class HttpUpstream:
    """One upstream and its connections. Made inside the event loop; `close` at shutdown."""

    def __init__(self, settings: UpstreamSettings) -> None:
        self.name = settings.name
        self.settings = settings
        url = urlsplit((settings.base_url or "").rstrip("/"))
        self._host = (url.hostname or "").encode("idna").decode()
        self._tls = _tls(settings) if url.scheme == "https" else None
        self._port = url.port or (443 if self._tls else 80)
        self._path = quote(url.path, safe="/%:@!$&'()*+,;=~-._")
        fixed: dict[bytes, bytes] = {}
        if url.username:
            pair = f"{unquote(url.username)}:{unquote(url.password or '')}"
            fixed[b"authorization"] = b"Basic " + base64.b64encode(pair.encode())
        if settings.api_key is not None:
            fixed[b"authorization"] = b"Bearer " + settings.api_key.get_secret_value().strip().encode()
        dropped = frozenset(CREDENTIALS) if fixed else frozenset()
        fixed |= {name.lower().encode(): value.strip().encode() for name, value in settings.headers.items()}
        self._replaced = dropped | frozenset(fixed)
        host = f"[{self._host}]" if ":" in self._host else self._host
        shown = host if url.port in (None, 443 if self._tls else 80) else f"{host}:{self._port}"
        lines = [b"%b: %b\r\n" % pair for pair in ({b"host": shown.encode()} | fixed).items()]
        self._fixed = b"".join(lines)
        """The lines of a request's head that are the same for all requests."""
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self._connecting = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def send(self, method: str, path: str, headers: Iterable[tuple[bytes, bytes]], body: Body) -> HttpReply:
        """Send a request and wait for the head of its reply.

        Args:
            path: what follows the base URL, percent-encoding and query string as the client wrote them.
            headers: already without what must not travel (`end_to_end`).
            body: bytes, or an iterator of them (never sent twice).

        Raises:
            UpstreamUnreachable: no connection, or it broke before the reply's head.
            UpstreamTimeout: connected, but no answer within the upstream's `read_timeout_s`.
        """
        head, chunked = self._head(method, path, headers, body)
        tries = 1 + (self.settings.retries if body is None or isinstance(body, bytes) else 0)
        for attempt in range(1, tries + 1):
            connection = await self._connection(last=attempt == tries)
            if connection is None:
                await asyncio.sleep(RETRY_PAUSE_S * attempt)
                continue
            started = time.monotonic()
            try:
                await connection.exchange(
                    head, body, bodiless=method == "HEAD", chunked=chunked, silence_s=self.settings.read_timeout_s
                )
                return HttpReply(self, connection)
            except BaseException as error:
                connection.abort()
                if isinstance(error, TimeoutError):
                    raise UpstreamTimeout(f"The upstream '{self.name}' did not answer in time.") from error
                if not isinstance(error, OSError):
                    raise
                safe = isinstance(error, Disconnected) and time.monotonic() - started < STALE_S
                if attempt == tries or not safe:
                    raise self._unreachable(error) from error
            await asyncio.sleep(0 if connection.used else RETRY_PAUSE_S * attempt)
        raise AssertionError("unreachable")

    def give_back(self, connection: Connection) -> None:
        """Keep a connection whose exchange is over for the next one; end it where it isn't."""
        if connection.reusable():
            now = connection.idle_since = time.monotonic()
            self._idle.append(connection)
            while now - self._idle[0].idle_since > IDLE_S:
                self._idle.pop(0).abort()
            self._next()
        else:
            connection.abort()

    async def close(self) -> None:
        """Close all connections."""
        for connection in [*self._open]:
            connection.abort()
        self._idle.clear()

    # -- connections -------------------------------------------------------------------------------------------------
    async def _connection(self, *, last: bool) -> Connection | None:
        """An idle connection or a new one; None where none could be made and another attempt is left."""
        while True:
            now = time.monotonic()
            while self._idle:
                connection = self._idle.pop()
                if not connection.closed and now - connection.idle_since < IDLE_S:
                    return connection
                connection.abort()
            if len(self._open) + self._connecting < self.settings.max_connections:
                return await self._connect(last=last)
            await self._turn()

    async def _turn(self) -> None:
        """Wait until a connection has come back or has ended."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._next()  # it was woken, and can't take its turn
            raise

    def _next(self) -> None:
        """Wake whoever waits longest for a connection."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    async def _connect(self, *, last: bool) -> Connection | None:
        loop = asyncio.get_running_loop()
        self._connecting += 1
        try:
            async with asyncio.timeout(self.settings.connect_timeout_s):
                places = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
                sock = await start_connection(places, happy_eyeballs_delay=EYEBALLS_S, interleave=1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                _, connection = await loop.create_connection(
                    lambda: Connection(loop, self._made, self._lost),
                    sock=sock,
                    ssl=self._tls,
                    server_hostname=self._host if self._tls else None,
                )
        except TimeoutError as error:
            raise UpstreamUnreachable(f"Could not connect to the upstream '{self.name}' in time.") from error
        except OSError as error:
            if last:
                raise self._unreachable(error) from error
            return None
        finally:
            self._connecting -= 1
            self._next()
        return connection

    def _made(self, connection: Connection) -> None:
        self._open.add(connection)

    def _lost(self, connection: Connection) -> None:
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._next()

    def _unreachable(self, error: OSError) -> UpstreamUnreachable:
        return UpstreamUnreachable(f"Could not reach the upstream '{self.name}' ({type(error).__name__}).")

    # -- the request's head ------------------------------------------------------------------------------------------
    def _head(self, method: str, path: str, headers: Iterable[tuple[bytes, bytes]], body: Body) -> tuple[bytes, bool]:
        """The head as it is sent, and whether the body goes in chunks."""
        pairs = [pair for pair in headers if pair[0] not in self._replaced]
        chunked = False
        if not any(name == b"content-length" for name, _ in pairs):
            if isinstance(body, bytes):
                pairs.append((b"content-length", b"%d" % len(body)))
            elif body is not None:
                chunked = True
                pairs.append((b"transfer-encoding", b"chunked"))
        lines = b"".join([b"%b: %b\r\n" % pair for pair in pairs])
        target = (self._path + path).encode("latin-1")
        return b"%b %b HTTP/1.1\r\n%b%b\r\n" % (method.encode(), target, self._fixed, lines), chunked


def _tls(settings: UpstreamSettings) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(settings.ca_file) if settings.ca_file is not None else None)
    context.set_alpn_protocols(["http/1.1"])
    return context


def end_to_end(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """The headers that travel on: without hop-by-hop ones and those that `Connection` names. Names in lower case."""
    pairs = list(headers)
    dropped: Set[bytes] = HOP_BY_HOP
    for name, value in pairs:
        if name == b"connection" and value not in PLAIN_CONNECTION:
            dropped = dropped | {token.strip().lower() for token in value.split(b",")}
    return [pair for pair in pairs if pair[0] not in dropped]


def request_headers(headers: Sequence[tuple[bytes, bytes]], *, keep_length: bool = False) -> Headers:
    """The client's headers that go upstream: end-to-end ones, without `Host` and those that speak to the gateway.

    `Content-Length` is set anew from the body unless `keep_length`.
    """
    dropped = _ALWAYS if keep_length else _ALWAYS_AND_LENGTH
    return [(name, value) for name, value in end_to_end(headers) if name not in dropped and not name.startswith(OURS)]
