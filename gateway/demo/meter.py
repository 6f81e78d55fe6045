"""What the demo's upstream counts: tokens as a provider bills them, its prompt cache, and the price of both.

Counts are tiktoken's (o200k_base), made by the upstream for itself: the gateway's own estimates are what is judged by
them. The cache is the documented rule of OpenAI's: the longest prefix shared with any earlier request, from 1,024
tokens, in steps of 128.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateway.tokens import fast
from gateway.tokens.precise import DEFAULT_ENCODING, Precise
from gateway.types import ChatMessage

MESSAGE_TOKENS = 4
"""Around each message, as chat templates have it."""
CACHE_LEAST = 1_024
CACHE_STEP = 128
"""Tokens: https://platform.openai.com/docs/guides/prompt-caching."""
CACHED_PRICE = 0.1
OUTPUT_PRICE = 8.0
"""Of a fresh prompt token: the ratios of GPT-5's price list (0.125 and 10 to 1.25 USD)."""


@dataclass(frozen=True, slots=True)
class Usage:
    """One request, in tokens."""

    prompt: int
    cached: int
    completion: int

    @property
    def price(self) -> float:
        """In fresh prompt tokens."""
        return self.prompt - self.cached * (1 - CACHED_PRICE) + self.completion * OUTPUT_PRICE


class Counter:
    """Counts texts; exact where tiktoken's rank file is at hand, which it is wherever litellm's wheel is installed."""

    def __init__(self) -> None:
        self._precise = Precise()
        self.exact = self._precise.load(DEFAULT_ENCODING)
        self._known: dict[str, int] = {}

    def text(self, text: str) -> int:
        """Tokens of a text."""
        known = self._known.get(text)
        if known is None:
            counted = self._precise.text_tokens(text, DEFAULT_ENCODING)
            known = self._known[text] = fast.text_tokens(text) if counted is None else counted
        return known


class Meter:
    """One caller's view of the provider: its cache holds what this caller sent."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._cache: list[list[str]] = []

    def prompt(self, messages: Sequence[ChatMessage], tools: Sequence[Any]) -> tuple[int, int]:
        """Tokens of a request, and how many of them the cache held; it holds the request from now on."""
        texts = [rendered(tools), *map(rendered, messages)] if tools else [*map(rendered, messages)]
        total = sum(self._counter.text(text) + MESSAGE_TOKENS for text in texts)
        shared = max((self._shared(texts, earlier) for earlier in self._cache), default=0)
        self._cache = [earlier for earlier in self._cache if texts[: len(earlier)] != earlier]
        self._cache.append(texts)
        return total, shared - shared % CACHE_STEP if shared >= CACHE_LEAST else 0

    def _shared(self, texts: list[str], earlier: list[str]) -> int:
        """Tokens of the prefix that two requests have in common, to the character of the first difference."""
        shared = 0
        for ours, theirs in zip(texts, earlier, strict=False):
            if ours != theirs:
                return shared + self._counter.text(_common(ours, theirs))
            shared += self._counter.text(ours) + MESSAGE_TOKENS
        return shared


def _common(left: str, right: str) -> str:
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if left[:middle] == right[:middle] else (low, middle - 1)
    return left[:low]


def rendered(part: object) -> str:
    """A message (or a list of tools) as the text a model reads, near enough for counting."""
    if not isinstance(part, dict):
        return json.dumps(part, ensure_ascii=False, default=str)
    content = part.get("content")
    text = content if isinstance(content, str) else "" if content is None else json.dumps(content, ensure_ascii=False)
    calls = [call.get("function") or {} for call in part.get("tool_calls") or []]
    return "\n".join([str(part.get("role")), text, *(f"{call.get('name')} {call.get('arguments')}" for call in calls)])
