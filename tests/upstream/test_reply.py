"""Every recorded stream, read beside the real openai SDK, and the shapes vendors are known to send.

Expected values come from the SDK's own stream decoder and, as literals, from reading the recordings.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.upstream.reply import Choice, Reply, ReplyTee, first_event_error
from gateway.upstream.sse import Event
from gateway.upstream.toolcalls import ToolCall
from gateway.upstream.usage import Usage

RECORDINGS = Path(__file__).parents[2].parent / "shared" / "data" / "sse"
NAMES = sorted(path.name for path in RECORDINGS.glob("*.sse")) if RECORDINGS.is_dir() else []
OTHER_APIS = {"responses_api_tool_use.sse", "responses_api_openrouter_cot.sse", "writer_completions.sse"}
LEGACY = {"vllm_legacy_completions.sse", "vercel_openai-completion-text.sse"}

needs_recordings = pytest.mark.skipif(not NAMES, reason="no ../shared/data/sse beside the repository")


def read(*pieces: bytes) -> Reply:
    tee = ReplyTee()
    for piece in pieces:
        tee.feed(piece)
    return tee.finish()


def stream(*chunks: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def deltas(*found: dict[str, Any], finish: str = "stop") -> bytes:
    chunks = [{"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta}]} for delta in found]
    return stream(*chunks, {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})


# --- the recordings ---------------------------------------------------------------------------------------------


class Seen:
    """What the SDK's stream says, summed up in the plainest way."""

    def __init__(self) -> None:
        self.text: dict[int, str] = {}
        self.refusal: dict[int, str] = {}
        self.calls: dict[int, dict[int, list[str]]] = {}
        self.finish: dict[int, str] = {}
        self.usage: Any = None
        self.model = ""
        self.error = ""

    def take(self, chunk: Any) -> None:
        self.model = self.model or chunk.model or ""
        self.usage = chunk.usage or self.usage
        for choice in chunk.choices:
            at = choice.index
            if choice.finish_reason:
                self.finish[at] = choice.finish_reason
            delta = getattr(choice, "delta", None)
            if delta is None:
                self.text[at] = self.text.get(at, "") + choice.text
                continue
            content = delta.content
            if isinstance(content, list):
                content = "".join(part["text"] for part in content if part["type"] == "text")
            self.text[at] = self.text.get(at, "") + (content or "")
            self.refusal[at] = self.refusal.get(at, "") + (delta.refusal or "")
            for call in delta.tool_calls or []:
                slot = self.calls.setdefault(at, {}).setdefault(call.index or 0, ["", "", ""])
                slot[0] = slot[0] or call.id or ""
                name = call.function.name or ""
                slot[1] += "" if name == slot[1] else name  # OpenRouter repeats it
                slot[2] += call.function.arguments or ""


def through_sdk(name: str) -> Seen:
    body = (RECORDINGS / name).read_bytes()
    transport = httpx.MockTransport(
        lambda request: httpx.Response(200, content=body, headers={"content-type": "text/event-stream"})
    )
    seen = Seen()
    http_client: Any = httpx.Client(transport=transport)
    with openai.OpenAI(api_key="k", base_url="http://127.0.0.1/v1", http_client=http_client, max_retries=0) as client:
        events: Any
        if name in LEGACY:
            events = client.completions.create(model="m", prompt="p", stream=True)
        else:
            events = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "p"}], stream=True)
        try:
            for chunk in events:
                seen.take(chunk)
        except openai.APIError as error:
            seen.error = error.message
    return seen


@needs_recordings
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("name", [name for name in NAMES if name not in OTHER_APIS])
def test_recordings_read_as_the_sdk_reads_them(name: str) -> None:
    seen = through_sdk(name)
    reply = read((RECORDINGS / name).read_bytes())
    assert {c.index: c.text for c in reply.choices} == seen.text
    assert {c.index: c.refusal for c in reply.choices if c.refusal} == {k: v for k, v in seen.refusal.items() if v}
    assert {c.index: c.finish_reason for c in reply.choices if c.finish_reason} == seen.finish
    assert reply.model == seen.model
    ids = [call.id for choice in reply.choices for call in choice.tool_calls]
    calls = {c.index: [[t.id, t.name, t.arguments] for t in c.tool_calls] for c in reply.choices if c.tool_calls}
    if "cererebras" in name:  # two calls share an index there: by index alone they would merge
        assert calls == {0: [["bbd2b9d98", "nonUsefulTool", "{}"], ["e0ecf32e0", "nonUsefulTool", "{}"]]}
    else:
        assert calls == {k: list(v.values()) for k, v in seen.calls.items()}
    assert len(ids) == len(set(ids))
    if seen.error:
        assert reply.error is not None and reply.error["message"] == seen.error
    elif seen.usage is None:
        assert reply.usage is None
    else:
        assert reply.usage is not None
        assert reply.usage.prompt_tokens == seen.usage.prompt_tokens
        assert reply.usage.completion_tokens == seen.usage.completion_tokens


@needs_recordings
@pytest.mark.parametrize("name", NAMES)
def test_recordings_read_the_same_in_any_pieces(name: str) -> None:
    body = (RECORDINGS / name).read_bytes()
    whole = read(body)
    for size in (1, 7):
        assert read(*(body[at : at + size] for at in range(0, len(body), size))) == whole
    assert read(body.replace(b"\n", b"\r\n")) == whole


@needs_recordings
@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(NAMES or [""]), sizes=st.lists(st.integers(1, 3000), min_size=1, max_size=9))
def test_recordings_in_random_pieces(name: str, sizes: list[int]) -> None:
    body = (RECORDINGS / name).read_bytes()
    pieces: list[bytes] = []
    at = 0
    while at < len(body):
        pieces.append(body[at : at + sizes[len(pieces) % len(sizes)]])
        at += len(pieces[-1])
    assert read(*pieces) == read(body)


# File -> (text begins, reasoning begins, calls, finish, usage, usage-only chunk, truncated), read by eye.
LITERAL: dict[str, tuple[str, str, list[tuple[str, str, str]], str | None, Usage | None, bool, bool]] = {
    "crusoe_text.sse": ("1, 2, 3, 4, 5", "", [], "stop", Usage(46, 14, 0, None), True, False),
    "deepseek_reasoning.sse": (
        "Hello there! ",
        'Hmm, the user just said "',
        [],
        "stop",
        Usage(6, 212, 0, 198),
        False,
        False,
    ),
    "deepseek_text_usage.sse": ("Sure! Here's a techy joke", "", [], "stop", Usage(12, 89, 0, None), False, False),
    "groq_error_midstream.sse": ("", "We need to call the tool", [], None, None, False, True),
    "hf_novita_text.sse": ("Paris", "", [], "stop", Usage(40, 2, None, None), True, False),
    "llm_tools_variant_a.sse": ("", "", [("0", "llm_version", "{}")], None, Usage(57, 17, 0, 0), False, False),
    "llm_tools_variant_d.sse": ("", "", [("0", "llm_version", "")], "tool_calls", Usage(57, 17, 0, 0), False, False),
    "mistral_magistral_thinking.sse": (
        "To cross the street",
        "Okay, the user",
        [],
        "stop",
        Usage(10, 232, None, None),
        False,
        False,
    ),
    "mistral_text.sse": ("Here's a light-hearted", "", [], "stop", Usage(11, 80, None, None), False, False),
    "openai_sdk_4cc50a61.sse": ('{"', "", [], "length", Usage(79, 1, None, 0), True, False),
    "openai_tools_parallel_seq0.sse": (
        "",
        "",
        [
            ("call_3rqTYrA6H21AYUaRGP4F66oq", "get_country", "{}"),
            ("call_Xw9XMKBJU48kAAd78WgIswDx", "get_product_name", "{}"),
        ],
        "tool_calls",
        Usage(364, 40, 0, 0),
        True,
        False,
    ),
    "openai_tool_call.sse": (
        "",
        "",
        [("call_ZR5UUuTt3pf61kjwAJIYdVMj", "get_capital", '{"country":"UK"}')],
        "tool_calls",
        Usage(53, 15, 0, 0),
        True,
        False,
    ),
    "openrouter_cache_usage.sse": ("Hello!", "", [], "stop", Usage(254, 5, 0, 0), True, False),
    "openrouter_error_chunk_keepalive.sse": (
        "",
        "We need to respond",
        [],
        "length",
        Usage(43, 10, 0, 11),
        False,
        False,
    ),
    "responses_api_openrouter_cot.sse": (
        "4",
        'The user asks: "What is 2+2?"',
        [],
        "stop",
        Usage(78, 37, 0, 22),
        False,
        False,
    ),
    "responses_api_tool_use.sse": (
        "",
        "",
        [("call_sVidsfFJ6zlzRpelrPkTPlpd", "multiply", '{"a":1231,"b":2331}')],
        "tool_calls",
        Usage(58, 23, 0, 0),
        False,
        False,
    ),
    "snowflake_text_empty_refusal.sse": ("4", "", [], None, Usage(22, 5, 0, 0), True, False),
    "vercel_azure-model-router.sse": ("Capital of Denmark.", "", [], "stop", Usage(15, 78, 0, 64), True, False),
    "vercel_deepseek-tool-call.sse": (
        "",
        "The user is asking for the wea",
        [("call_00_ioIn7yN9p1ZOMNpDLwd4MgAF", "weather", '{"location": "San Francisco"}')],
        "tool_calls",
        Usage(339, 83, 320, 39),
        False,
        False,
    ),
    "vercel_groq-tool-call.sse": (
        "",
        "",
        [("tk85n1k4m", "weather", "{}")],
        "tool_calls",
        Usage(210, 15, None, None),
        False,
        False,
    ),
    "vercel_mistral-reasoning.sse": (
        "2 + 2 = 4",
        "The user is asking for 2+2.",
        [],
        "stop",
        Usage(10, 46, None, None),
        False,
        False,
    ),
    "vercel_moonshotai-stream.sse": ("Hello!", "Thinking aloud. ", [], "stop", Usage(9, 12, None, 7), False, False),
    "vercel_xai-tool-call.sse": (
        "",
        "First, the user is",
        [("call_55117580", "weather", '{"location":"San Francisco"}')],
        "tool_calls",
        Usage(291, 26, 290, 196),
        True,
        False,
    ),
    "vllm_legacy_completions.sse": ('.\n\n"Human" here means', "", [], "length", None, False, False),
    "writer_completions.sse": ("Sure, here's a light-hearted joke", "", [], None, None, False, True),
}


@needs_recordings
@pytest.mark.parametrize("name", LITERAL)
def test_recordings_by_hand(name: str) -> None:
    text, reasoning, calls, finish, usage, usage_only, truncated = LITERAL[name]
    reply = read((RECORDINGS / name).read_bytes())
    choice = reply.choices[0]
    assert choice.text.startswith(text) and bool(choice.text) == bool(text)
    assert choice.reasoning.startswith(reasoning) and bool(choice.reasoning) == bool(reasoning)
    assert [(call.id, call.name, call.arguments) for call in choice.tool_calls] == calls
    assert choice.finish_reason == finish
    assert reply.usage == usage
    assert reply.usage_only_chunk is usage_only
    assert reply.truncated is truncated


@needs_recordings
def test_recorded_reasoning_is_whole() -> None:
    body = (RECORDINGS / "deepseek_reasoning.sse").read_text()
    chunks = [json.loads(line[6:]) for line in body.splitlines() if line.startswith("data: {")]
    expected = "".join(chunk["choices"][0]["delta"]["reasoning_content"] or "" for chunk in chunks)
    assert len(expected) > 500
    assert read(body.encode()).choices[0].reasoning == expected


@needs_recordings
def test_recorded_errors_in_the_stream() -> None:
    reply = read((RECORDINGS / "groq_error_midstream.sse").read_bytes())
    assert reply.error is not None
    assert reply.error["code"] == "tool_use_failed"
    reply = read((RECORDINGS / "openrouter_error_chunk_keepalive.sse").read_bytes())
    assert reply.error == {"code": 400, "message": "Token limit reached"}


@needs_recordings
def test_recorded_plain_reply_with_empty_call_ids() -> None:
    path = RECORDINGS / "gemini_compat_nonstream_empty_tool_call_id.json"
    pairs = json.loads(path.read_text())
    for pair in pairs:
        message = pair["response"]["choices"][0]["message"]
        reply = Reply.from_json(json.dumps(pair["response"]).encode())
        calls = message.get("tool_calls") or []
        assert [(c.id, c.name, c.arguments) for c in reply.choices[0].tool_calls] == [
            (call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls
        ]
        assert reply.text == (message.get("content") or "")
    assert any(pair["response"]["choices"][0]["message"].get("tool_calls") for pair in pairs)


# --- shapes -----------------------------------------------------------------------------------------------------


def call(index: int | None, call_id: str | None, name: str | None, arguments: Any, **more: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {"function": {"name": name, "arguments": arguments}, **more}
    if index is not None:
        entry["index"] = index
    if call_id is not None:
        entry["id"] = call_id
    return entry


# How calls are put together: deltas of `tool_calls` -> calls.
CALLS: dict[str, tuple[list[list[dict[str, Any]]], list[ToolCall]]] = {
    "index absent, one call in pieces": (
        [[call(None, "a", "f", "")], [call(None, None, None, '{"x"')], [call(None, None, None, ":1}")]],
        [ToolCall("a", "f", '{"x":1}')],
    ),
    "index absent, two calls": (
        [[call(None, "a", "f", '{"x":1}'), call(None, "b", "g", "{}")]],
        [ToolCall("a", "f", '{"x":1}'), ToolCall("b", "g", "{}")],
    ),
    "index absent, the id on each piece": (
        [
            [call(None, "a", "f", "{")],
            [call(None, "b", "g", "[")],
            [call(None, "a", None, "}")],
            [call(None, "b", None, "]")],
        ],
        [ToolCall("a", "f", "{}"), ToolCall("b", "g", "[]")],
    ),
    "index absent and no ids": (
        [[call(None, None, "f", "{}")], [call(None, None, "f", "{}")]],
        [ToolCall("", "f", "{}"), ToolCall("", "f", "{}")],
    ),
    "another id at the same index": (
        [[call(0, "a", "f", '{"x":1}')], [call(0, "b", "f", '{"x":2}')]],
        [ToolCall("a", "f", '{"x":1}'), ToolCall("b", "f", '{"x":2}')],
    ),
    "empty ids at the same index": (
        [[call(0, "", "f", '{"x":1}')], [call(0, "", "f", '{"x":2}')]],
        [ToolCall("", "f", '{"x":1}'), ToolCall("", "f", '{"x":2}')],
    ),
    "empty id after the true one": (
        [[call(0, "a", "f", "{")], [call(0, "", "", "}")]],
        [ToolCall("a", "f", "{}")],
    ),
    "id and name repeated on each piece": (
        [[call(0, "a", "f", '{"x"')], [call(0, "a", "f", ":1")], [call(0, "a", "f", "}")]],
        [ToolCall("a", "f", '{"x":1}')],
    ),
    "interleaved": (
        [[call(0, "a", "f", ""), call(1, "b", "g", "")], [call(1, None, None, "[]")], [call(0, None, None, "{}")]],
        [ToolCall("a", "f", "{}"), ToolCall("b", "g", "[]")],
    ),
    "later index first": (
        [[call(1, "b", "g", "[]")], [call(0, "a", "f", "{}")]],
        [ToolCall("a", "f", "{}"), ToolCall("b", "g", "[]")],
    ),
    "arguments as an object, null, and absent": (
        [
            [call(0, "a", "f", {"x": 1})],
            [call(1, "b", "g", None)],
            [{"index": 2, "id": "c", "function": {"name": "h"}}],
        ],
        [ToolCall("a", "f", '{"x":1}'), ToolCall("b", "g", ""), ToolCall("c", "h", "")],
    ),
    "the name in two pieces": (
        [[call(0, "a", "read_", None)], [call(0, None, "file", None)], [call(0, None, None, "{}")]],
        [ToolCall("a", "read_file", "{}")],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_tool_calls(name: str) -> None:
    found, expected = CALLS[name]
    reply = read(deltas(*({"tool_calls": entries} for entries in found), finish="tool_calls"))
    assert reply.choices == [Choice(0, tool_calls=expected, finish_reason="tool_calls")]


@pytest.mark.parametrize(
    ("found", "reasoning", "text"),
    [
        ([{"reasoning_content": "a"}, {"reasoning_content": "b", "content": ""}, {"content": "c"}], "ab", "c"),
        ([{"reasoning": "a", "reasoning_details": [{"text": "a"}]}, {"content": "c"}], "a", "c"),
        ([{"reasoning_details": [{"type": "reasoning.text", "text": "a"}]}], "a", ""),
        ([{"thinking": "a"}, {"content": "c"}], "a", "c"),
        ([{"reasoning_content": "a", "thinking_blocks": [{"type": "thinking", "thinking": "a"}]}], "a", ""),
        (
            [{"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "a"}]}]}, {"content": "c"}],
            "a",
            "c",
        ),
        ([{"content": [{"type": "thinking", "thinking": "a"}, {"type": "text", "text": "c"}]}], "a", "c"),
    ],
)
def test_reasoning(found: list[dict[str, Any]], reasoning: str, text: str) -> None:
    choice = read(deltas(*found)).choices[0]
    assert (choice.reasoning, choice.text) == (reasoning, text)


USAGES: list[tuple[dict[str, Any], Usage]] = [
    ({"usage": {"prompt_tokens": 9, "completion_tokens": 2}}, Usage(9, 2)),
    ({"usage": {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}}, Usage(9, None, 4)),
    ({"usage": {"prompt_tokens": 9, "prompt_tokens_details": None, "prompt_cache_hit_tokens": 5}}, Usage(9, None, 5)),
    (
        {"usage": {"prompt_tokens": 9, "cached_tokens": 6, "prompt_tokens_details": {"cached_tokens": 0}}},
        Usage(9, None, 6),
    ),
    ({"x_groq": {"usage": {"prompt_tokens": 9, "completion_tokens": 2}}}, Usage(9, 2)),
    ({"choices": [{"index": 0, "delta": {}, "usage": {"prompt_tokens": 9, "cached_tokens": 1}}]}, Usage(9, None, 1)),
    (
        {
            "usage": {
                "input_tokens": 9,
                "cache_read_input_tokens": 100,
                "cache_creation_input_tokens": 20,
                "output_tokens": 2,
            }
        },
        Usage(129, 2, 100),
    ),
    ({"usage": {"prompt_tokens": 129, "cache_read_input_tokens": 100, "completion_tokens": 2}}, Usage(129, 2, 100)),
    (
        {
            "usage": {
                "input_tokens": 9,
                "input_tokens_details": {"cached_tokens": 3},
                "output_tokens": 2,
                "output_tokens_details": {"reasoning_tokens": 1},
            }
        },
        Usage(9, 2, 3, 1),
    ),
    (
        {
            "usageMetadata": {
                "promptTokenCount": 9,
                "candidatesTokenCount": 2,
                "cachedContentTokenCount": 4,
                "thoughtsTokenCount": 7,
            }
        },
        Usage(9, 2, 4, 7),
    ),
    ({"usage": {"prompt_tokens": "many", "completion_tokens": -1, "cached_tokens": True}}, Usage()),
]


@pytest.mark.parametrize(("chunk", "expected"), USAGES)
def test_usage_shapes(chunk: dict[str, Any], expected: Usage) -> None:
    assert read(stream(chunk)).usage == expected
    assert Reply.from_json(json.dumps(chunk).encode()).usage == expected


def test_the_last_usage_wins_and_null_does_not() -> None:
    body = stream(
        {"usage": {"prompt_tokens": 1, "completion_tokens": 1}}, {"usage": {"completion_tokens": 5}}, {"usage": None}
    )
    assert read(body).usage == Usage(1, 5)


def test_anthropic_stream() -> None:
    body = stream(
        {
            "type": "message_start",
            "message": {
                "id": "msg_1",
                "model": "claude",
                "usage": {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 1},
            },
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "hi"}},
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}},
        },
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"x":'}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "1}"}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    )
    reply = read(body)
    assert reply.id == "msg_1"
    assert reply.choices == [Choice(0, "hi", "hm", "", [ToolCall("t", "f", '{"x":1}')], "tool_calls")]
    assert reply.usage == Usage(12, 9, 7)


def test_plain_replies_of_other_apis() -> None:
    message = {
        "id": "msg_1",
        "type": "message",
        "model": "claude",
        "stop_reason": "end_turn",
        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "hi"}],
        "usage": {"input_tokens": 5, "output_tokens": 2},
    }
    reply = Reply.from_json(json.dumps(message).encode())
    assert (reply.choices, reply.usage) == ([Choice(0, "hi", "hm", finish_reason="stop")], Usage(5, 2))
    response = {
        "id": "resp_1",
        "object": "response",
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
        "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "message", "content": [{"type": "output_text", "text": "hi"}]},
            {"type": "function_call", "call_id": "t", "name": "f", "arguments": "{}"},
        ],
    }
    reply = Reply.from_json(json.dumps(response).encode())
    assert reply.choices == [Choice(0, "hi", "hm", "", [ToolCall("t", "f", "{}")], "length")]


def test_message_is_what_a_client_would_send_back() -> None:
    reply = read(deltas({"tool_calls": [call(0, "a", "f", "{}")]}, finish="tool_calls"))
    assert reply.choices[0].message() == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    }
    assert read(deltas({"content": "hi"})).choices[0].message() == {"role": "assistant", "content": "hi"}


def test_truncation() -> None:
    cut = b'data: {"choices":[{"index":0,"delta":{"content":"half"}}]}\n\n'
    assert read(cut).truncated
    assert not read(cut, b"data: [DONE]\n\n").truncated
    assert read(cut).text == "half"
    assert read().truncated
    assert Reply.from_json(b"<html>").truncated
    assert not Reply.from_json(b'{"choices":[{"message":{"content":"x"}}]}').truncated


ERRORS: list[tuple[Event, str | None]] = [
    (Event(b'{"error":{"message":"no"}}', None), "no"),
    (Event(b'{"error":"no"}', None), "no"),
    (Event(b'{"message":"no"}', "error"), "no"),
    (Event(b"no", "error"), "no"),
    (Event(b'{"type":"error","error":{"type":"overloaded_error","message":"no"}}', "error"), "no"),
    (Event(b'{"type":"error","code":"x","message":"no"}', None), "no"),
    (Event(b'{"object":"error","message":"no","code":400}', None), "no"),
    (Event(b'{"type":"response.failed","response":{"error":{"message":"no"}}}', None), "no"),
    (Event(b'{"choices":[{"error":{"message":"no"},"finish_reason":"error"}]}', None), "no"),
    (Event(b'{"choices":[{"delta":{"content":"error"}}],"error":null}', None), None),
    (Event(b"[DONE]", None), None),
    (Event(b"[1]", None), None),
]


@pytest.mark.parametrize(("event", "message"), ERRORS)
def test_errors_in_the_first_event(event: Event, message: str | None) -> None:
    error = first_event_error(event)
    assert (error or {}).get("message") == message
    name = b"event: " + event.event.encode() + b"\n" if event.event else b""
    assert (read(name + b"data: " + event.data + b"\n\n").error or {}).get("message") == message


FIELDS = ["id", "model", "choices", "delta", "message", "content", "tool_calls", "function", "name", "arguments"]
FIELDS += ["index", "usage", "error", "type", "text", "reasoning", "thinking", "x_groq", "response", "output", "item"]
FIELDS += ["summary", "finish_reason", "value", "prompt_tokens_details"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(
    document=st.dictionaries(
        st.sampled_from(["choices", "usage", "error", "type", "message", "response", "item", "delta", "content_block"]),
        JSON | st.sampled_from(["message", "response.completed", "response.output_item.done", "content_block_start"]),
    )
)
def test_no_shape_of_json_raises(document: dict[str, Any]) -> None:
    body = json.dumps(document).encode()
    Reply.from_json(body)
    read(b"data: " + body + b"\n\n")


@settings(max_examples=100)
@given(body=st.binary(max_size=200))
def test_no_bytes_raise(body: bytes) -> None:
    Reply.from_json(body)
    read(body)
