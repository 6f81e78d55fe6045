"""What in a message or a request costs tokens, found once, so that the fast and the precise count agree on the parts.

A walk gives the texts, which each encoding counts in its own way, and the tokens that no encoding changes: overheads,
images, audio, files. It never raises: clients send any shape, and a failing count must not skip the window's check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gateway.tokens import media
from gateway.tokens.schema import dump, function_of, namespace, reply_schema, text_of

MESSAGE_TOKENS = 4
"""Per message: three for its frame and one for its role (OpenAI cookbook, "How to count tokens with tiktoken")."""
NAME_TOKENS = 1
"""Beside the name's own text (the same source)."""
REPLY_TOKENS = 3
"""Each reply is primed with the start of an assistant message (the same source)."""

CALL_TOKENS = 10
"""Per tool call beside its name and arguments, for templates that are not known better."""
OPENAI_CALL_TOKENS = 8
"""The same for a single call at OpenAI: recorded pairs of requests differ in exactly this (`docs/counting.md`)."""
OPENAI_PARALLEL_BASE = 11
OPENAI_PARALLEL_CALL = 12
"""Parallel calls travel inside a wrapper function; from one recorded pair of requests with two calls (35 tokens)."""

TOOLS_TOKENS = 9
"""Around OpenAI's namespace of functions."""
TOOLS_WITH_SYSTEM = -4
"""The functions share the first system message's frame."""
NEXT_TOOL_TOKENS = -1
"""Each function after the first is one token cheaper than its text: 24 functions were charged 23 less than rendered."""
SCHEMA_TOKENS = 7
"""Around a reply schema, its name and its description, from two recorded requests (9 with a name of 2 tokens)."""
JSON_TOOL_TOKENS = 8
"""Per tool where the template prints JSON, for the words around it."""
ANTHROPIC_TOOLS_TOKENS = 346
"""Anthropic adds a system prompt of this size when tools are given (platform.claude.com, "Tool use", pricing table)."""

MAX_DEPTH = 12
"""Parts nested deeper are counted as JSON."""
BLOB_CHARS = 2_000
"""An unbroken string of this length in a part of unknown kind is taken for encoded data, not for text."""

REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_details", "thinking_blocks")
TEXT_FIELDS = ("refusal",)
SILENT_KEYS = frozenset({"type", "id", "index", "signature", "cache_control", "thought_signature", "format"})
"""Fields of a part that the model is not shown, or that are no text."""


class Walk:
    """Texts to count, and tokens already known."""

    __slots__ = ("family", "fixed", "model", "texts")

    def __init__(self, family: str = "openai", model: str = "") -> None:
        self.texts: list[str] = []
        self.fixed = 0
        self.family = family
        self.model = model

    def text(self, value: object) -> None:
        """Take a text; anything else as JSON; nothing for None."""
        text = text_of(value)
        if text:
            self.texts.append(text)


def walk_message(message: object, family: str = "openai", model: str = "") -> Walk:
    """All that one entry of `messages` costs. `family` is a provider's name as `media.family_of` gives it."""
    walk = Walk(family, model)
    walk.fixed = MESSAGE_TOKENS
    if not isinstance(message, dict):
        walk.text(message)
        return walk
    _content(walk, message.get("content"), 0)
    for field in TEXT_FIELDS:
        walk.text(message.get(field))
    _reasoning(walk, message)
    if isinstance(message.get("name"), str):
        walk.fixed += NAME_TOKENS
        walk.text(message["name"])
    _calls(walk, message)
    return walk


def _reasoning(walk: Walk, message: dict[str, Any]) -> None:
    """Reasoning sent back; the same text under two names (as OpenRouter sends it) is counted once."""
    seen: set[str] = set()
    for field in REASONING_FIELDS:
        value = message.get(field)
        if not value:
            continue
        inner = Walk(walk.family, walk.model)
        _content(inner, value, 0)
        fresh = [text for text in inner.texts if text not in seen]
        seen.update(fresh)
        walk.texts += fresh
        walk.fixed += inner.fixed


def _calls(walk: Walk, message: dict[str, Any]) -> None:
    calls = message.get("tool_calls")
    listed = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        listed.append(legacy)
    for call in listed:
        inner = call.get("function", call.get("custom"))
        function = inner if isinstance(inner, dict) else call
        walk.text(function.get("name"))
        walk.text(function.get("arguments", function.get("input")))
    walk.fixed += call_overhead(len(listed), walk.family)


def call_overhead(calls: int, family: str) -> int:
    """Tokens of `calls` tool calls in one message beside their names and arguments."""
    if family != "openai":
        return calls * CALL_TOKENS
    return calls * OPENAI_CALL_TOKENS if calls < 2 else OPENAI_PARALLEL_BASE + calls * OPENAI_PARALLEL_CALL


def _content(walk: Walk, content: object, depth: int) -> None:
    """A string, a list of parts, one part, or anything else."""
    if isinstance(content, list) and depth <= MAX_DEPTH:
        for part in content:
            _content(walk, part, depth + 1)
    elif isinstance(content, dict) and depth <= MAX_DEPTH:
        _part(walk, content, depth)
    else:
        walk.text(content)


def _part(walk: Walk, part: dict[str, Any], depth: int) -> None:
    kind = part.get("type")
    handler = _HANDLERS.get(kind) if isinstance(kind, str) else None
    if handler is not None:
        handler(walk, part, depth)
        return
    for key in ("text", "refusal", "thinking", "reasoning", "summary"):
        if isinstance(part.get(key), str):
            walk.text(part[key])
            return
    if isinstance(part.get("content"), str | list | dict):
        _content(walk, part["content"], depth + 1)
        return
    walk.text(dump(_without_blobs(walk, part, 0)))


def _image(walk: Walk, part: dict[str, Any], depth: int) -> None:
    source = part.get("image_url", part.get("source", part.get("image", part.get("url"))))
    detail = part.get("detail")
    if isinstance(source, dict):
        detail = source.get("detail", detail)
        source = source.get("url", source.get("data"))
    walk.fixed += media.image_part_tokens(source, detail, walk.family, walk.model)


def _audio(walk: Walk, part: dict[str, Any], depth: int) -> None:
    source = part.get("input_audio", part.get("audio", part.get("audio_url", part.get("source"))))
    form = None
    if isinstance(source, dict):
        form = source.get("format", source.get("media_type"))
        source = source.get("data", source.get("url"))
    walk.fixed += media.audio_part_tokens(source, form, walk.family)


def _file(walk: Walk, part: dict[str, Any], depth: int) -> None:
    inner = part.get("file", part.get("source"))
    inner = inner if isinstance(inner, dict) else part
    walk.text(inner.get("filename", part.get("title")))
    nested = inner.get("content")
    if isinstance(nested, str | list):
        _content(walk, nested, depth + 1)
        return
    data = inner.get("file_data", inner.get("data", inner.get("url")))
    if inner.get("type") == "text":
        walk.text(data)
        return
    text, fixed = media.file_part(data, inner.get("media_type"), walk.family, walk.model)
    walk.text(text)
    walk.fixed += fixed


def _video(walk: Walk, part: dict[str, Any], depth: int) -> None:
    walk.fixed += media.VIDEO_TOKENS


def _tool_use(walk: Walk, part: dict[str, Any], depth: int) -> None:
    walk.text(part.get("name"))
    walk.text(part.get("input"))
    walk.fixed += CALL_TOKENS


def _tool_result(walk: Walk, part: dict[str, Any], depth: int) -> None:
    _content(walk, part.get("content", part.get("output")), depth + 1)


_Handler = Callable[[Walk, dict[str, Any], int], None]
_HANDLERS: dict[str, _Handler] = {
    "image_url": _image,
    "image": _image,
    "input_image": _image,
    "input_audio": _audio,
    "audio": _audio,
    "audio_url": _audio,
    "file": _file,
    "input_file": _file,
    "document": _file,
    "video_url": _video,
    "video": _video,
    "input_video": _video,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
}


def _without_blobs(walk: Walk, value: object, depth: int) -> object:
    """A part of unknown kind as JSON, with encoded data in it counted as one image each, not as text."""
    if isinstance(value, str):
        head = value[:BLOB_CHARS]
        unbroken = len(value) > BLOB_CHARS and head.isascii() and not any(map(str.isspace, head))
        if unbroken or value.startswith("data:"):
            walk.fixed += media.image_part_tokens(value, None, walk.family, walk.model)
            return ""
        return value
    if isinstance(value, dict) and depth <= MAX_DEPTH:
        return {k: _without_blobs(walk, v, depth + 1) for k, v in value.items() if k not in SILENT_KEYS}
    if isinstance(value, list) and depth <= MAX_DEPTH:
        return [_without_blobs(walk, item, depth + 1) for item in value]
    return value


def walk_fields(fields: object, family: str = "openai") -> Walk:
    """All that a request costs beside its messages; `fields` is its body, with or without `messages`."""
    walk = Walk(family)
    walk.fixed = REPLY_TOKENS
    if not isinstance(fields, dict):
        return walk
    tools = [tool for key in ("tools", "functions") for tool in _listed(fields.get(key))]
    if tools:
        _tools(walk, tools, _has_system(fields.get("messages")))
    _response_format(walk, fields.get("response_format"))
    for key in ("system", "instructions"):
        if fields.get(key):
            walk.fixed += MESSAGE_TOKENS
            _content(walk, fields[key], 0)
    return walk


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _has_system(messages: object) -> bool:
    entries = _listed(messages)
    return any(isinstance(entry, dict) and entry.get("role") in ("system", "developer") for entry in entries[:2])


def _tools(walk: Walk, tools: list[Any], with_system: bool) -> None:
    functions = [function for function in map(function_of, tools) if function is not None]
    if walk.family != "openai":
        walk.texts += [dump(tool) for tool in tools]
        walk.fixed += JSON_TOOL_TOKENS * len(tools)
        walk.fixed += ANTHROPIC_TOOLS_TOKENS if walk.family == "anthropic" else 0
        return
    walk.texts += [dump(tool) for tool in tools if function_of(tool) is None]
    if functions:
        walk.text(namespace(functions))
        walk.fixed += TOOLS_TOKENS + NEXT_TOOL_TOKENS * (len(functions) - 1)
        walk.fixed += TOOLS_WITH_SYSTEM if with_system else 0


def _response_format(walk: Walk, value: object) -> None:
    if not isinstance(value, dict):
        return
    inner = value.get("json_schema", value.get("schema"))
    if not isinstance(inner, dict):
        return
    walk.fixed += SCHEMA_TOKENS
    walk.text(inner.get("name"))
    walk.text(inner.get("description"))
    walk.text(reply_schema(inner.get("schema", inner)))
