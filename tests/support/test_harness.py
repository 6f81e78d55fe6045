"""The harness is held to account before it judges anything else: the scripted upstream, the counter, the pair
checker.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings

from tests.support.builders import Message, assistant, check_pairs, conversations, system, tool, tool_call, user
from tests.support.chat_model import ChatModel, count_request
from tests.support.raw_http import RawClient, fetch
from tests.support.upstream import Cut, Hang, Reply, Upstream, json_reply, split_events, sse_reply


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    with Upstream(ChatModel()) as running:
        yield running


def test_records_a_call_exactly(server: Upstream) -> None:
    server.reset()
    server.queue(json_reply({"ok": True}, 201, [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")]))
    reply = fetch(server.port, "PUT", "/v1/a%2Fb?q=%20x", b"\x00\xff", [("X-Odd", "1"), ("x-odd", "2")])
    call = server.only_call()
    assert (call.method, call.target, bytes(call.body)) == ("PUT", "/v1/a%2Fb?q=%20x", b"\x00\xff")
    assert call.header_all("X-ODD") == ["1", "2"]
    assert (reply.status, reply.body, reply.header_all("set-cookie")) == (201, b'{"ok":true}', ["a=1", "b=2"])


def test_holds_a_stream_until_let_go(server: Upstream) -> None:
    server.reset()
    gate = threading.Event()
    server.queue(sse_reply([b"data: 1\n\n", gate, b"data: 2\n\n"]))
    with RawClient(server.port) as client:
        client.request("GET", "/v1/x")
        assert client.read_until(b"data: 1\n\n") == b"data: 1\n\n"
        gate.set()
        assert client.reply().body == b"data: 1\n\ndata: 2\n\n"


def test_sees_the_caller_hang_up(server: Upstream) -> None:
    server.reset()
    server.queue(Reply(before=[Hang()]), json_reply({}))
    with RawClient(server.port) as client:
        client.request("GET", "/v1/x")
        assert server.wait_until(lambda: server.calls and server.calls[0].complete_at)
        left_at = time.monotonic()
    assert server.wait_until(lambda: server.calls[0].disconnected_at)
    assert (server.calls[0].disconnected_at or 0) >= left_at
    fetch(server.port, "GET", "/v1/y")
    assert server.wait_until(lambda: server.calls[1].answered_at)
    assert server.calls[1].disconnected_at is None


def test_cuts_the_line_inside_a_message(server: Upstream) -> None:
    server.reset()
    server.queue(sse_reply([b"data: 1\n\n", Cut(), b"data: 2\n\n"]))
    reply = fetch(server.port, "GET", "/v1/x")
    assert (reply.body, reply.complete) == (b"data: 1\n\n", False)


def test_chunk_sizes_leave_the_bytes_alone(server: Upstream) -> None:
    server.reset()
    body = 'data: {"t":"数据"}\n\n: ping\n\ndata: [DONE]\n\n'.encode()
    server.queue(sse_reply(body, chunk=3), sse_reply(body))
    assert fetch(server.port, "GET", "/v1/x").body == body
    assert fetch(server.port, "GET", "/v1/x").body == body
    assert [len(event) for event in split_events(body)] == [len('data: {"t":"数据"}\n\n'.encode()), 8, 14]


def test_counts_like_the_cookbook() -> None:
    # "hello world" is two o200k tokens and every role name here one: 3 + 1 + 2 a message, and 3 to prime the reply.
    messages = [system("hello world"), user("hello world")]
    assert count_request({"messages": messages}) == 15


def test_model_refuses_over_its_window_and_knows_a_side_call(server: Upstream) -> None:
    server.reset()
    model = ChatModel(window=40)
    with server.answering(model):
        model.announce([user("hello world")])
        body = b'{"model":"m","messages":[{"role":"user","content":"hello world"}]}'
        assert fetch(server.port, "POST", "/v1/chat/completions", body).status == 200
        other = b'{"model":"m","messages":[{"role":"user","content":"Summarise."}]}'
        assert fetch(server.port, "POST", "/v1/chat/completions", other).status == 200
        long = body.replace(b"hello world", b"hello " * 50)
        refused = fetch(server.port, "POST", "/v1/chat/completions", long)
    assert refused.status == 400
    assert b"context_length_exceeded" in refused.body
    assert [turn.summariser for turn in model.turns] == [False, True, True]


@pytest.mark.parametrize(
    ("messages", "problems"),
    [
        ([user("a"), assistant(None, tool_call("1"), tool_call("2")), tool("2", ""), tool("1", ""), user("b")], 0),
        ([user("a"), assistant(None, tool_call("1"), tool_call("2")), tool("1", ""), user("b")], 1),
        ([user("a"), tool("1", "")], 1),
        ([user("a"), assistant(None, tool_call("1")), tool("1", ""), tool("1", "")], 1),
        ([user("a"), assistant(None, tool_call("1"))], 1),
        ([assistant(None, tool_call("1"), tool_call("1")), tool("1", ""), tool("1", "")], 1),
    ],
)
def test_pair_checker(messages: list[Message], problems: int) -> None:
    assert len(check_pairs(messages)) == problems


@settings(max_examples=100)
@given(conversations())
def test_generated_conversations_are_valid(messages: list[Message]) -> None:
    assert check_pairs(messages) == []
    assert messages[-1]["role"] in ("user", "tool")
