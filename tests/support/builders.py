"""Messages and conversations for tests: by hand, by hypothesis, and an independent judge of whether one is valid.

`check_pairs` is written from the provider's rule alone (each id in `tool_calls` is answered by exactly one `tool`
message before any other role speaks; no reply without its call), so that it can judge the gateway's own idea of a
safe cut.
"""

from __future__ import annotations

import base64
import itertools
import json
import struct
import zlib
from typing import Any

from hypothesis import strategies as st

Message = dict[str, Any]


def system(text: str) -> Message:
    """A system message."""
    return {"role": "system", "content": text}


def user(text: str) -> Message:
    """A user message."""
    return {"role": "user", "content": text}


def assistant(text: str | None, *calls: Message) -> Message:
    """An assistant message, with `tool_calls` only where there are any."""
    message: Message = {"role": "assistant", "content": text}
    return {**message, "tool_calls": list(calls)} if calls else message


def tool_call(call_id: str, name: str = "read_file", arguments: str = "{}") -> Message:
    """One entry of `tool_calls`; `arguments` is JSON text."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool(call_id: str, text: str) -> Message:
    """The reply to one call."""
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def function_tool(name: str, **properties: str) -> Message:
    """A tool definition whose parameters are JSON types by name."""
    schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}}
    return {"type": "function", "function": {"name": name, "description": f"Calls {name}.", "parameters": schema}}


def png_data_url(width: int = 8, height: int = 8) -> str:
    """A valid grey PNG of that size in pixels, as a data URL."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\x00" + b"\x80" * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def check_pairs(messages: list[Message]) -> list[str]:
    """What is wrong with the call/reply pairs, one line each; empty where all is well."""
    problems: list[str] = []
    open_calls: list[str] = []
    for index, message in enumerate(messages):
        role = message.get("role")
        if role == "tool":
            call_id = message.get("tool_call_id")
            if call_id in open_calls:
                open_calls.remove(call_id)
            else:
                problems.append(f"messages[{index}]: reply {call_id!r} has no open call before it")
            continue
        problems += [f"messages[{index}]: {role} speaks before call {call_id!r} is answered" for call_id in open_calls]
        open_calls = [call["id"] for call in message.get("tool_calls") or []] if role == "assistant" else []
        if len(set(open_calls)) != len(open_calls):
            problems.append(f"messages[{index}]: the same call id twice")
    return problems + [f"the conversation ends before call {call_id!r} is answered" for call_id in open_calls]


_SCRIPTS = (
    "plain words",
    "数据库配置",
    "データベース",
    "데이터베이스",
    "база података",
    "🙂👩‍👩‍👧",
    "a\tb\r\nc\x1b[31m",
    "﷽ ‏",
)
texts = st.one_of(
    st.text(max_size=60),
    st.sampled_from(_SCRIPTS),
    st.builds(lambda word, times: word * times, st.sampled_from(_SCRIPTS), st.integers(1, 400)),
)
"""Short and long texts in many scripts, empty ones too. No lone surrogates: JSON over UTF-8 can't carry them."""

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
"""Any JSON that survives a round trip."""

text_parts = st.builds(lambda text: {"type": "text", "text": text}, texts)
image_parts = st.builds(
    lambda width, detail: {"type": "image_url", "image_url": {"url": png_data_url(width, 4), "detail": detail}},
    st.integers(1, 32),
    st.sampled_from(["low", "high", "auto"]),
)
unknown_parts = st.builds(lambda value: {"type": "x_unheard_of", "x_payload": value}, json_values)
user_contents = st.one_of(texts, st.lists(st.one_of(text_parts, image_parts, unknown_parts), max_size=4))
tool_contents = st.one_of(texts, st.lists(text_parts, max_size=3), json_values.map(lambda value: _dump(value)))
extras: st.SearchStrategy[Message] = st.one_of(
    st.just({}), st.dictionaries(st.sampled_from(["x_trace", "cache_control", "name"]), st.just("x"), max_size=2)
)
"""Fields beside the known ones, which must survive."""


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


@st.composite
def tool_rounds(draw: st.DrawFn, ids: itertools.count[int] | None = None) -> list[Message]:
    """An assistant message with 1–4 parallel calls and all their replies, in any order."""
    numbers = ids if ids is not None else itertools.count()
    names = draw(st.lists(st.sampled_from(["read_file", "bash", "search", "查询"]), min_size=1, max_size=4))
    arguments = [_dump(draw(st.dictionaries(st.sampled_from(["path", "cmd", "q"]), texts, max_size=2))) for _ in names]
    calls = [tool_call(f"call_{next(numbers)}", name, text) for name, text in zip(names, arguments, strict=True)]
    replies = [{"role": "tool", "tool_call_id": call["id"], "content": draw(tool_contents)} for call in calls]
    content = draw(st.none() | texts)
    return [{**assistant(content, *calls), **draw(extras)}, *draw(st.permutations(replies))]


@st.composite
def conversations(draw: st.DrawFn, max_rounds: int = 8, ends_open: bool = False) -> list[Message]:
    """A valid conversation: instructions or none, a user message, then any mix of rounds; ids never repeat.

    With `ends_open` false the last message is the user's or a tool's, as an agent would send it.
    """
    ids = itertools.count()
    roles = draw(st.lists(st.sampled_from(["system", "developer"]), max_size=2))
    messages: list[Message] = [{"role": role, "content": draw(texts)} for role in roles]
    messages.append({"role": "user", "content": draw(user_contents), **draw(extras)})
    for kind in draw(st.lists(st.sampled_from(["tools", "tools", "chat", "odd"]), max_size=max_rounds)):
        if kind == "tools":
            messages += draw(tool_rounds(ids))
        elif kind == "chat":
            messages.append({**assistant(draw(texts)), **draw(extras)})
            messages.append({"role": "user", "content": draw(user_contents)})
        else:
            messages.append({"role": "x_observer", "content": draw(texts), "x_kept": draw(json_values)})
    if not ends_open and messages[-1]["role"] not in ("user", "tool"):
        messages.append({"role": "user", "content": draw(user_contents)})
    return messages
