"""A real server behind the gateway answers as it does without: the same replies, the same usage, no work for nobody."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from tests.real.asking import MODEL, ask, told
from tests.real.conftest import Clients, Front
from tests.real.llama_server import OUTPUT_MOST, LlamaServer
from tests.support.builders import Message, assistant, function_tool, system, tool, tool_call, user
from tests.support.chat import auth as bearer
from tests.support.chat import chat_body, eventually, fresh_key
from tests.support.raw_http import RawClient

pytestmark = pytest.mark.timeout(900)

TOOLS = [function_tool("read_file", path="string"), function_tool("运行", 命令="string")]
CONVERSATION: list[Message] = [
    system("You are a careful engineer."),
    user("Why does the build fail? 请用中文回答。"),
    assistant(None, tool_call("call_1", "read_file", '{"path":"build.log"}'), tool_call("call_2", "运行", "{}")),
    tool("call_1", "error: cannot find symbol\n  at Main.java:12"),
    tool("call_2", "成功"),
]
NO_MEMORY = {"memory": {"enabled": False}}


def streamed(client: openai.OpenAI, messages: list[Message], **fields: Any) -> tuple[list[str], Any, list[Any]]:
    """Why a streamed answer finished, its headers and its usage objects."""
    create: Any = client.chat.completions.with_raw_response.create
    raw = create(model=MODEL, messages=messages, stream=True, max_tokens=12, extra_body={"ignore_eos": True}, **fields)
    chunks = list(raw.parse())
    finished = [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason]
    return finished, raw.headers, [chunk.usage for chunk in chunks if chunk.usage is not None]


def test_usage_is_the_servers_own(llama: LlamaServer, front: Front, clients: Clients) -> None:
    gateway = front()
    direct, through = clients(llama.url), clients(gateway.url)
    for messages in ([user("Say hello.")], CONVERSATION):
        fields: dict[str, Any] = {"tools": TOOLS} if messages is CONVERSATION else {}
        there, here = ask(direct, messages, **fields), ask(through, messages, **fields)
        assert (here.prompt, here.completion) == (there.prompt, there.completion)
        assert here.actions == {}
        assert here.cached >= here.prompt - 2  # the same prompt was just read; the last token always is again


def test_streams_are_the_servers_own(llama: LlamaServer, front: Front, clients: Clients) -> None:
    direct, through = clients(llama.url), clients(front().url)
    options = {"stream_options": {"include_usage": True}}
    _, _, (usage_there,) = streamed(direct, CONVERSATION, **options)
    finished, headers, (usage_here,) = streamed(through, CONVERSATION, **options)
    assert finished == ["length"]
    assert usage_here.completion_tokens == usage_there.completion_tokens == 12
    assert told(usage_here, headers).prompt == usage_there.prompt_tokens
    assert streamed(through, CONVERSATION)[2] == []


def test_the_servers_refusals_are_heard(llama: LlamaServer, front: Front, clients: Clients) -> None:
    bad = [{"role": "user"}]
    errors = []
    for client in (clients(llama.url), clients(front().url)):
        with pytest.raises(openai.APIStatusError) as caught:
            ask(client, bad)
        errors.append((caught.value.status_code, caught.value.body))
    assert errors[0] == errors[1]


def test_a_client_that_leaves_a_stream_stops_the_server(llama: LlamaServer, front: Front) -> None:
    gateway = front(**NO_MEMORY)
    ended = len(llama.ended())
    body = chat_body([user("Count: one, two, three, four,")], model=MODEL, stream=True, ignore_eos=True)
    with RawClient(gateway.port) as client:
        client.request("POST", "/v1/chat/completions", body, bearer(fresh_key()))
        client.read_until(b'"content":"')
    assert eventually(lambda: len(llama.ended()) > ended, timeout=60)
    assert not llama.busy()
    assert llama.ended()[-1] < OUTPUT_MOST


def test_a_client_that_leaves_before_the_first_byte_stops_the_server(llama: LlamaServer, front: Front) -> None:
    gateway = front(**NO_MEMORY)
    ended, words = len(llama.ended()), 1_500
    body = chat_body([user(" ".join(f"w{number}" for number in range(words // 4)))], model=MODEL, ignore_eos=True)
    with RawClient(gateway.port) as client:
        client.request("POST", "/v1/chat/completions", body, bearer(fresh_key()))
        assert eventually(llama.busy, timeout=60, every=0.01)
    assert eventually(lambda: len(llama.ended()) > ended, timeout=60)
    assert llama.ended()[-1] < words
