"""The whole pipeline in this process: real settings, counting, stages and SQLite store, with a scripted summariser.

Only the network is missing. A request goes in as bytes and comes out as the bytes that would leave for the upstream,
so properties over many conversations cost milliseconds each. Front-door tests show the same over HTTP.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import orjson

from gateway.app import build
from gateway.intake import read_turn
from gateway.pipeline import Pipeline
from gateway.services import Services
from gateway.settings import Settings
from gateway.turn import Turn
from gateway.upstream.http import Headers
from gateway.upstream.routes import Route
from tests.support.builders import Message

T = TypeVar("T")
WINDOWS = (300, 500, 900, 1_700, 3_200, 8_000, 128_000)
"""Tokens; the model for each is `win-<tokens>`."""
CANARY = re.compile(rb"canary-[0-9a-f]+")
SETTLE_S = 30.0


@dataclass
class Sent:
    """One request through the pipeline."""

    turn: Turn
    client: bytes
    out: bytes

    @property
    def messages(self) -> list[Message]:
        """What leaves, decoded."""
        found: list[Message] = orjson.loads(self.out)["messages"]
        return found


@dataclass
class ScriptedUpstreams:
    """Stands where `Upstreams` does: answers side calls, and never gets a chat."""

    summary: str | None = "Goal: finish the task. Progress: the first steps are done. Next: go on."
    """None: the upstream fails."""
    asked: list[bytes] = field(default_factory=list)
    gate: asyncio.Event | None = None
    """Where set, answers wait for it."""

    async def complete(self, route: Route, headers: Headers, body: bytes) -> tuple[int, bytes]:
        """The summary, and every canary that the request told of, so that a leak can be seen."""
        self.asked.append(body)
        if self.gate is not None:
            await self.gate.wait()
        if self.summary is None:
            return 500, b'{"error":{"message":"down"}}'
        text = " ".join([self.summary, *sorted({name.decode() for name in CANARY.findall(body)})])
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return 200, orjson.dumps({"choices": [choice]})

    async def close(self) -> None:
        """Nothing to close."""


class Engine:
    """One gateway without its network. `close` when done; `restarted` gives another on the same store."""

    def __init__(self, directory: Path, **sections: Any) -> None:
        self.directory = directory
        self.sections = sections
        self.upstreams = ScriptedUpstreams()
        self._loop = asyncio.new_event_loop()
        self.services = self.run(self._build())
        self.pipeline = Pipeline(self.services)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on this gateway's loop."""
        return self._loop.run_until_complete(work)

    def send(
        self,
        messages: list[Message],
        *,
        window: int = 128_000,
        key: str = "k",
        headers: Headers | None = None,
        settle: bool = True,
        **fields: Any,
    ) -> Sent:
        """One request; `settle` waits for the background work that it began."""
        raw = orjson.dumps({"model": f"win-{window}", "messages": messages, **fields})
        return self.send_raw(raw, key=key, headers=headers, settle=settle)

    def send_raw(self, raw: bytes, *, key: str = "k", headers: Headers | None = None, settle: bool = True) -> Sent:
        """The same for a body as bytes."""
        return self.run(self.pass_through(raw, key=key, headers=headers, settle=settle))

    async def pass_through(
        self, raw: bytes, *, key: str = "k", headers: Headers | None = None, settle: bool = True
    ) -> Sent:
        """The same, inside the loop."""
        pairs = [(b"authorization", f"Bearer {key}".encode()), *(headers or [])]
        turn = await read_turn(self.services, "test", pairs, raw)
        out = await self.pipeline.run(turn)
        if settle:
            await self.settled()
        return Sent(turn, raw, out)

    async def settled(self) -> None:
        """Wait until no background work is left."""
        async with asyncio.timeout(SETTLE_S):
            while len(self.services.tasks):  # noqa: ASYNC110 - `Tasks` tells nobody when it is idle, nor should it
                await asyncio.sleep(0.001)

    def restarted(self) -> Engine:
        """Close this one, and another gateway on its store."""
        self.close()
        return Engine(self.directory, **self.sections)

    def close(self) -> None:
        """Drain and close."""
        self.run(self._close())
        self._loop.close()

    async def _build(self) -> Services:
        upstream = {"name": "default", "base_url": "http://127.0.0.1:9/v1", "models": ["*"]}
        settings = Settings.model_validate(
            {
                "data_dir": str(self.directory),
                "upstreams": [upstream],
                "models": {f"win-{window}": {"window": window} for window in WINDOWS},
                **self.sections,
            }
        )
        services = await build(settings)
        await asyncio.to_thread(services.counting.precise.load, "o200k_base")
        await services.upstreams.close()
        services.upstreams = services.summariser.upstreams = self.upstreams  # type: ignore[assignment]
        return services

    async def _close(self) -> None:
        await self.services.tasks.drain()
        await self.services.store.close()
