"""The real litellm, in its own process, between the gateway's side and a server that speaks Anthropic's protocol."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from gateway.errors import UpstreamUnreachable
from gateway.settings import UpstreamSettings
from gateway.upstream.overflow import context_overflow
from gateway.upstream.provider_process import ProviderProcess
from gateway.upstream.providers import LitellmUpstream, ProviderReply
from gateway.upstream.reply import Choice, Reply, ReplyTee
from gateway.upstream.toolcalls import ToolCall
from gateway.upstream.usage import Usage
from tests.support.anthropic_server import AnthropicServer, Block, anthropic_server, error_body

pytestmark = pytest.mark.timeout(120)

KEY = "sk-ant-very-secret"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "The weather in a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]
THOUGHT: Block = {"type": "thinking", "thinking": "Two cities, two calls.", "signature": "c2ln"}
TEXT: Block = {"type": "text", "text": "Looking it up, 我来查一下 😄."}
CALLS: list[Block] = [
    {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Niš"}},
    {"type": "tool_use", "id": "toolu_2", "name": "weather", "input": {"city": "北京"}},
]
USAGE = {"input_tokens": 10, "output_tokens": 25, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 7}
QUESTION = {"role": "user", "content": "And the weather?"}


@pytest.fixture(scope="module")
def process() -> Iterator[ProviderProcess]:
    process = ProviderProcess()
    yield process
    asyncio.run(process.close())


@pytest.fixture
def server() -> Iterator[AnthropicServer]:
    with anthropic_server() as running:
        yield running


@pytest.fixture
async def upstream(server: AnthropicServer, process: ProviderProcess) -> AsyncIterator[LitellmUpstream]:
    settings = UpstreamSettings.model_validate(
        {"name": "claude", "provider": "anthropic", "base_url": server.url, "api_key": KEY}
    )
    upstream = LitellmUpstream(settings, process)
    yield upstream
    await upstream.close()


async def whole(reply: ProviderReply) -> bytes:
    body = b"".join([chunk async for chunk in reply.chunks])
    reply.close()
    return body


async def ask(upstream: LitellmUpstream, *, stream: bool, **fields: Any) -> tuple[ProviderReply, bytes]:
    request = {"model": "claude-sonnet-4-5", "messages": [QUESTION], **fields}
    reply = await upstream.complete(request, stream=stream)
    return reply, await whole(reply)


def read(body: bytes, *, stream: bool) -> Reply:
    if not stream:
        return Reply.from_json(body)
    tee = ReplyTee()
    tee.feed(body)
    return tee.finish()


@pytest.mark.parametrize("stream", [False, True])
async def test_everything_in_a_reply_survives(server: AnthropicServer, upstream: LitellmUpstream, stream: bool) -> None:
    server.say(THOUGHT, TEXT, *CALLS, stop_reason="tool_use", usage=USAGE)
    reply, body = await ask(upstream, stream=stream, tools=TOOLS, stream_options={"include_usage": True})
    assert reply.status == 200
    kind = b"text/event-stream" if stream else b"application/json"
    assert any(name == b"content-type" and value.startswith(kind) for name, value in reply.headers)
    assert body.endswith(b"data: [DONE]\n\n") is stream
    got = read(body, stream=stream)
    calls = [(call.id, call.name, orjson.loads(call.arguments)) for call in got.choices[0].tool_calls]
    assert calls == [("toolu_1", "weather", {"city": "Niš"}), ("toolu_2", "weather", {"city": "北京"})]
    assert got.choices[0].text == TEXT["text"]
    assert got.choices[0].reasoning == THOUGHT["thinking"]
    assert got.choices[0].finish_reason == "tool_calls"
    assert got.usage is not None
    assert (got.usage.prompt_tokens, got.usage.completion_tokens, got.usage.cached_tokens) == (117, 25, 100)
    assert got.usage_only_chunk is stream
    assert not got.truncated


async def test_usage_is_streamed_only_where_asked_for(server: AnthropicServer, upstream: LitellmUpstream) -> None:
    server.say(TEXT)
    _, body = await ask(upstream, stream=True)
    got = read(body, stream=True)
    assert not got.usage_only_chunk
    assert got.choices == [Choice(0, TEXT["text"], finish_reason="stop")]


async def test_what_the_provider_gets(server: AnthropicServer, upstream: LitellmUpstream) -> None:
    server.say(TEXT)
    picture = "data:image/png;base64,iVBORw0KGgo="
    messages = [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": picture}}],
        },
    ]
    choice = {"type": "function", "function": {"name": "weather"}}
    await ask(upstream, stream=False, messages=messages, tools=TOOLS, tool_choice=choice, max_tokens=77, seed=1)
    sent = server.requests[0]
    assert sent["model"] == "claude-sonnet-4-5"
    assert sent["max_tokens"] == 77
    assert [block["text"] for block in sent["system"]] == ["Be brief."]
    image = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    assert sent["messages"][0]["content"] == [
        {"type": "text", "text": "What is it?"},
        {"type": "image", "source": image},
    ]
    assert sent["tools"][0]["name"] == "weather"
    assert sent["tools"][0]["input_schema"]["required"] == ["city"]
    assert (sent["tool_choice"]["type"], sent["tool_choice"]["name"]) == ("tool", "weather")
    assert server.request_headers[0]["x-api-key"] == KEY


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_round_trip(server: AnthropicServer, upstream: LitellmUpstream, stream: bool) -> None:
    server.say(TEXT, *CALLS, stop_reason="tool_use")
    server.say({"type": "text", "text": "Sunny in both."})
    _, body = await ask(upstream, stream=stream, tools=TOOLS)
    message = read(body, stream=stream).choices[0].message()
    results = [{"role": "tool", "tool_call_id": f"toolu_{n}", "content": f"sunny {n}"} for n in (1, 2)]
    reply, body = await ask(upstream, stream=stream, messages=[QUESTION, message, *results], tools=TOOLS)
    assert reply.status == 200, body
    assert read(body, stream=stream).text == "Sunny in both."
    _, assistant, answers = server.requests[1]["messages"]
    assert [block["id"] for block in assistant["content"] if block["type"] == "tool_use"] == ["toolu_1", "toolu_2"]
    assert [block["tool_use_id"] for block in answers["content"]] == ["toolu_1", "toolu_2"]


async def test_calls_without_declared_tools_pass(server: AnthropicServer, upstream: LitellmUpstream) -> None:
    server.say(TEXT)
    call = Choice(0, tool_calls=[ToolCall("toolu_1", "weather", "{}")]).message()
    messages = [QUESTION, call, {"role": "tool", "tool_call_id": "toolu_1", "content": "sunny"}]
    reply, body = await ask(upstream, stream=False, messages=messages)
    assert reply.status == 200, body


OVERFLOW = error_body("invalid_request_error", "prompt is too long: 215000 tokens > 200000 maximum")
ERRORS: list[tuple[int, dict[str, Any], dict[str, str], str, str | None]] = [
    (400, OVERFLOW, {}, OVERFLOW["error"]["message"], "context_length_exceeded"),
    (429, error_body("rate_limit_error", "Slow down."), {"retry-after": "7"}, "Slow down.", "rate_limit_exceeded"),
    (529, error_body("overloaded_error", "Overloaded"), {}, "Overloaded", None),
    (401, error_body("authentication_error", "invalid x-api-key"), {}, "invalid x-api-key", "invalid_api_key"),
    (500, error_body("api_error", "Internal server error"), {}, "Internal server error", None),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("status", "error", "headers", "message", "code"), ERRORS)
async def test_errors_keep_status_and_words(
    server: AnthropicServer,
    upstream: LitellmUpstream,
    stream: bool,
    status: int,
    error: dict[str, Any],
    headers: dict[str, str],
    message: str,
    code: str | None,
) -> None:
    server.say(status=status, error=error, headers=headers)
    reply, body = await ask(upstream, stream=stream)
    assert reply.status == status
    assert orjson.loads(body)["error"] == {
        "message": message,
        "type": error["error"]["type"],
        "param": None,
        "code": code,
    }
    assert dict(reply.headers).get(b"retry-after") == (b"7" if headers else None)
    assert KEY.encode() not in body
    assert len(server.requests) == 1, "no retries but the gateway's own"
    found = context_overflow(reply.status, body)
    assert (found is not None) == (status == 400)
    if found is not None:
        assert (found.limit, found.requested) == (200000, 215000)


async def test_an_error_in_the_middle_of_a_stream(server: AnthropicServer, upstream: LitellmUpstream) -> None:
    server.say(TEXT, error_after=5)
    reply, body = await ask(upstream, stream=True)
    assert reply.status == 200
    got = read(body, stream=True)
    assert got.error is not None
    assert "Overloaded" in got.error["message"]
    assert got.text and TEXT["text"].startswith(got.text)
    assert got.truncated


async def test_an_error_before_the_first_event(server: AnthropicServer, upstream: LitellmUpstream) -> None:
    server.say(TEXT, error_after=0, error=OVERFLOW)
    reply, body = await ask(upstream, stream=True)
    assert reply.status >= 400
    assert "prompt is too long" in orjson.loads(body)["error"]["message"]


@pytest.mark.parametrize(
    ("stream", "script"), [(False, {"delay_s": 30}), (True, {"delay_s": 30}), (True, {"pace_s": 30})]
)
async def test_hanging_up_before_the_first_chunk_cancels(
    server: AnthropicServer, upstream: LitellmUpstream, stream: bool, script: dict[str, int]
) -> None:
    server.say(TEXT, **script)
    task = asyncio.create_task(ask(upstream, stream=stream))
    assert await asyncio.to_thread(server.arrived.wait, 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.disconnected.wait, 10)


async def test_hanging_up_in_a_stream_cancels(server: AnthropicServer, upstream: LitellmUpstream) -> None:
    server.say({"type": "text", "text": "words " * 500}, pace_s=0.05)
    request = {"model": "claude-sonnet-4-5", "messages": [QUESTION]}
    reply = await upstream.complete(request, stream=True)
    first = await anext(reply.chunks)
    assert first.startswith(b"data: {")
    reply.close()
    assert await asyncio.to_thread(server.disconnected.wait, 10)


async def test_events_are_not_gathered(server: AnthropicServer, upstream: LitellmUpstream) -> None:
    server.say({"type": "text", "text": "one two three four five six"}, pace_s=0.05)
    reply = await upstream.complete({"model": "m", "messages": [QUESTION]}, stream=True)
    arrived = [chunk async for chunk in reply.chunks]
    reply.close()
    assert len(arrived) >= 4


async def test_a_client_cannot_reach_litellms_switches(server: AnthropicServer, upstream: LitellmUpstream) -> None:
    server.say(TEXT)
    switches: dict[str, Any] = {
        "api_base": "http://127.0.0.1:9/",
        "base_url": "http://127.0.0.1:9/",
        "api_key": "theirs",
        "mock_response": "mocked",
        "custom_llm_provider": "openai",
        "fallbacks": ["openai/gpt-4"],
        "extra_headers": {"x-api-key": "theirs"},
        "num_retries": 9,
        "metadata": {"a": "b"},
    }
    _, body = await ask(upstream, stream=False, **switches)
    assert read(body, stream=False).text == TEXT["text"]
    assert server.request_headers[0]["x-api-key"] == KEY


async def test_nothing_named_in_a_message_is_fetched(server: AnthropicServer, upstream: LitellmUpstream) -> None:
    image = {
        "type": "image_url",
        "image_url": {"url": f"{server.url}/v1/picture.png".replace("127.0.0.1", "localhost")},
    }
    reply, body = await ask(upstream, stream=False, messages=[{"role": "user", "content": [image]}])
    assert reply.status == 400
    assert b"download is disabled" in body
    assert server.requests == []


async def test_whose_key_is_sent(server: AnthropicServer, process: ProviderProcess) -> None:
    settings = UpstreamSettings.model_validate({"name": "claude", "provider": "anthropic", "base_url": server.url})
    upstream = LitellmUpstream(settings, process)
    request = {"model": "m", "messages": [QUESTION]}
    for headers in ([(b"authorization", b"Bearer callers")], [(b"x-api-key", b"callers")], []):
        server.say(TEXT)
        await whole(await upstream.complete(request, stream=False, headers=headers))
    assert [sent["x-api-key"] for sent in server.request_headers] == ["callers", "callers", "none"]
    await upstream.close()


async def test_many_at_once(server: AnthropicServer, upstream: LitellmUpstream) -> None:
    for _ in range(12):
        server.say(TEXT)
    answers = await asyncio.gather(*(ask(upstream, stream=n % 2 == 0) for n in range(12)))
    assert [read(body, stream=n % 2 == 0).text for n, (_, body) in enumerate(answers)] == [TEXT["text"]] * 12


async def test_a_dead_provider(process: ProviderProcess) -> None:
    settings = UpstreamSettings.model_validate(
        {"name": "claude", "provider": "anthropic", "base_url": "http://127.0.0.1:9", "api_key": KEY}
    )
    upstream = LitellmUpstream(settings, process)
    reply, body = await ask(upstream, stream=True)
    assert reply.status >= 500
    assert orjson.loads(body)["error"]["message"]
    await upstream.close()


async def test_usage_reads_alike_plain_and_streamed(server: AnthropicServer, upstream: LitellmUpstream) -> None:
    seen: list[Usage | None] = []
    for stream in (False, True):
        server.say(TEXT, usage=USAGE)
        _, body = await ask(upstream, stream=stream, stream_options={"include_usage": True})
        seen.append(read(body, stream=stream).usage)
    assert seen[0] == seen[1]


def gone(pid: int) -> None:
    """Wait until a process has ended (a child not yet waited for counts as ended)."""
    for _ in range(1000):
        try:
            with Path(f"/proc/{pid}/stat").open() as stat:
                if stat.read().rpartition(")")[2].split()[0] == "Z":
                    return
        except FileNotFoundError:
            return
        time.sleep(0.02)
    pytest.fail("the provider process is still there")


# --- the process ------------------------------------------------------------------------------------------------


async def test_strangers_are_refused(process: ProviderProcess) -> None:
    address = await process.address()
    async with aiohttp.ClientSession() as session:
        for headers in ({}, {"authorization": "Bearer x"}):
            async with session.post(address.url + "/complete", json={"call": {}}, headers=headers) as response:
                assert response.status == 403


async def test_it_is_started_again_and_ended(server: AnthropicServer) -> None:
    settings = UpstreamSettings.model_validate(
        {"name": "claude", "provider": "anthropic", "base_url": server.url, "api_key": KEY}
    )
    process = ProviderProcess()
    upstream = LitellmUpstream(settings, process)
    first = (await process.address(), process.pid)
    assert first[1] is not None
    os.kill(first[1], signal.SIGKILL)
    # All its threads: its first one is a zombie while others still hold its sockets open.
    await asyncio.to_thread(os.waitid, os.P_PID, first[1], os.WEXITED | os.WNOWAIT)
    server.say(TEXT)
    await upstream.warm()
    _, body = await ask(upstream, stream=False)
    assert read(body, stream=False).text == TEXT["text"]
    again = process.pid
    assert again is not None and again != first[1]
    await upstream.close()
    await process.close()
    assert process.pid is None
    with pytest.raises(ProcessLookupError):
        os.kill(again, 0)
    with pytest.raises(UpstreamUnreachable):
        await process.address()


def test_it_ends_with_the_gateway() -> None:
    script = (
        "import asyncio, os, signal, sys; sys.path[:] = %r\n"
        "from gateway.upstream.provider_process import ProviderProcess\n"
        "process = ProviderProcess()\n"
        "asyncio.run(process.address())\n"
        "print(process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    run = subprocess.Popen([sys.executable, "-c", script % sys.path], stdout=subprocess.PIPE)
    assert run.stdout is not None
    # The child holds the same standard error, not this pipe: reading to the end waits for the parent alone.
    pid = int(run.stdout.readline())
    run.stdout.close()
    run.wait()
    gone(pid)
