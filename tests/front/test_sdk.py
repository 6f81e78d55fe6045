"""The real openai SDK against a real gateway: what people will point at it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from typing import Any

import openai
import orjson
import pytest
from openai.types.chat import ChatCompletionMessageParam
from pydantic import BaseModel

from tests.support.builders import function_tool, png_data_url
from tests.support.chat import MODEL, fresh_key
from tests.support.gateway_process import GatewayProcess
from tests.support.upstream import Upstream, error_reply, json_reply, sse_reply

QUESTION: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Which way to the harbour?"}]


class Answer(BaseModel):
    """A structured reply."""

    place: str
    minutes: int


@pytest.fixture
def client(gateway: GatewayProcess) -> Iterator[openai.OpenAI]:
    """A client under a fresh key that does not retry."""
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=fresh_key(), max_retries=0, timeout=30) as made:
        yield made


def completion(message: dict[str, Any], finish: str = "stop") -> bytes:
    """A completion with that message."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    common = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": MODEL}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    return orjson.dumps({**common, "choices": [choice], "usage": usage})


def stream_of(*deltas: dict[str, Any], finish: str = "stop") -> bytes:
    """A stream of those deltas."""
    common = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    lines = [b"data: " + orjson.dumps({**common, "choices": [choice]}) for choice in choices]
    return b"".join(line + b"\n\n" for line in [*lines, b"data: [DONE]"])


def test_plain(upstream: Upstream, client: openai.OpenAI) -> None:
    upstream.queue(json_reply(completion({"content": "Left at the mill."})))
    got = client.chat.completions.create(model=MODEL, messages=QUESTION, temperature=0.5)
    assert got.choices[0].message.content == "Left at the mill."
    assert got.usage is not None
    assert got.usage.prompt_tokens == 3
    assert upstream.only_call().json() == {"model": MODEL, "messages": QUESTION, "temperature": 0.5}


def test_streamed(upstream: Upstream, client: openai.OpenAI) -> None:
    upstream.queue(sse_reply(stream_of({"role": "assistant", "content": ""}, {"content": "向左"}, {"content": " 🙂"})))
    with client.chat.completions.create(model=MODEL, messages=QUESTION, stream=True) as stream:
        text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
    assert text == "向左 🙂"


async def test_async_plain_and_streamed(upstream: Upstream, gateway: GatewayProcess) -> None:
    async with openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=fresh_key(), max_retries=0) as client:

        async def ask(number: int) -> str | None:
            got = await client.chat.completions.create(
                model=MODEL, messages=[{"role": "user", "content": f"echo {number}"}]
            )
            return got.choices[0].message.content

        with upstream.answering(
            lambda call: json_reply(completion({"content": call.json()["messages"][0]["content"]}))
        ):
            assert await asyncio.gather(*map(ask, range(20))) == [f"echo {number}" for number in range(20)]
        upstream.queue(sse_reply(stream_of({"content": "a"}, {"content": "b"})))
        stream = await client.chat.completions.create(model=MODEL, messages=QUESTION, stream=True)
        pieces = [chunk.choices[0].delta.content async for chunk in stream]
    assert [piece for piece in pieces if piece] == ["a", "b"]


def test_tools_plain(upstream: Upstream, client: openai.OpenAI) -> None:
    calls = [
        {"id": f"call_{n}", "type": "function", "function": {"name": "weather", "arguments": f'{{"city":"{n}"}}'}}
        for n in range(2)
    ]
    upstream.queue(json_reply(completion({"content": None, "tool_calls": calls}, "tool_calls")))
    tools: Any = [function_tool("weather", city="string")]
    got = client.chat.completions.create(model=MODEL, messages=QUESTION, tools=tools, parallel_tool_calls=True)
    made = got.choices[0].message.tool_calls or []
    assert [call.model_dump() for call in made] == calls
    assert upstream.only_call().json()["tools"] == tools


def test_tools_streamed(upstream: Upstream, client: openai.OpenAI) -> None:
    def piece(index: int, **function: str) -> dict[str, Any]:
        head = {"id": f"call_{index}", "type": "function"} if "name" in function else {}
        return {"tool_calls": [{"index": index, **head, "function": function}]}

    upstream.queue(
        sse_reply(
            stream_of(
                piece(0, name="weather", arguments=""),
                piece(0, arguments='{"city":'),
                piece(1, name="clock", arguments=""),
                piece(1, arguments="{}"),
                piece(0, arguments='"Kotor"}'),
                finish="tool_calls",
            )
        )
    )
    with client.chat.completions.stream(model=MODEL, messages=QUESTION) as stream:
        message = stream.get_final_completion().choices[0].message
    made = [(call.function.name, call.function.arguments) for call in message.tool_calls or []]
    assert made == [("weather", '{"city":"Kotor"}'), ("clock", "{}")]


def test_structured_output(upstream: Upstream, client: openai.OpenAI) -> None:
    upstream.queue(json_reply(completion({"content": '{"place":"Kotor","minutes":12}', "refusal": None})))
    got = client.chat.completions.parse(model=MODEL, messages=QUESTION, response_format=Answer)
    assert got.choices[0].message.parsed == Answer(place="Kotor", minutes=12)
    schema = upstream.only_call().json()["response_format"]["json_schema"]["schema"]
    assert set(schema["properties"]) == {"place", "minutes"}


def test_vision(upstream: Upstream, client: openai.OpenAI) -> None:
    url = png_data_url(640, 480)
    content: Any = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": url, "detail": "high"}},
    ]
    upstream.queue(json_reply(completion({"content": "Grey."})))
    raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=[{"role": "user", "content": content}])
    assert raw.parse().choices[0].message.content == "Grey."
    assert upstream.only_call().json()["messages"] == [{"role": "user", "content": content}]
    # 640 × 480 at high detail is 2 × 1 tiles: OpenAI's rule gives 85 + 2 × 170 = 425, gpt-4o-mini's dearer tiles
    # 2833 + 2 × 5667 = 14167; as base64 text it would depend on the file's size instead.
    assert 300 <= int(raw.headers["x-gateway-tokens-before"]) <= 15_000


def test_other_endpoints(upstream: Upstream, client: openai.OpenAI) -> None:
    upstream.queue(
        json_reply({"object": "list", "data": [{"id": "m", "object": "model", "created": 1, "owned_by": "x"}]}),
        json_reply(
            {
                "object": "list",
                "model": "e",
                "data": [{"object": "embedding", "index": 0, "embedding": [0.5, -1.0]}],
                "usage": {"prompt_tokens": 1, "total_tokens": 1},
            }
        ),
        json_reply(
            {"id": "file-1", "object": "file", "bytes": 4, "created_at": 1, "filename": "a", "purpose": "batch"}
        ),
        json_reply({"created": 1, "data": [{"b64_json": base64.b64encode(b"png").decode()}]}),
    )
    assert [model.id for model in client.models.list()] == ["m"]
    embedded = client.embeddings.create(model="e", input="x", encoding_format="float")
    assert embedded.data[0].embedding == [0.5, -1.0]
    assert client.files.create(file=("a", b"\x00\x01\x02\x03"), purpose="batch").id == "file-1"
    assert client.images.generate(model="i", prompt="a boat").data is not None
    assert [call.target for call in upstream.calls] == [
        "/v1/models",
        "/v1/embeddings",
        "/v1/files",
        "/v1/images/generations",
    ]
    assert b"\x00\x01\x02\x03" in upstream.calls[2].body


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "invalid_value", openai.BadRequestError),
        (401, "invalid_api_key", openai.AuthenticationError),
        (404, "model_not_found", openai.NotFoundError),
        (429, "insufficient_quota", openai.RateLimitError),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_errors_become_the_sdks_own(
    upstream: Upstream, client: openai.OpenAI, status: int, code: str, kind: type[openai.APIStatusError], stream: bool
) -> None:
    with upstream.answering(lambda _: error_reply(status, "No.", code)), pytest.raises(kind) as caught:
        client.chat.completions.create(model=MODEL, messages=QUESTION, stream=stream)
    assert (caught.value.status_code, caught.value.code) == (status, code)
