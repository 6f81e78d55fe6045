"""All upstreams: opened once, asked by route, whichever protocol they speak."""

from __future__ import annotations

from collections.abc import AsyncIterator

from gateway.body import as_object, decode
from gateway.errors import UpstreamUnreachable
from gateway.settings import UpstreamSettings
from gateway.upstream.http import Headers, HttpUpstream, UpstreamReply
from gateway.upstream.provider_process import ProviderProcess
from gateway.upstream.providers import LitellmUpstream, ProviderReply
from gateway.upstream.routes import Route

CHAT_PATH = "/chat/completions"
ANSWER_MOST = 16 * 1024 * 1024
"""Bytes of a side call's answer; more than any summary."""


class ProviderStream:
    """A provider's reply, read like an HTTP one."""

    def __init__(self, reply: ProviderReply) -> None:
        self.status = reply.status
        self.headers: Headers = list(reply.headers)
        self._reply = reply
        self._chunks = reply.chunks

    async def read(self) -> bytes:
        """The next bytes as they arrive; empty at the end."""
        return await anext(self._chunks, b"")

    def close(self) -> None:
        """Let go; an unfinished answer is cancelled."""
        self._reply.close()


class Upstreams:
    """The configured upstreams, by name. Made inside the event loop."""

    def __init__(self, settings: list[UpstreamSettings]) -> None:
        self._plain = {s.name: HttpUpstream(s) for s in settings if s.provider is None}
        self._process = ProviderProcess()
        self._providers = {s.name: LitellmUpstream(s, self._process) for s in settings if s.provider is not None}

    async def chat(self, route: Route, headers: Headers, body: bytes, *, stream: bool) -> UpstreamReply:
        """Send a chat completion; the head of the reply.

        Raises:
            UpstreamUnreachable, UpstreamTimeout: as `HttpUpstream.send`.
        """
        provider = self._providers.get(route.name)
        if provider is not None:
            return ProviderStream(await provider.complete(as_object(decode(body)), stream=stream, headers=headers))
        return await self._plain[route.name].send("POST", CHAT_PATH, headers, body)

    async def complete(self, route: Route, headers: Headers, body: bytes) -> tuple[int, bytes]:
        """A plain side call (summary, extraction): status and whole answer."""
        side = [(name, value) for name, value in headers if name != b"accept-encoding"]
        return await _whole(await self.chat(route, side, body, stream=False))

    async def ask(self, name: str, path: str, headers: Headers, body: bytes) -> tuple[int, bytes]:
        """A plain side call to another path of an upstream: status and whole answer."""
        return await _whole(await self._plain[name].send("POST", path, headers, body))

    def add(self, settings: UpstreamSettings) -> None:
        """One more server, for side calls alone: no route leads to it. Must run inside the event loop."""
        self._plain[settings.name] = HttpUpstream(settings)

    async def pass_on(
        self, name: str, method: str, path: str, headers: Headers, body: bytes | AsyncIterator[bytes] | None
    ) -> UpstreamReply:
        """Any other request, untouched."""
        upstream = self._plain.get(name)
        if upstream is None:
            raise UpstreamUnreachable(f"The upstream '{name}' speaks another protocol; only chat completions go there.")
        return await upstream.send(method, path, headers, body)

    def warm(self) -> list[LitellmUpstream]:
        """Those that need a slow import before their first request."""
        return list(self._providers.values())

    async def close(self) -> None:
        """Close all connections."""
        for upstream in self._plain.values():
            await upstream.close()
        for provider in self._providers.values():
            await provider.close()
        await self._process.close()


async def _whole(reply: UpstreamReply) -> tuple[int, bytes]:
    try:
        parts: list[bytes] = []
        size = 0
        while chunk := await reply.read():
            parts.append(chunk)
            size += len(chunk)
            if size > ANSWER_MOST:
                raise UpstreamUnreachable("A side call's answer is too large.")
        return reply.status, b"".join(parts)
    finally:
        reply.close()
