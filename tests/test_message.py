"""What is known of a message, what names it, and what a message must be to be taken at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import BadRequest
from gateway.message import Messages, Recent
from gateway.tokens import fast
from tests.support.builders import Message, assistant, conversations, tool, tool_call, user
from tests.support.engine import Engine

MARK = {"type": "ephemeral"}


def reader() -> Messages:
    """One with nothing remembered."""
    return Messages(fast.message_tokens)


def written(message: Message, **style: Any) -> bytes:
    """As some client's JSON library writes it."""
    return json.dumps(message, **style).encode()


@settings(max_examples=80)
@given(conversations(max_rounds=3))
def test_the_way_a_message_is_written_is_no_part_of_its_identity(messages: list[Message]) -> None:
    for message in messages:
        styles = [
            written(message),
            written(message, ensure_ascii=False, separators=(",", ":")),
            written(message, indent=2),
        ]
        assert len({reader().read(raw).facts.identity for raw in styles}) == 1


@settings(max_examples=80)
@given(conversations(max_rounds=4))
def test_messages_that_differ_have_names_that_differ(messages: list[Message]) -> None:
    messages_read = reader()
    messages = [{key: value for key, value in message.items() if key != "cache_control"} for message in messages]
    told = {json.dumps(message, sort_keys=True): messages_read.read(written(message)).facts for message in messages}
    assert len({facts.identity for facts in told.values()}) == len(told)
    assert len({facts.key for facts in told.values()}) == len(told)


def test_a_cache_mark_that_moves_changes_no_identity() -> None:
    plain = user("hello")
    forms = [
        plain,
        {"role": "user", "content": [{"type": "text", "text": "hello"}]},
        {"role": "user", "content": [{"type": "text", "text": "hello", "cache_control": MARK}]},
        {**plain, "cache_control": MARK},
    ]
    facts = [reader().read(written(message)).facts for message in forms]
    assert len({one.identity for one in facts}) == 1
    assert len({one.key for one in facts}) == 4
    other = {"role": "user", "content": [{"type": "text", "text": "hello", "x": 1}]}
    assert reader().read(written(other)).facts.identity != facts[0].identity


def test_a_mark_that_the_client_took_away_does_not_come_back(tmp_path: Path) -> None:
    engine = Engine(tmp_path, memory={"enabled": False})
    try:
        log = "same line\n" * 200
        marked = {**tool("c1", log), "cache_control": MARK}
        opening = [user("look"), assistant(None, tool_call("c1", "bash"))]
        first = engine.send([*opening, marked])
        second = engine.send([*opening, tool("c1", log), assistant("ok"), user("more")])
        assert "fold" in first.turn.actions
        assert "fold" in second.turn.actions
        assert first.messages[2]["cache_control"] == MARK
        assert "cache_control" not in second.messages[2]
        assert first.messages[2]["content"] == second.messages[2]["content"]
    finally:
        engine.close()


def test_facts_of_calls_and_replies() -> None:
    read = reader()
    made = read.read(written(assistant(None, tool_call("a"), tool_call("b")))).facts
    assert made.calls == ("a", "b")
    reply = read.read(written(tool("a", "done"))).facts
    assert (reply.reply_to, reply.is_tool, reply.size) == ("a", True, 4)
    assert read.read(b'{"role":"developer","content":"x"}').facts.is_instruction
    odd = read.read(b'{"role":"assistant","tool_calls":[{"function":{}},7,null]}').facts
    assert odd.calls == ("", "", "")


@pytest.mark.parametrize(
    ("raw", "param"),
    [
        (b"{}", "messages[4].role"),
        (b'{"role":7}', "messages[4].role"),
        (b'{"role":null,"content":"x"}', "messages[4].role"),
        (b'{"role":"user","content":7}', "messages[4].content"),
        (b'{"role":"user","content":true}', "messages[4].content"),
        (b'{"role":"assistant","tool_calls":{}}', "messages[4].tool_calls"),
    ],
)
def test_what_no_chat_api_takes_is_refused_by_its_path(raw: bytes, param: str) -> None:
    with pytest.raises(BadRequest) as refused:
        reader().read(raw, 4)
    assert refused.value.param == param


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5)), max_size=200), st.integers(2, 20))
def test_the_bounded_map_forgets_and_never_lies(puts: list[tuple[int, int]], limit: int) -> None:
    kept: Recent[int, int] = Recent(limit)
    last: dict[int, int] = {}
    for key, value in puts:
        kept.put(key, value)
        last[key] = value
        assert kept.get(key) == value
        assert len(kept) <= limit + 1
    for key, value in last.items():
        assert kept.get(key) in (None, value)


def test_the_bound_is_on_the_sum_of_weights() -> None:
    kept: Recent[int, bytes] = Recent(1_000)
    for number in range(100):
        kept.put(number, b"x", 100)
    assert len(kept) <= 10
    assert kept.get(99) == b"x"
    assert kept.get(0) is None
