"""What one more turn of a long conversation costs inside the gateway: no network, every stage on.

A conversation of 50 messages (100 KB) and one of 500 (1 MB) go on turn by turn, a call and its result at a time, each
sent whole as an agent would. Timed is everything from the request's bytes to the bytes for the upstream; reading the
same body with orjson stands beside it. The two alternate, so that what the machine does meanwhile falls on both.

    python -m bench.engine
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import orjson
import structlog

from bench.bodies import prose, tool_result
from gateway.app import build
from gateway.intake import read_turn
from gateway.pipeline import Pipeline
from gateway.services import Services
from gateway.settings import Settings

SIZES = ((50, 100_000), (500, 1_000_000))
"""Messages, bytes."""
TURNS = 200
WARM_UP = 10
MODEL = "bench"
WINDOW = 2_000_000
"""Tokens, so that nothing has to be shrunk: what is measured is the ordinary turn."""
HEADERS = [(b"authorization", b"Bearer bench"), (b"content-type", b"application/json")]


def conversation(state: random.Random, messages: int, size: int) -> list[dict[str, Any]]:
    """An agent at work: a task, then calls and their results."""
    made: list[dict[str, Any]] = [
        {"role": "system", "content": prose(state, 300)},
        {"role": "user", "content": f"Task {messages}: {prose(state, 60)}"},
    ]
    share = size * 2 // messages - 300
    while len(made) < messages:
        made += step(state, len(made), share)
    return made


def step(state: random.Random, number: int, size: int) -> list[dict[str, Any]]:
    """One call and its result."""
    call = {"id": f"call_{number}", "type": "function", "function": {"name": "run", "arguments": f'{{"n":{number}}}'}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": tool_result(state, size)},
    ]


async def turn_ms(services: Services, pipeline: Pipeline, body: bytes) -> float:
    """Milliseconds from the request's bytes to the upstream's."""
    started = time.perf_counter()
    await pipeline.run(await read_turn(services, "bench", HEADERS, body))
    return (time.perf_counter() - started) * 1000


def parse_ms(body: bytes) -> float:
    """Milliseconds that orjson takes to read the body."""
    started = time.perf_counter()
    orjson.loads(body)
    return (time.perf_counter() - started) * 1000


async def measure(directory: Path) -> dict[int, tuple[list[float], list[float]]]:
    """Turn and parse times, by the number of messages that the conversation began with."""
    services = await build(Settings.model_validate({"data_dir": str(directory), "models": {"*": {"window": WINDOW}}}))
    pipeline = Pipeline(services)
    state = random.Random(11)
    talks = {messages: conversation(state, messages, size) for messages, size in SIZES}
    found: dict[int, tuple[list[float], list[float]]] = {messages: ([], []) for messages, _ in SIZES}
    for number in range(TURNS + WARM_UP):
        for messages, size in SIZES:
            talks[messages] += step(state, len(talks[messages]), size * 2 // messages - 300)
            body = json.dumps({"model": MODEL, "messages": talks[messages]}, separators=(",", ":")).encode()
            taken, parsed = await turn_ms(services, pipeline, body), parse_ms(body)
            if number >= WARM_UP:
                found[messages][0].append(taken)
                found[messages][1].append(parsed)
            talks[messages] = (
                talks[messages][: messages + 40] if len(talks[messages]) > messages + 40 else talks[messages]
            )
            await asyncio.sleep(0)
    await services.tasks.drain(5)
    await services.upstreams.close()
    await services.store.close()
    return found


def main() -> None:
    """Measure and print."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with tempfile.TemporaryDirectory() as directory:
        found = asyncio.run(measure(Path(directory)))
    print("messages  turn ms: median     p95   orjson ms  beyond parsing")
    beyond = {}
    for messages, (taken, parsed) in found.items():
        median, parse = statistics.median(taken), statistics.median(parsed)
        beyond[messages] = max(0.0, median - parse)
        p95 = sorted(taken)[int(len(taken) * 0.95)]
        print(f"{messages:8d}  {median:15.2f} {p95:7.2f} {parse:11.2f} {beyond[messages]:15.2f}")
    small, large = (beyond[messages] for messages, _ in SIZES)
    print(f"\nBeyond parsing, the long conversation takes {large / small:.2f} times the short one." if small else "")


if __name__ == "__main__":
    main()
