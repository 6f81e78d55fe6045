"""Sends generated conversations through the real pipeline in one process, and tells what went wrong."""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from bench.soaking.generate import WINDOWS, Case, Generator
from bench.soaking.judge import lost, orphans, over, same_but_messages
from gateway.app import build
from gateway.intake import read_turn
from gateway.pipeline import Pipeline
from gateway.services import Services
from gateway.settings import Settings
from gateway.upstream.http import Headers
from gateway.upstream.routes import Route

SUMMARY = b'{"choices":[{"message":{"role":"assistant","content":"Goal: go on. Files: src/1.py. Next: test it."}}]}'
SHOWN = 10
"""Conversations that went wrong are named, so many of each process."""
BATCH = 25
"""Conversations between two waits for the background work."""


@dataclass
class Tally:
    """What happened. `wrong` counts by kind; none of these should be."""

    conversations: int = 0
    requests: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    actions: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    named: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Take another process's in."""
        self.conversations += other.conversations
        self.requests += other.requests
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out
        self.actions += other.actions
        self.wrong += other.wrong
        self.named += other.named

    def blame(self, kind: str, number: int, what: str = "") -> None:
        """Something went wrong with a conversation."""
        self.wrong[kind] += 1
        if len(self.named) < SHOWN:
            self.named.append(f"conversation {number}: {kind} {what}".rstrip())


class _Summariser:
    """Stands where the upstreams do: answers a summary, and now and then fails."""

    def __init__(self) -> None:
        self.asked = 0

    async def complete(self, route: Route, headers: Headers, body: bytes) -> tuple[int, bytes]:
        """Every seventh answer is an error."""
        self.asked += 1
        return (503, b"{}") if self.asked % 7 == 0 else (200, SUMMARY)

    async def close(self) -> None:
        """Nothing to close."""


def soak(seed: int, first: int, last: int) -> Tally:
    """Conversations `first` up to, not including, `last`."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with tempfile.TemporaryDirectory(prefix="gateway-soak-") as directory:
        return asyncio.run(_soak(Path(directory), seed, first, last))


async def _soak(directory: Path, seed: int, first: int, last: int) -> Tally:
    services = await _services(directory)
    pipeline = Pipeline(services)
    generator, tally = Generator(seed), Tally()
    try:
        for number in range(first, last):
            await _conversation(services, pipeline, number, generator.case(number), tally)
            if number % BATCH == 0:
                await _settled(services)
        await _settled(services)
    finally:
        await services.tasks.drain()
        await services.store.close()
    return tally


async def _conversation(services: Services, pipeline: Pipeline, number: int, case: Case, tally: Tally) -> None:
    tally.conversations += 1
    headers = [(b"authorization", f"Bearer soak-{number}".encode())]
    for request in case.requests:
        document: dict[str, Any] = {"model": f"win-{case.window}", "messages": request, **case.fields}
        raw = json.dumps(document, ensure_ascii=number % 2 == 0).encode()
        tally.requests += 1
        try:
            turn = await read_turn(services, str(number), headers, raw)
            out = await pipeline.run(turn)
        except Exception as error:  # noqa: BLE001 - what the soak is looking for
            tally.blame("exceptions", number, repr(error))
            continue
        tally.bytes_in += len(raw)
        tally.bytes_out += len(out)
        tally.actions.update(
            stage if isinstance(what, int) else f"{stage}:{what}" for stage, what in turn.actions.items()
        )
        if failed := [name for name in turn.failures if name != "compact"]:
            tally.blame("stages that failed", number, ",".join(failed))
        if out == raw:
            continue
        sent = json.loads(out)["messages"]
        if found := orphans(sent):
            tally.blame("orphaned pairs", number, f"({found})")
        if excess := over(case.window, out, sent):
            tally.blame("over the window", number, f"by {excess} of {case.window}, {turn.actions}")
        if "cut" not in turn.actions and lost(request, sent):
            tally.blame("words lost that must stay", number)
        if not same_but_messages(raw, out):
            tally.blame("other fields changed", number)


async def _services(directory: Path) -> Services:
    upstream = {"name": "default", "base_url": "http://127.0.0.1:9/v1", "models": ["*"]}
    models = {f"win-{window}": {"window": window} for window in WINDOWS}
    settings = Settings.model_validate({"data_dir": str(directory), "upstreams": [upstream], "models": models})
    services = await build(settings)
    await asyncio.to_thread(services.counting.precise.load, "o200k_base")
    await services.upstreams.close()
    services.upstreams = services.summariser.upstreams = _Summariser()  # type: ignore[assignment]
    return services


async def _settled(services: Services) -> None:
    while len(services.tasks):  # noqa: ASYNC110 - `Tasks` tells nobody when it is idle
        await asyncio.sleep(0.001)
