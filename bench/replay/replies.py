"""What the mock upstream says: the recorded reply to an agent, and a plausible summary or extraction to a side call.

A summary is built from the words of the request it summarises, so it differs from call to call, is in the
conversation's language, and names the five things a summary must keep: goal, decisions, files, progress, errors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from bench.replay.counting import content_text

SUMMARY_TOKENS = 250
"""Length of a side call's answer, in o200k tokens: about what a summariser writes for a chunk of a conversation."""

_SCAN_CHARS = 400_000  # of a request's text read for material: enough for any summariser's window
_PATH = re.compile(r"(?<![\w/.])(?:[\w.-]*/)+[\w-]+\.\w{1,5}\b")
_ERROR = re.compile(r"[^\n]*\b(?:error|fail(?:ed|ure)?|exception|traceback|denied|refused)\b[^\n]*", re.IGNORECASE)
_WANTS_JSON = re.compile(
    r"\b(?:as|in|only|return|reply|respond|answer|output|valid)\b[^.\n]{0,60}\bJSON\b", re.IGNORECASE
)


def wants_json(body: dict[str, Any]) -> bool:
    """Whether a side call asks for JSON: by `response_format`, or in its instructions (first and last message)."""
    kind = (body.get("response_format") or {}).get("type")
    if kind in ("json_object", "json_schema"):
        return True
    messages = body.get("messages") or []
    edges = (messages[0], messages[-1]) if messages else ()
    return any(_WANTS_JSON.search(_ends(content_text(message.get("content")))) for message in edges)


def extraction(body: dict[str, Any]) -> str:
    """An answer to an extraction: valid JSON with a fact taken from the conversation, no preference, no relation."""
    said = next((line for line in _lines(body) if len(line) > 20), "nothing worth keeping")
    return json.dumps({"facts": [said[:200]], "preferences": {}, "relations": [], "triples": []}, ensure_ascii=False)


def summary(body: dict[str, Any], count: Callable[[str], int], tokens: int = SUMMARY_TOKENS) -> str:
    """A summary of about `tokens` tokens, as `count` counts them, made of the request's own words."""
    text = "\n".join(_lines(body))[:_SCAN_CHARS]
    lines = [line for line in text.split("\n") if len(line) > 20]
    paths = list(dict.fromkeys(_PATH.findall(text)))
    errors = list(dict.fromkeys(line.strip()[:160] for line in _ERROR.findall(text)))
    opening = [
        f"Goal: {_pick(lines, 0)}",
        f"Files: {', '.join(paths[-6:]) or 'none named'}",
        f"Errors and fixes: {_pick(errors, 0)}; last: {_pick(errors, -1)}",
        f"Progress: {_pick(lines, -1)}",
        f"Key decisions: {_pick(lines, len(lines) // 2)}",
    ]
    # Further lines from all over the request, until the length is reached.
    more = (f"- {lines[i * 7919 % len(lines)][:160]}" for i in range(200)) if lines else iter(())
    return _up_to(tokens, count, opening, more)


def completion(
    number: int, model: str, message: dict[str, Any], prompt: int, cached: int, output: int
) -> dict[str, Any]:
    """A chat completion. `number` makes its id, by which the replay knows which request its reply answered."""
    reply = {"role": "assistant", "content": message.get("content"), "refusal": None}
    if message.get("tool_calls"):
        reply["tool_calls"] = message["tool_calls"]
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    return {
        "id": reply_id(number),
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": model,
        "choices": [{"index": 0, "message": reply, "logprobs": None, "finish_reason": reason}],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "total_tokens": prompt + output,
            "prompt_tokens_details": {"cached_tokens": cached},
        },
    }


def reply_id(number: int) -> str:
    """The id of the reply to the upstream's request of that number."""
    return f"chatcmpl-bench{number:08d}"


def stream(reply: dict[str, Any], include_usage: bool) -> Iterator[bytes]:
    """The same completion as server-sent events: role, content in pieces, tool calls, finish, usage where asked for."""
    choice = reply["choices"][0]
    message = choice["message"]
    frame = {key: reply[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}

    def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
        chunk = {**frame, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}
        return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"

    yield event({"role": "assistant", "content": ""})
    content = message.get("content") or ""
    for start in range(0, len(content), 64):
        yield event({"content": content[start : start + 64]})
    for index, call in enumerate(message.get("tool_calls") or []):
        yield event({"tool_calls": [{"index": index, **call}]})
    yield event({}, choice["finish_reason"])
    if include_usage:
        yield b"data: " + json.dumps({**frame, "choices": [], "usage": reply["usage"]}).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


def _lines(body: dict[str, Any]) -> Iterator[str]:
    for message in body.get("messages") or []:
        if message.get("role") not in ("system", "developer"):
            yield from content_text(message.get("content")).split("\n")


def _ends(text: str) -> str:
    return f"{text[:2000]}\n{text[-2000:]}"


def _pick(lines: list[str], index: int) -> str:
    return lines[index][:160] if lines else "none"


def _up_to(tokens: int, count: Callable[[str], int], opening: list[str], more: Iterator[str]) -> str:
    parts = list(opening)
    total = sum(count(part) + 1 for part in parts)
    for part in more:
        if total >= tokens:
            break
        parts.append(part)
        total += count(part) + 1
    return "\n".join(parts)
