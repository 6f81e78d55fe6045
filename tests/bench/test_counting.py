"""Counts against tiktoken, and against texts short enough to count by eye."""

from __future__ import annotations

import json

import pytest

from bench.replay.counting import TokenCounter, content_text, load_encoding, wire_text


@pytest.fixture(scope="module")
def counter() -> TokenCounter:
    return TokenCounter()


CALL = {"id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a.py"}'}}


def test_a_plain_message(counter: TokenCounter) -> None:
    encoding = load_encoding()
    one = counter.message({"role": "user", "content": "hello world"})
    assert one.rendered == 2 + 4  # "hello", " world", and the message's overhead
    assert one.billed == len(encoding.encode('"hello world"'))


def test_a_call_counts_its_name_arguments_and_overhead(counter: TokenCounter) -> None:
    encoding = load_encoding()
    one = counter.message({"role": "assistant", "content": None, "tool_calls": [CALL]})
    arguments = len(encoding.encode("read_file")) + len(encoding.encode('{"path": "a.py"}'))
    assert one.rendered == 4 + 10 + arguments
    assert one.billed == len(encoding.encode("null" + json.dumps([CALL])))


def test_text_parts_are_read_and_others_are_not() -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "image_url", "image_url": {"url": "data:"}}, "stray"]
    assert content_text(parts) == "one"
    assert content_text(None) == ""


def test_letters_outside_ascii_stay_themselves_on_the_wire() -> None:
    assert wire_text({"role": "user", "content": "数据库"}) == '"数据库"'


def test_special_tokens_in_a_log_are_text(counter: TokenCounter) -> None:
    assert counter.message({"role": "tool", "content": "<|endoftext|>"}).rendered > 4 + 1


def test_equal_messages_share_their_count_and_a_changed_field_tells_them_apart(counter: TokenCounter) -> None:
    first = counter.message({"role": "user", "content": "same"})
    assert counter.message({"role": "user", "content": "same"}) is first
    assert counter.message({"role": "user", "content": "same", "name": "ann"}).digest != first.digest


def test_tools_come_first(counter: TokenCounter) -> None:
    message = {"role": "user", "content": "hi"}
    with_tools = counter.request([message], [{"type": "function", "function": {"name": "f"}}])
    assert [one.digest for one in with_tools[1:]] == [counter.message(message).digest]
    assert with_tools[0].billed > 5


def test_a_lone_surrogate_is_hashed(counter: TokenCounter) -> None:
    assert counter.message({"role": "user", "content": "a", "name": "\ud800"}).rendered == 5
