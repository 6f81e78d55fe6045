"""A connection to one OpenAI-compatible upstream: bytes out, bytes back, nothing read into them.

aiohttp does the work: on these paths it costs a tenth of what httpx does (docs/overhead.md). Nothing outside this
module knows.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Iterable, Sequence, Set
from typing import Protocol

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from gateway.errors import UpstreamTimeout, UpstreamUnreachable
from gateway.settings import UpstreamSettings

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
SLICE = 256 * 1024
"""Bytes handed to the socket at once of a large body, so that no write holds the loop for long."""
RETRY_PAUSE_S = 0.1
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

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers = end_to_end((name.lower(), value) for name, value in response.raw_headers)

    async def read(self) -> bytes:
        """The next bytes as they arrive; empty at the end."""
        try:
            return await self._response.content.readany()
        except TimeoutError as error:
            raise UpstreamTimeout("The upstream fell silent in the middle of its reply.") from error
        except (aiohttp.ClientError, OSError) as error:
            raise UpstreamUnreachable(f"The upstream's reply broke off ({type(error).__name__}).") from error

    def close(self) -> None:
        """Give the connection back where the reply was read to its end, close it otherwise."""
        if self._response.content.at_eof():
            self._response.release()
        else:
            self._response.close()


class HttpUpstream:
    """One upstream's connections. Made inside the event loop; `close` at shutdown."""

    def __init__(self, settings: UpstreamSettings) -> None:
        self.name = settings.name
        self.settings = settings
        self._base = (settings.base_url or "").rstrip("/")
        self._urls: dict[str, URL] = {}
        self._own_key = settings.api_key.get_secret_value() if settings.api_key is not None else None
        self._extra = [(name.lower().encode(), value.encode()) for name, value in settings.headers.items()]
        tls = ssl.create_default_context(cafile=str(settings.ca_file)) if settings.ca_file is not None else True
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=settings.max_connections, ssl=tls, ttl_dns_cache=60),
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=settings.connect_timeout_s, sock_read=settings.read_timeout_s
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent", "Content-Type"),
            max_line_size=64 * 1024,
            max_field_size=64 * 1024,
        )

    async def send(
        self,
        method: str,
        path: str,
        headers: Iterable[tuple[bytes, bytes]],
        body: bytes | AsyncIterator[bytes] | None,
    ) -> HttpReply:
        """Send a request and wait for the head of its reply.

        Args:
            path: what follows the base URL, percent-encoding and query string as the client wrote them.
            headers: already without what must not travel (`end_to_end`).
            body: bytes, or an iterator of them (never sent twice).

        Raises:
            UpstreamUnreachable: no connection, or it broke before the reply's head.
            UpstreamTimeout: connected, but no answer within the upstream's `read_timeout_s`.
        """
        wire = self._wire(headers)
        url = self._url(path)
        tries = 1 + (self.settings.retries if not isinstance(body, AsyncIterator) else 0)
        for attempt in range(1, tries + 1):
            started = time.monotonic()
            try:
                return HttpReply(
                    await self._session.request(
                        method, url, headers=wire, data=_sliced(body, wire), allow_redirects=False
                    )
                )
            except TimeoutError as error:
                if isinstance(error, aiohttp.ConnectionTimeoutError):
                    raise UpstreamUnreachable(f"Could not connect to the upstream '{self.name}' in time.") from error
                raise UpstreamTimeout(f"The upstream '{self.name}' did not answer in time.") from error
            except (aiohttp.ClientError, OSError) as error:
                safe = isinstance(error, aiohttp.ClientConnectorError) or time.monotonic() - started < STALE_S
                if attempt == tries or not safe:
                    raise UpstreamUnreachable(
                        f"Could not reach the upstream '{self.name}' ({type(error).__name__})."
                    ) from error
            await asyncio.sleep(RETRY_PAUSE_S * attempt)
        raise AssertionError("unreachable")

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    def _url(self, path: str) -> URL:
        url = self._urls.get(path)
        if url is None:
            url = URL(self._base + path, encoded=True)
            if len(self._urls) < 100:
                self._urls[path] = url
        return url

    def _wire(self, headers: Iterable[tuple[bytes, bytes]]) -> CIMultiDict[str]:
        wire: CIMultiDict[str] = CIMultiDict()
        own = self._own_key is not None
        for name, value in headers:
            if not (own and name in CREDENTIALS):
                wire.add(name.decode("latin-1"), _text(value))
        if self._own_key is not None:
            wire["authorization"] = f"Bearer {self._own_key}"
        for name, value in self._extra:
            wire[name.decode()] = value.decode()
        return wire


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


def _text(value: bytes) -> str:
    """A header's value such that aiohttp, which writes UTF-8, sends the same bytes where they are UTF-8 themselves."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _sliced(body: bytes | AsyncIterator[bytes] | None, wire: CIMultiDict[str]) -> bytes | AsyncIterator[bytes] | None:
    if isinstance(body, bytes) and len(body) > SLICE:
        wire["content-length"] = str(len(body))
        return _slices(body)
    return body


async def _slices(body: bytes) -> AsyncIterator[bytes]:
    view = memoryview(body)
    for start in range(0, len(body), SLICE):
        yield view[start : start + SLICE]  # type: ignore[misc]  # aiohttp takes any bytes-like; slicing would copy
