"""The load generator: its own process, raw bytes over kept-alive sockets, so that it is never what is measured.

It reads one JSON command a line on stdin (`url`, `size`, `stream`, `concurrency`, `seconds`, `at_least` requests,
`headers`) and answers one JSON line: requests done, errors, seconds, milliseconds to the whole reply and to its
first byte (each sorted), and what `X-Gateway-Actions` said. Each connection sends its next request when the last
has been read whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlsplit

from bench.bodies import Body, build

END_OF_CHUNKS = b"0\r\n\r\n"
PATH = "/v1/chat/completions"
LOOK_EVERY = 17
"""One reply in this many is read for what the gateway did: coprime to the rotation, so that each has its turn."""
QUANTILES = 1000
"""Values kept of each run: enough for a 99th percentile, few enough for one write to a pipe."""


@dataclass
class Tally:
    """What one run saw."""

    latencies: list[float] = field(default_factory=list)
    first_bytes: list[float] = field(default_factory=list)
    errors: int = 0
    actions: Counter[str] = field(default_factory=Counter)


class Connection(asyncio.Protocol):
    """One socket; `ask` sends a request and returns when its reply is whole."""

    def __init__(self) -> None:
        self.waiter: asyncio.Future[bytes] | None = None
        self.buffer = bytearray()
        self.first_at = 0.0
        self.body_from = 0
        self.needed = -1
        self.closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's own class does not inherit from it

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_exception(ConnectionError("closed inside a reply"))

    def data_received(self, data: bytes) -> None:
        if not self.buffer:
            self.first_at = time.perf_counter()
        self.buffer += data
        if self.body_from == 0:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            self.body_from = end + 4
            head = bytes(self.buffer[:end]).lower()
            at = head.find(b"content-length:")
            self.needed = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else -1
        done = (
            len(self.buffer) - self.body_from >= self.needed
            if self.needed >= 0
            else self.buffer.endswith(END_OF_CHUNKS)
        )
        if done and self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(bytes(self.buffer))

    async def ask(self, request: bytes) -> bytes:
        """The whole reply, head and framing included."""
        self.waiter = asyncio.get_running_loop().create_future()
        self.buffer.clear()
        self.body_from, self.needed = 0, -1
        self.transport.write(request)
        return await self.waiter


def note_actions(reply: bytes, tally: Tally) -> None:
    """Count what the gateway says it did, by stage."""
    at = reply[:4096].lower().find(b"\r\nx-gateway-actions:")
    if at >= 0:
        value = reply[at + 20 :].split(b"\r\n", 1)[0].decode("latin-1").strip()
        tally.actions.update(part.split(":")[0] for part in value.split(",") if part)


async def worker(command: dict[str, Any], bodies: list[Body], numbers: Any, until: float, tally: Tally) -> None:
    """Send requests on one connection until the time is up; reconnect where the server closed."""
    url = urlsplit(command["url"])
    extra = "".join(f"{name}: {value}\r\n" for name, value in command.get("headers", {}).items())
    heads = [
        f"POST {PATH} HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\nAccept: */*\r\n"
        f"Authorization: Bearer sk-bench\r\n{extra}Content-Length: {len(body)}\r\n\r\n".encode()
        for body in bodies
    ]
    mark = b"[DONE]" if command["stream"] else b'"usage"'
    loop = asyncio.get_running_loop()
    connection: Connection | None = None
    while time.perf_counter() < until or len(tally.latencies) < command["at_least"]:
        if connection is None or connection.closed:
            _, connection = await loop.create_connection(Connection, url.hostname, url.port)
        number = next(numbers)
        index = number % len(bodies)
        request = heads[index] + bodies[index].with_number(number)
        start = time.perf_counter()
        try:
            reply = await connection.ask(request)
        except ConnectionError:
            tally.errors += 1
            continue
        tally.latencies.append(time.perf_counter() - start)
        tally.first_bytes.append(connection.first_at - start)
        if not reply.startswith(b"HTTP/1.1 200") or mark not in reply:
            tally.errors += 1
        if number % LOOK_EVERY == 0:
            note_actions(reply, tally)
    if connection is not None:
        connection.transport.close()


def quantiles_ms(seconds: list[float]) -> list[float]:
    """At most QUANTILES of the sorted values, evenly apart, in milliseconds."""
    ordered = sorted(seconds)
    if len(ordered) > QUANTILES:
        ordered = [ordered[index * len(ordered) // QUANTILES] for index in range(QUANTILES)]
    return [round(value * 1000, 4) for value in ordered]


async def run(command: dict[str, Any], bodies: list[Body], numbers: Any) -> dict[str, Any]:
    """One measured run."""
    tally = Tally()
    start = time.perf_counter()
    until = start + float(command["seconds"])
    await asyncio.gather(*(worker(command, bodies, numbers, until, tally) for _ in range(command["concurrency"])))
    seconds = time.perf_counter() - start
    return {
        "requests": len(tally.latencies),
        "errors": tally.errors,
        "seconds": seconds,
        "latency_ms": quantiles_ms(tally.latencies),
        "first_byte_ms": quantiles_ms(tally.first_bytes),
        "actions": dict(tally.actions),
    }


def main() -> None:
    """Answer commands until stdin ends."""
    import uvloop

    kept: dict[tuple[str, bool], list[Body]] = {}
    numbers = itertools.count()
    for line in sys.stdin:
        command = json.loads(line)
        which = (command["size"], command["stream"])
        if which not in kept:
            kept[which] = build(*which)
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(uvloop.run(run(command, kept[which], numbers))), flush=True)


if __name__ == "__main__":
    main()
