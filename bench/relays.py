"""The least a relay can be: the yardsticks that the gateway's overhead is held against.

Each is an honest minimal program, one process, that forwards method, path, headers and body, and streams the
reply's bytes as they come, with the engine its name says: `aiohttp` (aiohttp.web in front, one
aiohttp.ClientSession behind) and `httpx` (uvicorn in front, one httpx.AsyncClient behind). Neither parses JSON.
Both run on uvloop by default, as the gateway does; `--loop asyncio` turns it off.

    python bench/relays.py aiohttp --upstream http://127.0.0.1:9000 --port 9001
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable, MutableMapping
from typing import Any

HOP_BY_HOP = {
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}
"""RFC 9110 §7.6.1 and the older lists; what `Connection` itself names is dropped too."""


def end_to_end(headers: Iterable[tuple[str, str]], *also: str) -> list[tuple[str, str]]:
    """The headers that go on to the next hop."""
    pairs = list(headers)
    named = {part.strip().lower() for key, value in pairs if key.lower() == "connection" for part in value.split(",")}
    dropped = HOP_BY_HOP | named | set(also)
    return [(key, value) for key, value in pairs if key.lower() not in dropped]


def run_aiohttp(upstream: str, port: int) -> None:
    """aiohttp.web to aiohttp.ClientSession."""
    import aiohttp
    from aiohttp import web
    from yarl import URL

    async def forward(request: web.Request) -> web.StreamResponse:
        session: aiohttp.ClientSession = request.app[key]
        body = await request.read() if request.body_exists else None
        url = URL(upstream + request.raw_path, encoded=True)
        sent = end_to_end(request.headers.items(), "host", "content-length")
        async with session.request(
            request.method, url, headers=sent, data=body, allow_redirects=False, skip_auto_headers=skipped
        ) as reply:
            answer = web.StreamResponse(status=reply.status, reason=reply.reason)
            for name, value in end_to_end(reply.headers.items()):
                answer.headers.add(name, value)
            await answer.prepare(request)
            async for chunk in reply.content.iter_any():
                await answer.write(chunk)
            await answer.write_eof()
            return answer

    async def client(app: web.Application) -> Any:
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False) as session:
            app[key] = session
            yield

    key = web.AppKey("session", aiohttp.ClientSession)
    skipped = ("Accept", "Accept-Encoding", "User-Agent", "Content-Type")
    app = web.Application(client_max_size=256 * 2**20)
    app.cleanup_ctx.append(client)
    app.router.add_route("*", "/{path:.*}", forward)
    web.run_app(
        app, host="127.0.0.1", port=port, print=None, access_log=None, handler_cancellation=True, loop=_new_loop()
    )


def run_httpx(upstream: str, port: int, loop: str) -> None:
    """uvicorn (a bare ASGI function) to httpx.AsyncClient."""
    import httpx
    import uvicorn

    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    client = httpx.AsyncClient(limits=limits, timeout=None, trust_env=False)

    async def forward(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body = bytearray()
        more = True
        while more:
            event = await receive()
            body += event.get("body", b"")
            more = event.get("more_body", False)
        query = scope["query_string"]
        target = scope["raw_path"] + (b"?" + query if query else b"")
        given = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        request = client.build_request(
            scope["method"],
            upstream + target.decode("latin-1"),
            headers=end_to_end(given, "host", "content-length"),
            content=bytes(body),
        )
        reply = await client.send(request, stream=True)
        try:
            headers = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in end_to_end(reply.headers.multi_items())]
            await send({"type": "http.response.start", "status": reply.status_code, "headers": headers})
            async for chunk in reply.aiter_raw():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            await reply.aclose()

    how: Any = "uvloop" if loop == "uvloop" else "asyncio"
    config = uvicorn.Config(
        forward,
        host="127.0.0.1",
        port=port,
        loop=how,
        http="httptools",
        lifespan="off",
        access_log=False,
        log_level="warning",
        server_header=False,
        date_header=False,
    )
    uvicorn.Server(config).run()


def _new_loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


def main() -> None:
    """Run one relay until it is told to end."""
    parser = argparse.ArgumentParser(description="A bare relay, as a yardstick.")
    parser.add_argument("engine", choices=["aiohttp", "httpx"])
    parser.add_argument("--upstream", required=True, help="scheme, host and port to forward to")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--loop", choices=["uvloop", "asyncio"], default="uvloop")
    arguments = parser.parse_args()
    if arguments.engine == "httpx":
        run_httpx(arguments.upstream, arguments.port, arguments.loop)
        return
    if arguments.loop == "uvloop":
        import uvloop

        uvloop.install()
    run_aiohttp(arguments.upstream, arguments.port)


if __name__ == "__main__":
    main()
