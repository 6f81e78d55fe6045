"""The resident memory of a real gateway process under thousands of requests that all differ."""

from __future__ import annotations

import http.client
import json
import random
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

from bench.processes import PROBE, Pins, Running, free_port, start_upstream
from bench.soaking.generate import WINDOWS, Generator

CLIENTS = 8
READINGS = 10
BIG_EVERY = 50
"""Each so many-th request carries a result of `BIG_CHARS` characters: the sizes that make a leak show."""
BIG_CHARS = 300_000


def start_gateway(upstream: str, directory: Path) -> Running:
    """The gateway with the generated conversations' windows, so that every stage works."""
    port = free_port()
    config = {
        "data_dir": str(directory / "data"),
        "upstreams": [{"name": "default", "base_url": f"{upstream}/v1"}],
        "models": {f"win-{window}": {"window": window} for window in WINDOWS},
    }
    path = directory / "config.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    command = [sys.executable, "-m", "gateway", "serve", "--config", str(path), "--port", str(port)]
    return Running(command, port, PROBE, Pins(False), middle=True, log=directory / "gateway.log")


def rss(requests: int, seed: int) -> int:
    """Send them, print the memory along the way; how many were not answered with 200."""
    with (
        tempfile.TemporaryDirectory(prefix="gateway-rss-") as name,
        start_upstream(Pins(False)) as upstream,
        start_gateway(upstream.url, Path(name)) as gateway,
    ):
        started = time.perf_counter()
        print(f"\na real gateway under {requests:,} requests, no two alike, {CLIENTS} at a time")
        print(f"  at the start {gateway.rss_mb():,.0f} MB")
        step = max(1, requests // READINGS)
        refused = 0
        with ThreadPoolExecutor(CLIENTS) as pool:
            for first in range(0, requests, step):
                last = min(first + step, requests)
                shares = [range(first + client, last, CLIENTS) for client in range(CLIENTS)]
                refused += sum(pool.map(lambda share: _send(gateway.port, seed, share), shares))
                print(f"  after {last:,} requests {gateway.rss_mb():,.0f} MB", flush=True)
        print(f"  {refused:,} refused, {requests / (time.perf_counter() - started):,.0f} requests/s with their making")
    return refused


def _send(port: int, seed: int, numbers: range) -> int:
    """These conversations' last requests, one after another on one connection; how many were refused."""
    generator = Generator(seed)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    refused = 0
    for number in numbers:
        case = generator.case(number)
        messages = [*case.requests[-1]]
        if number % BIG_EVERY == 0:
            state = random.Random(number)
            big = " ".join(str(state.random()) for _ in range(BIG_CHARS // 20))
            call = {"id": "big", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": "big", "content": big})
        document = {"model": f"win-{case.window}", "messages": messages, "stream": number % 3 == 0, **case.fields}
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer sk-soak-{number % 1000}"}
        connection.request("POST", "/v1/chat/completions", json.dumps(document), headers)
        reply = connection.getresponse()
        reply.read()
        refused += reply.status != 200
    connection.close()
    return refused
