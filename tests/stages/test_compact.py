"""Whatever becomes of a summary, the request leaves whole and within its window."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.summarise import Summariser
from gateway.turn import Turn
from tests.support.builders import check_pairs, user
from tests.support.engine import Engine
from tests.test_pipeline_properties import agent_session, turns

keys = (f"key-{number}" for number in itertools.count())
WINDOW = 1_700


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    made = Engine(tmp_path_factory.mktemp("engine"), memory={"enabled": False})
    yield made
    made.close()


@pytest.mark.parametrize(
    "error",
    [KeyError("x"), aiohttp.ClientPayloadError("broken"), ValueError("x"), ExceptionGroup("two", [OSError("x")])],
    ids=["KeyError", "ClientError", "ValueError", "ExceptionGroup"],
)
def test_an_unforeseen_error_of_the_summariser(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    asked = 0

    async def breaks(*_: Any) -> str:
        nonlocal asked
        asked += 1
        raise error

    monkeypatch.setattr(type(engine.services.summariser), "summarise", breaks)
    key = next(keys)
    requests = turns(agent_session(30, seed=21))
    sent = [engine.send(request, window=WINDOW, key=key) for request in requests]
    assert asked == 1  # then it is left alone for a while
    for one, request in zip(sent, requests, strict=True):
        assert one.turn.tokens_after <= one.turn.limits.hard
        assert check_pairs(one.messages) == []
        assert one.messages[:2] == request[:2]


def test_an_error_while_a_request_waits_for_the_summary(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """All at once over the limit: the summary is waited for, and fails in a way that nobody foresaw."""

    async def breaks(*_: Any) -> str:
        await asyncio.sleep(0)
        raise KeyError("x")

    monkeypatch.setattr(type(engine.services.summariser), "summarise", breaks)
    sent = engine.send(agent_session(40, seed=22), window=WINDOW, key=next(keys))
    assert sent.turn.failures == ["compact"]
    assert sent.turn.tokens_before > sent.turn.limits.window
    assert sent.turn.tokens_after <= sent.turn.limits.hard
    assert check_pairs(sent.messages) == []


def test_a_summary_that_is_cancelled_cancels_no_request(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    async def cancelled(*_: Any) -> str:
        raise asyncio.CancelledError

    monkeypatch.setattr(type(engine.services.summariser), "summarise", cancelled)
    sent = engine.send(agent_session(40, seed=23), window=WINDOW, key=next(keys))
    assert sent.turn.tokens_after <= sent.turn.limits.hard


def test_a_client_that_leaves_ends_no_summary_that_others_wait_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(tmp_path, memory={"enabled": False})

    asked, begun, summarise = 0, asyncio.Event(), Summariser.summarise

    async def two() -> bytes:
        engine.upstreams.gate = asyncio.Event()
        first, second = (asyncio.create_task(engine.pass_through(raw, settle=False)) for _ in range(2))
        await begun.wait()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        engine.upstreams.gate.set()
        return (await second).out

    async def counted(self: Summariser, turn: Turn, upto: int) -> str:
        nonlocal asked
        asked += 1
        begun.set()
        return await summarise(self, turn, upto)

    monkeypatch.setattr(Summariser, "summarise", counted)
    try:
        messages = agent_session(40, seed=24)
        raw = engine.send(messages, window=128_000).client.replace(b"win-128000", b"win-1700")
        out = engine.run(two())
        assert b"finish the task" in out
        assert asked == 1
    finally:
        engine.close()


@pytest.mark.parametrize("legacy", [True, False])
def test_a_call_larger_than_the_window_has_its_arguments_elided(engine: Engine, legacy: bool) -> None:
    arguments = json.dumps({"path": "src/a.py", "content": " ".join(f"word{n}" for n in range(2_000))})
    function = {"name": "write_file", "arguments": arguments}
    call: dict[str, Any] = {"function_call": function}
    reply: dict[str, Any] = {"role": "function", "name": "write_file", "content": "done"}
    if not legacy:
        call = {"tool_calls": [{"id": "c1", "type": "function", "function": function}]}
        reply = {"role": "tool", "tool_call_id": "c1", "content": "done"}
    messages = [user("Write the file."), {"role": "assistant", "content": None, **call}, reply]
    sent = engine.send(messages, window=WINDOW, key=next(keys))
    assert sent.turn.tokens_after <= sent.turn.limits.hard
    named = sent.messages[1]["function_call"] if legacy else sent.messages[1]["tool_calls"][0]["function"]
    assert json.loads(named["arguments"])["path"] == "src/a.py"
    assert len(named["arguments"]) < 100
    assert sent.messages[0] == messages[0]
    assert sent.messages[2] == reply
