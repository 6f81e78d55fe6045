"""A provider with another protocol, through the whole gateway: the openai SDK, the real litellm, Anthropic's wire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionMessage

from tests.conftest import Launch
from tests.support.anthropic_server import AnthropicServer, Scripted, anthropic_server
from tests.support.builders import function_tool
from tests.support.chat import fresh_key
from tests.support.gateway_process import GatewayProcess

MODEL = "claude-sonnet-4-5"


@pytest.fixture(scope="module")
def provider() -> Iterator[AnthropicServer]:
    """One scripted provider for the module."""
    with anthropic_server() as server:
        yield server


@pytest.fixture(scope="module")
def behind(launch: Launch, provider: AnthropicServer) -> GatewayProcess:
    """A gateway whose only upstream is that provider."""
    upstream = {
        "name": "claude",
        "provider": "anthropic",
        "base_url": provider.url,
        "api_key": "sk-own",
        "models": ["claude-*"],
    }
    return launch(upstreams=[upstream])


@pytest.fixture
def client(behind: GatewayProcess) -> Iterator[openai.OpenAI]:
    """A client under a key of its own."""
    with openai.OpenAI(base_url=f"{behind.url}/v1", api_key=fresh_key(), max_retries=0, timeout=60) as made:
        yield made


def test_plain_with_usage_and_system(client: openai.OpenAI, provider: AnthropicServer) -> None:
    provider.replies.append(
        Scripted(
            [{"type": "text", "text": "Aye."}],
            usage={"input_tokens": 7, "output_tokens": 3, "cache_read_input_tokens": 5},
        )
    )
    got = client.chat.completions.create(
        model=MODEL, messages=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Ready?"}]
    )
    assert got.choices[0].message.content == "Aye."
    assert got.usage is not None
    assert got.usage.completion_tokens == 3
    assert got.usage.prompt_tokens == 12
    assert got.usage.prompt_tokens_details is not None
    assert got.usage.prompt_tokens_details.cached_tokens == 5
    sent = provider.requests[-1]
    assert "Be brief." in str(sent["system"])
    assert provider.request_headers[-1].get("x-api-key") == "sk-own"


def test_streamed(client: openai.OpenAI, provider: AnthropicServer) -> None:
    provider.replies.append(Scripted([{"type": "text", "text": "One two three."}]))
    chunks = list(
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Count."}], stream=True)
    )
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "One two three."
    assert any(chunk.choices and chunk.choices[0].finish_reason == "stop" for chunk in chunks)


@pytest.mark.parametrize("stream", [False, True])
def test_a_tool_goes_there_and_back(client: openai.OpenAI, provider: AnthropicServer, stream: bool) -> None:
    provider.replies.append(
        Scripted(
            [{"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"path": "a.py"}}], stop_reason="tool_use"
        )
    )
    tools: Any = [function_tool("look")]
    question: Any = {"role": "user", "content": "Look at a.py."}
    message: ChatCompletionMessage
    if stream:
        with client.chat.completions.stream(model=MODEL, messages=[question], tools=tools) as events:
            message = events.get_final_completion().choices[0].message
    else:
        message = client.chat.completions.create(model=MODEL, messages=[question], tools=tools).choices[0].message
    assert message.tool_calls is not None
    call = message.tool_calls[0]
    assert call.type == "function"
    assert (call.id, call.function.name) == ("toolu_1", "look")
    provider.replies.append(Scripted([{"type": "text", "text": "Seen."}]))
    calls = [{"id": call.id, "type": "function", "function": {"name": "look", "arguments": call.function.arguments}}]
    history: Any = [
        question,
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": call.id, "content": "x = 1"},
    ]
    got = client.chat.completions.create(model=MODEL, messages=history, tools=tools)
    assert got.choices[0].message.content == "Seen."
    results = [
        block
        for message in provider.requests[-1]["messages"]
        for block in message["content"]
        if isinstance(block, dict)
    ]
    assert any(block.get("type") == "tool_result" and block["tool_use_id"] == "toolu_1" for block in results)


def test_a_refusal_keeps_its_status(client: openai.OpenAI, provider: AnthropicServer) -> None:
    provider.replies.append(
        Scripted(status=429, error={"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}})
    )
    with pytest.raises(openai.RateLimitError, match="slow down"):
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Hi"}])


def test_a_fact_is_remembered_there_too(client: openai.OpenAI, provider: AnthropicServer) -> None:
    for text in ("I prefer tabs for indentation.", "Which indentation do I prefer?"):
        provider.replies.append(Scripted([{"type": "text", "text": "Noted."}]))
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": text}])
    assert "tabs for indentation" in str(provider.requests[-1].get("system"))
