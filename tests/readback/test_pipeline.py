"""Rounds that were put back are messages like any others: pairs stay whole and prefixes stay, whatever is shrunk."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.body import ChatBody
from gateway.conversation import Reading
from gateway.forms import TOOL_NAME
from gateway.readback.readings import reading_digest
from tests.support.builders import Message, assistant, check_pairs, conversations, tool, tool_call
from tests.support.engine import Engine, Sent

keys = (f"k{number}" for number in itertools.count())
numbers = itertools.count()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One gateway whose models may read; each conversation under a key of its own."""
    made = Engine(tmp_path_factory.mktemp("engine"), spill={"tool": True}, memory={"enabled": False})
    yield made
    made.close()


def text(message: Message) -> str:
    """As it is kept."""
    return orjson.dumps(message).decode()


def plant(engine: Engine, sent: Sent, reply: Message, lines: int, *, beside: bool) -> list[str]:
    """Let the model have read something before the reply (and beside its calls); gives the ids of the reads."""
    name, other = f"own_{next(numbers)}", f"own_{next(numbers)}"
    body = "\n".join(f"{name} {number} = {number * 37}" for number in range(lines))
    rounds = (text(assistant(None, tool_call(name, TOOL_NAME, '{"id":"x"}'))), text(tool(name, body)))
    calls = tuple(call["id"] for call in reply.get("tool_calls") or ())
    added = ((0, text(tool_call(other, TOOL_NAME, "{}")), text(tool(other, "[none]"))),) if beside and calls else ()
    content = reply.get("content")
    said = reading_digest(content if isinstance(content, str) else "")
    key = next(item.chain for item in reversed(sent.turn.items) if not item.own)
    made = (Reading(rounds, "", said, calls, added),)

    async def keep() -> None:
        engine.services.conversations.amend(sent.turn.conversation, key, readings=made)
        await engine.settled()

    engine.run(keep())
    return [name, other] if added else [name]


def steps(messages: list[Message]) -> list[int]:
    """Lengths of the requests that a client sends on its way: each ends before a reply, the last at the end."""
    ends = [
        i for i, m in enumerate(messages) if m["role"] == "assistant" and messages[i - 1]["role"] in ("user", "tool")
    ]
    return [*(end for end in ends if end > 0), len(messages)]


@settings(max_examples=60)
@given(conversations(), st.sampled_from([900, 1_700, 3_200, 128_000]), st.data())
def test_pairs_stay_whole_and_prefixes_stay(
    engine: Engine, messages: list[Message], window: int, data: st.DataObject
) -> None:
    key, before, reads = next(keys), list[bytes](), list[str]()
    for end in steps(messages):
        sent = engine.send(messages[:end], window=window, key=key)
        assert sent.turn.failures == []
        assert check_pairs(sent.messages) == []
        raw = ChatBody.parse(sent.out).messages
        if not sent.turn.rewritten:
            assert raw[: len(before)] == before
        if window == 128_000:
            assert [m["tool_call_id"] for m in sent.messages if str(m.get("tool_call_id")).startswith("own")] == reads
        before = raw
        if end < len(messages) and data.draw(st.booleans()):
            reads += plant(engine, sent, messages[end], data.draw(st.integers(1, 60)), beside=data.draw(st.booleans()))


@settings(max_examples=20)
@given(conversations(), st.sampled_from([1_700, 128_000]))
def test_another_start_sends_the_same(
    tmp_path_factory: pytest.TempPathFactory, messages: list[Message], window: int
) -> None:
    directory: Path = tmp_path_factory.mktemp("again")
    engine = Engine(directory, spill={"tool": True}, memory={"enabled": False})
    try:
        for end in steps(messages):
            sent = engine.send(messages[:end], window=window)
            if end < len(messages):
                plant(engine, sent, messages[end], 20, beside=True)
        settled = engine.send(messages, window=window)
        if settled.out != sent.out:
            assert settled.turn.rewritten
        engine = engine.restarted()
        again = engine.send(messages, window=window)
        assert again.out == settled.out or again.turn.rewritten
        assert check_pairs(again.messages) == []
    finally:
        engine.close()
