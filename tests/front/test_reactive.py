"""The upstream says the request is too long: compact once to what it names, retry once, learn."""

from __future__ import annotations

import random
from collections.abc import Callable

import orjson
import pytest

from tests.support.agent import source_text
from tests.support.builders import Message, assistant, check_pairs, system, tool, tool_call, user
from tests.support.chat import auth, chat_body, fresh_key, send_chat
from tests.support.chat_model import ChatModel, count_request, overflow_reply
from tests.support.gateway_process import GatewayProcess
from tests.support.raw_http import fetch
from tests.support.upstream import Call, Reply, Upstream, error_reply, sse_reply

TRUE_WINDOW = 6000
TASK = "Port the ledger importer to the new schema."


def long_history(seed: int) -> list[Message]:
    """About twelve thousand tokens of tool rounds: far under the window the gateway believes in."""
    state = random.Random(seed)
    messages = [system("You are a careful engineer."), user(TASK)]
    for number in range(30):
        messages.append(assistant(None, tool_call(f"call_{number}", "read_file", '{"path":"a.py"}')))
        messages.append(tool(f"call_{number}", source_text(state, 16)))
    return messages


def accepted(model: ChatModel) -> list[list[Message]]:
    """The messages of each agent turn that the model took."""
    return [turn.request["messages"] for turn in model.agent_turns if not turn.refused]


@pytest.mark.parametrize("stream", [False, True])
def test_one_refusal_one_retry_and_a_lesson(upstream: Upstream, gateway: GatewayProcess, stream: bool) -> None:
    model, name, key = ChatModel(window=TRUE_WINDOW), f"unheard-of-{stream}", fresh_key()
    messages = long_history(1)
    assert count_request({"messages": messages}) > 1.5 * TRUE_WINDOW
    with upstream.answering(model):
        model.announce(messages)
        reply = send_chat(gateway.port, messages, key, model=name, stream=stream)
        assert reply.status == 200, reply.body
        assert [turn.refused for turn in model.agent_turns] == [True, False]
        assert b"x-gateway" not in reply.body.lower()
        later = [*messages, assistant("Done with the first half."), user("Go on with the second.")]
        model.announce(later)
        assert send_chat(gateway.port, later, key, model=name, stream=stream).status == 200
    assert [turn.refused for turn in model.agent_turns] == [True, False, False]
    for sent in accepted(model):
        assert check_pairs(sent) == []
        assert sent[0]["content"].startswith("You are a careful engineer.")
        assert any(message["content"] == TASK for message in sent)
    assert all(turn.prompt_tokens <= TRUE_WINDOW for turn in model.side_calls if not turn.refused)


def test_the_body_alone_is_too_large(upstream: Upstream, gateway: GatewayProcess) -> None:
    model, messages = ChatModel(), long_history(2)
    limit = len(chat_body(messages)) * 85 // 100

    def refuse_large(call: Call) -> Reply:
        if len(call.body) > limit:
            return error_reply(413, "Request Entity Too Large")
        return model(call)

    with upstream.answering(refuse_large):
        model.announce(messages)
        reply = send_chat(gateway.port, messages, model="unheard-of-413")
    assert reply.status == 200, reply.body
    assert len(model.agent_turns) == 1


def test_an_overflow_told_inside_a_stream(upstream: Upstream, gateway: GatewayProcess) -> None:
    model, messages = ChatModel(), long_history(3)
    refusals = []

    def refuse_in_stream(call: Call) -> Reply:
        if count_request(call.json()) > TRUE_WINDOW:
            refusals.append(call)
            told = orjson.loads(
                b"".join(step for step in overflow_reply(TRUE_WINDOW, 9000).steps if isinstance(step, bytes))
            )
            return sse_reply(b"data: " + orjson.dumps(told) + b"\n\n")
        return model(call)

    with upstream.answering(refuse_in_stream):
        model.announce(messages)
        reply = send_chat(gateway.port, messages, model="unheard-of-sse", stream=True)
    assert reply.status == 200
    assert b"context_length_exceeded" not in reply.body
    assert reply.body.endswith(b"data: [DONE]\n\n")
    assert len([call for call in refusals if count_request(call.json()) > 1.5 * TRUE_WINDOW]) == 1


def always(reply: Reply) -> Callable[[Call], Reply]:
    """A handler with one answer."""
    return lambda _: reply


@pytest.mark.parametrize("stream", [False, True])
def test_an_upstream_that_keeps_refusing_is_heard(upstream: Upstream, gateway: GatewayProcess, stream: bool) -> None:
    refusal = overflow_reply(TRUE_WINDOW, 9000)
    messages = long_history(4)
    with upstream.answering(always(refusal)):
        reply = send_chat(gateway.port, messages, model=f"unheard-of-again-{stream}", stream=stream)
    assert (reply.status, [reply.body]) == (400, list(refusal.steps))
    newest = messages[-1]["tool_call_id"]
    turns = [call.json()["messages"][-1].get("tool_call_id") for call in upstream.calls]
    assert turns.count(newest) <= 2


def test_a_short_request_is_not_retried(upstream: Upstream, gateway: GatewayProcess) -> None:
    refusal = overflow_reply(5, 9)
    with upstream.answering(always(refusal)):
        reply = fetch(gateway.port, "POST", "/v1/chat/completions", chat_body([user("hi")], model="tiny"), auth("k"))
    assert (reply.status, [reply.body]) == (400, list(refusal.steps))
    assert len(upstream.calls) <= 2
