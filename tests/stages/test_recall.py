"""A recall belongs to its turn: it ends with it, and two requests at once have one pin between them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from gateway.memory.service import Recalled
from tests.support.builders import assistant, system, user
from tests.support.engine import Engine

MESSAGES = [system("Be brief."), user("Which tea do I like?")]
BODY = orjson.dumps({"model": "win-8000", "messages": MESSAGES})


def test_a_client_that_leaves_ends_its_recall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(tmp_path)
    begun, ended = asyncio.Event(), asyncio.Event()

    async def slow(*_: Any, **__: Any) -> Recalled:
        begun.set()
        try:
            await asyncio.sleep(3_600)
        finally:
            ended.set()
        return Recalled()

    async def leaves() -> int:
        request = asyncio.create_task(engine.pass_through(BODY, settle=False))
        await begun.wait()
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)
        async with asyncio.timeout(5):
            await ended.wait()
            await engine.settled()
        return len(engine.services.tasks)

    monkeypatch.setattr(engine.services.memory, "recall", slow)
    try:
        assert engine.run(leaves()) == 0
    finally:
        engine.close()


def test_requests_at_once_have_one_pin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each recall finds something else; what was pinned first holds for all of them, and ever after."""
    engine = Engine(tmp_path)
    number = 0

    async def another(*_: Any, **__: Any) -> Recalled:
        nonlocal number
        number += 1
        mine = number
        await asyncio.sleep(0.05 / mine)
        return Recalled(retrieved=((f"id{mine}", f"Finding number {mine}."),))

    async def at_once() -> list[bytes]:
        sent = await asyncio.gather(*(engine.pass_through(BODY, settle=False) for _ in range(4)))
        return [one.out for one in sent]

    monkeypatch.setattr(engine.services.memory, "recall", another)
    try:
        outs = engine.run(at_once())
        assert number == 4
        assert b"Finding number" in outs[0]
        assert len(set(outs)) == 1
        assert engine.send_raw(BODY).out == outs[0]
        assert number == 4  # what is pinned is not asked for again
    finally:
        engine.close()
    engine = Engine(tmp_path)
    try:
        later = engine.send([*MESSAGES, assistant("Oolong."), user("And which cake?")], window=8_000)
        assert later.messages[:2] == orjson.loads(outs[0])["messages"]
    finally:
        engine.close()
