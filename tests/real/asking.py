"""Asks a server through the openai SDK and keeps what it says about tokens, beside what the gateway says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import openai

from tests.support.builders import Message

MODEL = "gemma-3-270m"
"""The server takes any name; no table knows this one's window or tokenizer."""
FEW = 4
"""Tokens of a reply: nothing is read from it but how many there are."""
EDGE = 8
"""Tokens at the end of a prompt that the next one need not share: the mark that opens the reply, and a merge."""


@dataclass(frozen=True)
class Told:
    """One answer's numbers, in tokens; the gateway's are None and empty where none stood between."""

    prompt: int
    cached: int
    completion: int
    before: int | None
    after: int | None
    actions: dict[str, str]

    @property
    def share(self) -> float:
        """Of the prompt: read from the server's cache."""
        return self.cached / self.prompt


def ask(client: openai.OpenAI, messages: list[Message], model: str = MODEL, **fields: Any) -> Told:
    """One plain request, and its numbers."""
    create: Any = client.chat.completions.with_raw_response.create
    raw = create(model=model, messages=messages, **{"max_tokens": FEW, "temperature": 0, **fields})
    return told(raw.parse().usage, raw.headers)


def told(usage: Any, headers: Any) -> Told:
    """The numbers of an answer from its `usage` object and its headers."""
    before, after = headers.get("x-gateway-tokens-before"), headers.get("x-gateway-tokens-after")
    actions = headers.get("x-gateway-actions") or ""
    return Told(
        prompt=usage.prompt_tokens,
        cached=usage.prompt_tokens_details.cached_tokens,
        completion=usage.completion_tokens,
        before=int(before) if before else None,
        after=int(after) if after else None,
        actions=dict(part.split(":", 1) for part in actions.split(",") if part),
    )
