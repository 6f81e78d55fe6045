"""The connections to upstreams, against a server that says byte for byte what the test wants."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvloop

from gateway.errors import BodyTooLarge, UpstreamTimeout, UpstreamUnreachable
from gateway.settings import UpstreamSettings
from gateway.upstream.http import HttpReply, HttpUpstream

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
SOON_S = 5.0

Handler = Callable[["Peer"], Awaitable[None]]


@dataclass
class Peer:
    """The server's side of one connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    requests: list[bytes]
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def request(self) -> bytes:
        """The next request's head and, by its Content-Length or chunks, its body."""
        raw = await self.reader.readuntil(b"\r\n\r\n")
        lowered = raw.lower()
        if b"content-length: " in lowered:
            raw += await self.reader.readexactly(int(lowered.split(b"content-length: ")[1].split(b"\r\n")[0]))
        elif b"transfer-encoding: chunked" in lowered:
            while not raw.endswith(b"0\r\n\r\n"):
                raw += await self.reader.readexactly(1)
        self.requests.append(raw)
        return raw

    async def say(self, *pieces: bytes) -> None:
        """Send these, each in its own packet."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            if len(pieces) > 1:
                await asyncio.sleep(0.005)

    async def linger(self) -> None:
        """Stay until the other side closes."""
        while await self.reader.read(65_536):
            pass

    async def gone(self) -> bool:
        """Whether the other side has closed, or does so soon."""
        async with asyncio.timeout(SOON_S):
            return await self.over.wait()


@dataclass
class Server:
    """Listens; each connection is handled by the next of the handlers, the last of them again and again."""

    port: int = 0
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)
    peers: list[Peer] = field(default_factory=list)


async def answers_ok(peer: Peer) -> None:
    """Answer every request alike."""
    while await peer.request():
        await peer.say(OK)


@asynccontextmanager
async def serving(*handlers: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server()
    running: set[asyncio.Task[Any]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        handler = handlers[min(server.connections, len(handlers) - 1)]
        server.connections += 1
        peer = Peer(reader, writer, server.requests)
        server.peers.append(peer)
        try:
            await handler(peer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            peer.over.set()
            writer.close()
            running.discard(task)

    listening = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for task in [*running]:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


@asynccontextmanager
async def talking(*handlers: Handler, **settings: Any) -> AsyncIterator[tuple[HttpUpstream, Server]]:
    async with serving(*handlers) as server:
        upstream = made(f"http://127.0.0.1:{server.port}/v1", **settings)
        try:
            yield upstream, server
        finally:
            await upstream.close()
            await asyncio.sleep(0)


def made(base_url: str, **settings: Any) -> HttpUpstream:
    return HttpUpstream(UpstreamSettings.model_validate({"name": "up", "base_url": base_url, **settings}))


async def ask(upstream: HttpUpstream, body: bytes | None = b"{}", method: str = "POST") -> tuple[int, bytes]:
    reply = await upstream.send(method, "/chat/completions", [(b"content-type", b"application/json")], body)
    return reply.status, await rest(reply)


async def rest(reply: HttpReply) -> bytes:
    pieces = []
    while piece := await reply.read():
        pieces.append(piece)
    reply.close()
    return b"".join(pieces)


def saying(*pieces: bytes, then_close: bool = True) -> Handler:
    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.say(*pieces)
        if not then_close:
            await peer.linger()

    return handler


async def uploading(pieces: Sequence[bytes], error: Exception | None = None) -> AsyncIterator[bytes]:
    for piece in pieces:
        await asyncio.sleep(0)
        yield piece
    if error is not None:
        raise error


async def test_the_request_on_the_wire() -> None:
    async with talking(answers_ok, headers={"X-Team": "blue"}) as (upstream, server):
        headers = [
            (b"authorization", b"Bearer caller"),
            (b"x-odd", b"caf\xe9 \xff"),
            (b"x-twice", b"1"),
            (b"x-twice", b"2"),
        ]
        reply = await upstream.send("POST", "/chat/completions?a=%20b", headers, b'{"a":1}')
        assert await rest(reply) == b"hi"
        assert server.requests == [
            b"POST /v1/chat/completions?a=%20b HTTP/1.1\r\n"
            b"host: 127.0.0.1:" + str(server.port).encode() + b"\r\n"
            b"x-team: blue\r\n"
            b"authorization: Bearer caller\r\n"
            b"x-odd: caf\xe9 \xff\r\n"
            b"x-twice: 1\r\nx-twice: 2\r\n"
            b"content-length: 7\r\n\r\n"
            b'{"a":1}'
        ]


async def test_a_key_of_its_own_replaces_the_callers() -> None:
    async with talking(answers_ok, api_key="sk-own\n") as (upstream, server):
        headers = [(b"authorization", b"Bearer caller"), (b"x-api-key", b"caller"), (b"api-key", b"caller")]
        await rest(await upstream.send("GET", "/models", headers, None))
        assert b"authorization: Bearer sk-own\r\n" in server.requests[0]
        assert b"caller" not in server.requests[0]
        assert b"content-length" not in server.requests[0]


async def test_connections_are_used_again() -> None:
    async with talking(answers_ok) as (upstream, server):
        for _ in range(5):
            assert await ask(upstream) == (200, b"hi")
        assert server.connections == 1
        assert [status for status, _ in await asyncio.gather(*(ask(upstream) for _ in range(4)))] == [200] * 4
        assert server.connections <= 4


@pytest.mark.parametrize(
    ("reply", "status", "body"),
    [
        (OK, 200, b"hi"),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
            b"2\r\nhi\r\n3;x=y\r\n yo\r\n0\r\nx-trailer: 1\r\n\r\n",
            200,
            b"hi yo",
        ),
        (b"HTTP/1.1 200 OK\r\n\r\nto the end", 200, b"to the end"),
        (b"HTTP/1.0 200 OK\r\n\r\nold", 200, b"old"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
        (b"HTTP/1.1 429 Too Many\r\ncontent-length: 0\r\n\r\n", 429, b""),
        (b"HTTP/1.1 200 OK\ncontent-length: 2\n\nhi", 200, b"hi"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + OK, 200, b"hi"),
        (b"HTTP/1.1 301 Moved\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n", 301, b""),
    ],
)
@pytest.mark.parametrize("apart", [False, True])
async def test_replies_of_every_framing(reply: bytes, status: int, body: bytes, apart: bool) -> None:
    pieces = [reply[i : i + 1] for i in range(len(reply))] if apart else [reply]

    async def handler(peer: Peer) -> None:
        await peer.request()
        for piece in pieces:
            peer.writer.write(piece)
            await peer.writer.drain()
            await asyncio.sleep(0)

    async with talking(handler) as (upstream, _):
        assert await ask(upstream) == (status, body)


async def test_the_head_of_a_reply_as_it_came() -> None:
    head = (
        b"HTTP/1.1 200 OK\r\nX-Odd: caf\xe9\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\n"
        b"Connection: x-hop\r\nx-hop: 1\r\nContent-Length: 0\r\n\r\n"
    )
    async with talking(saying(head)) as (upstream, _):
        reply = await upstream.send("POST", "/x", [], b"")
        assert reply.headers == [
            (b"x-odd", b"caf\xe9"),
            (b"set-cookie", b"a=1"),
            (b"set-cookie", b"b=2"),
            (b"content-length", b"0"),
        ]


async def test_head_has_no_body_whatever_it_says() -> None:
    async with talking(saying(b"HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n", then_close=False)) as (
        upstream,
        server,
    ):
        assert await ask(upstream, None, "HEAD") == (200, b"")
        assert await server.peers[0].gone()


@pytest.mark.parametrize(
    "reply",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\nx-big: " + b"y" * 400_000 + b"\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnot a size\r\n",
    ],
)
async def test_what_is_no_reply(reply: bytes) -> None:
    async with talking(saying(reply), retries=0) as (upstream, server):
        with pytest.raises(UpstreamUnreachable):
            await ask(upstream)
        assert server.connections == 1


@pytest.mark.parametrize("tail", [b"content-length: 9\r\n\r\nhalf", b"transfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n"])
async def test_a_reply_that_breaks_off(tail: bytes) -> None:
    async with talking(saying(b"HTTP/1.1 200 OK\r\n" + tail)) as (upstream, server):
        reply = await upstream.send("POST", "/x", [], b"")
        assert await reply.read() == b"half"
        with pytest.raises(UpstreamUnreachable):
            await reply.read()
        reply.close()
        assert server.connections == 1


async def test_silence() -> None:
    half = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"
    async with talking(saying(then_close=False), saying(half, then_close=False), read_timeout_s=0.2) as (
        upstream,
        server,
    ):
        with pytest.raises(UpstreamTimeout):
            await ask(upstream)
        reply = await upstream.send("POST", "/x", [], b"")
        assert await reply.read() == b"half"
        with pytest.raises(UpstreamTimeout):
            await reply.read()
        reply.close()
        for peer in server.peers:
            assert await peer.gone()


async def test_a_connection_that_was_closed_meanwhile_is_replaced() -> None:
    async def once(peer: Peer) -> None:
        await peer.request()
        await peer.say(OK)
        await peer.request()  # and closes without a word

    async with talking(once, answers_ok) as (upstream, server):
        assert await ask(upstream) == (200, b"hi")
        assert await ask(upstream, b"again") == (200, b"hi")
        assert server.connections == 2
        assert [request[-5:] for request in server.requests[1:]] == [b"again", b"again"]


async def test_what_is_iterated_over_is_never_sent_twice() -> None:
    async def closes(peer: Peer) -> None:
        await peer.request()

    async with talking(closes) as (upstream, server):
        with pytest.raises(UpstreamUnreachable):
            await upstream.send("POST", "/files", [], uploading([b"a", b"b"]))
        assert server.connections == 1


async def test_a_refused_connection_is_tried_again_and_told_of() -> None:
    async with serving(answers_ok) as server:
        port = server.port
    upstream = made(f"http://127.0.0.1:{port}", retries=2)
    begun = time.monotonic()
    with pytest.raises(UpstreamUnreachable, match="'up'"):
        await ask(upstream)
    assert time.monotonic() - begun > 0.25  # two pauses, of 0.1 and 0.2 s


async def test_bytes_that_nobody_asked_for_end_the_connection() -> None:
    """What a server says out of turn must never become the next caller's answer."""

    async def speaks(peer: Peer) -> None:
        await peer.request()
        await peer.say(OK)
        await asyncio.sleep(0.05)
        await peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged")
        await peer.linger()

    async with talking(speaks, answers_ok) as (upstream, server):
        assert await ask(upstream) == (200, b"hi")
        await asyncio.sleep(0.15)
        assert await ask(upstream) == (200, b"hi")
        assert server.connections == 2


async def test_a_second_reply_in_the_same_packet_ends_the_connection() -> None:
    async with talking(saying(OK + OK.replace(b"hi", b"no"), then_close=False), answers_ok) as (upstream, server):
        assert await ask(upstream) == (200, b"hi")
        assert await ask(upstream) == (200, b"hi")
        assert server.connections == 2


async def test_uploads_are_framed() -> None:
    async with talking(answers_ok) as (upstream, server):
        await rest(await upstream.send("POST", "/files", [], uploading([b"abc", b"", b"de"])))
        await rest(await upstream.send("POST", "/files", [(b"content-length", b"5")], uploading([b"abc", b"de"])))
        first, second = server.requests
        assert first.endswith(b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        assert second.endswith(b"content-length: 5\r\n\r\nabcde")
        assert b"transfer-encoding" not in second


async def test_an_upload_s_own_failure_comes_through() -> None:
    async with talking(answers_ok) as (upstream, server):
        with pytest.raises(BodyTooLarge):
            await upstream.send("POST", "/files", [], uploading([b"abc"], BodyTooLarge("too large")))
        assert await server.peers[0].gone()


async def test_a_refusal_before_the_upload_is_through() -> None:
    async def refuses(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        await peer.say(b"HTTP/1.1 413 Too Large\r\ncontent-length: 4\r\n\r\nstop")
        await peer.linger()

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1000
            await asyncio.sleep(0.01)

    async with talking(refuses) as (upstream, server):
        reply = await upstream.send("POST", "/files", [], endless())
        assert (reply.status, await rest(reply)) == (413, b"stop")
        assert await server.peers[0].gone()


async def test_a_slow_upload_is_not_the_upstream_s_silence() -> None:
    async def slow() -> AsyncIterator[bytes]:
        for _ in range(4):
            await asyncio.sleep(0.1)
            yield b"x"

    async with talking(answers_ok, read_timeout_s=0.2) as (upstream, _):
        reply = await upstream.send("POST", "/files", [], slow())
        assert await rest(reply) == b"hi"


async def test_a_large_body_is_whole() -> None:
    body = bytes(range(256)) * 12_000
    async with talking(answers_ok) as (upstream, server):
        assert await ask(upstream, body) == (200, b"hi")
        assert server.requests[0].endswith(body)


async def test_no_more_is_read_than_somebody_takes() -> None:
    sent = 0

    async def pours(peer: Peer) -> None:
        nonlocal sent
        await peer.request()
        peer.writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 32000000\r\n\r\n")
        for _ in range(500):
            peer.writer.write(b"y" * 64_000)
            await peer.writer.drain()
            sent += 64_000

    async with talking(pours) as (upstream, _):
        reply = await upstream.send("POST", "/x", [], b"")
        await asyncio.sleep(0.3)
        assert sent < 16_000_000  # the sockets' own buffers hold some megabytes
        assert len(await rest(reply)) == 32_000_000


async def test_closing_before_the_end_ends_the_connection() -> None:
    async with talking(saying(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", then_close=False)) as (
        upstream,
        server,
    ):
        reply = await upstream.send("POST", "/x", [], b"")
        reply.close()
        assert await server.peers[0].gone()


async def test_giving_up_while_waiting_ends_the_connection() -> None:
    async with talking(saying(then_close=False)) as (upstream, server):
        task = asyncio.create_task(ask(upstream))
        await asyncio.sleep(0.1)
        assert server.requests
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await server.peers[0].gone()


async def test_connections_are_bounded_and_taken_in_turn() -> None:
    async with talking(answers_ok, max_connections=2) as (upstream, server):
        held = [await upstream.send("POST", "/x", [], b"") for _ in range(2)]
        waiting = [asyncio.create_task(ask(upstream)) for _ in range(3)]
        await asyncio.sleep(0.1)
        assert not any(task.done() for task in waiting)
        waiting[0].cancel()
        for reply in held:
            await rest(reply)
        async with asyncio.timeout(SOON_S):
            assert [await task for task in waiting[1:]] == [(200, b"hi")] * 2
        assert server.connections == 2


async def test_a_connection_that_ends_makes_room_for_who_waits() -> None:
    async with talking(saying(b"HTTP/1.1 200 OK\r\n\r\n", then_close=False), answers_ok, max_connections=1) as (
        upstream,
        _,
    ):
        held = await upstream.send("POST", "/x", [], b"")
        waiting = asyncio.create_task(ask(upstream))
        await asyncio.sleep(0.05)
        held.close()
        async with asyncio.timeout(SOON_S):
            assert await waiting == (200, b"hi")


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_tls(tmp_path: Path, run: Callable[[Any], None]) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: no certificate can be made")
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    )
    subprocess.run([*command.split(), "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    run(_over_tls(key, cert))


async def _over_tls(key: Path, cert: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    async with serving(answers_ok, tls=context) as server:
        url = f"https://localhost:{server.port}/v1"
        trusting, strict = made(url, ca_file=str(cert)), made(url, retries=0)
        assert await ask(trusting) == (200, b"hi")
        assert await ask(trusting, bytes(1_000_000)) == (200, b"hi")
        assert server.connections == 1
        with pytest.raises(UpstreamUnreachable):
            await ask(strict)
        await trusting.close()
        await strict.close()
        await asyncio.sleep(0.05)
