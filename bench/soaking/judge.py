"""What is wrong with a request on its way upstream, told by the provider's rules and not by the gateway's own."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

from bench.replay.counting import load_encoding

Message = dict[str, Any]
MESSAGE_TOKENS = 4
"""Around each message, role included: OpenAI's cookbook, "How to count tokens with tiktoken"."""
IMAGE_TOKENS = 85
"""At low detail, by OpenAI's rule; none other is generated."""


def orphans(messages: list[Message]) -> int:
    """Calls without their reply before anybody else speaks, and replies without their call."""
    wrong = 0
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] in waiting:
                waiting.remove(message["tool_call_id"])
            else:
                wrong += 1
            continue
        wrong += len(waiting)
        waiting = {call["id"] for call in message.get("tool_calls") or []}
    return wrong + len(waiting)


def lost(given: list[Message], sent: list[Message]) -> int:
    """Instructions, the first and the newest user message that did not arrive word for word.

    Memory may stand after the text of the first instruction.
    """
    users = [message for message in given if message["role"] == "user"]
    must = [message for message in given if message["role"] in ("system", "developer")] + users[:1] + users[-1:]
    missing = [message for message in must if message not in sent]
    first = sent[0]["content"]
    return sum(1 for m in missing if not (m is given[0] and isinstance(first, str) and first.startswith(m["content"])))


@functools.cache
def counter() -> Callable[[str], int]:
    """o200k_base, whose ranks come with litellm."""
    encoding = load_encoding()
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def over(window: int, body: bytes, messages: list[Message]) -> int:
    """Tokens over the window; 0 where it fits."""
    if len(body) <= window:  # no token is shorter than a byte
        return 0
    return max(0, tokens(messages) - window)


def tokens(messages: list[Message]) -> int:
    """Tokens of the messages: texts, names, arguments, images, and what stands around each."""
    count = counter()
    total = 3
    for message in messages:
        total += MESSAGE_TOKENS
        content = message.get("content")
        for part in [content] if isinstance(content, str) else content or []:
            if isinstance(part, str) or isinstance(part.get("text"), str):
                total += count(part if isinstance(part, str) else part["text"])
            elif part["type"] == "image_url":
                total += IMAGE_TOKENS
        total += count(message.get("reasoning_content") or "")
        for call in [*(message.get("tool_calls") or []), {"function": message.get("function_call") or {}}]:
            function = call["function"]
            total += count(function.get("name", "")) + count(function.get("arguments", ""))
    return total


def same_but_messages(given: bytes, sent: bytes) -> bool:
    """Whether everything beside the messages went through unchanged."""
    before, after = json.loads(given), json.loads(sent)
    return {**before, "messages": 0} == {**after, "messages": 0} and list(before) == list(after)
