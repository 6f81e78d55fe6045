"""Recognise "the context is too long" in every vendor's words, and read the window it names.

There is no common code for it: it comes as a 400, 413, 422 or 500, inside an HTTP 200 event stream, wrapped in
another provider's error, in English or Chinese. The answer to it is to shrink the request and try once more, so a
mistake costs either a failed request or a needless compaction. Two neighbours must not be taken for it: rate limits,
which also speak of too many tokens, and a `max_tokens` that no shrinking would make right.

Recognition is by wording (`SIGNS`) and by code; numbers are read by patterns of their own (`LIMITS`, ...), since
vendors combine the same phrases freely. The test table names a source for each wording.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Any, Final, Literal

import orjson

from gateway.types import Json, JsonObject
from gateway.upstream.overflow_words import (
    BYTES,
    CODES,
    INPUT_AND_OUTPUT,
    LIMITS,
    NEVER,
    RATE,
    SIGNS,
    TOTALS,
)

_MAX_TEXT: Final = 4_096
"""Characters of an error looked at: some echo the whole request."""

_MAX_DEPTH: Final = 8
_MIN_LIMIT: Final = 64
"""A smaller number is not a window but an index, a version or the like. llama.cpp is run with windows of 256."""


@dataclass(slots=True, frozen=True)
class Overflow:
    """A request that was too long. Numbers are tokens, None where the answer didn't say.

    `limit`: the window it names. `requested`: what it counted, reply included where it counts that in. `output`: the
    part of `requested` that is the reply's. `unit`: `bytes` where it is the body, not the context, that is too large.
    """

    limit: int | None = None
    requested: int | None = None
    output: int | None = None
    unit: Literal["tokens", "bytes"] = "tokens"

    @property
    def shrinkable(self) -> bool:
        """False where the reply asked for alone fills the window, so that no compaction helps."""
        return self.limit is None or self.output is None or self.output < self.limit


def context_overflow(status: int, body: bytes | str | Json) -> Overflow | None:
    """What an answer says about the context being too long; None where it says anything else.

    `body` is the answer as bytes or parsed, an error object alone included. Below 400 only errors are looked at, so
    that an ordinary reply about context windows is not one. Never raises.
    """
    if status in NEVER:
        return None
    document = _parse(body) if isinstance(body, bytes | str) else body
    if status < 400 and (document := _error_within(document)) is None:
        return None
    said = _Said()
    said.walk(document)
    text = said.text()
    if said.codes & CODES:
        return said.overflow(text)
    if RATE.search(text):
        return None
    if SIGNS.search(text):
        found = said.overflow(text)
        return found if found.shrinkable else None
    if status == 413 or BYTES.search(text):
        return Overflow(unit="bytes")
    return None


def _number(text: str) -> int:
    return int(text.replace(",", "").replace("_", ""))


def _first(patterns: tuple[re.Pattern[str], ...], text: str, least: int = 0, most: int = sys.maxsize) -> int | None:
    for pattern in patterns:
        for match in pattern.finditer(text):
            value = _number(match.group(1))
            if least <= value <= most:
                return value
    return None


_TEXT_KEYS: Final = frozenset(
    (
        *("message", "msg", "detail", "details", "description", "title", "reason", "raw", "metadata", "param", "cause"),
        *("error", "errors", "error_message", "errormessage", "error_msg", "err_msg", "last_error", "previous_errors"),
        *("innererror", "status_msg", "status_details", "base_resp", "body", "response"),
    )
)
_CODE_KEYS: Final = frozenset({"code", "type", "status", "error_code", "err_code", "errorcode", "provider_error_code"})


class _Said:
    """The words, codes and numbers of an error, wherever they stand in it, without what it echoes of the request."""

    def __init__(self) -> None:
        self.codes: set[str] = set()
        self._texts: list[str] = []
        self._numbers: dict[str, int] = {}
        self._room = _MAX_TEXT

    def text(self) -> str:
        return "\n".join(self._texts)

    def walk(self, value: Json, depth: int = 0) -> None:
        if depth > _MAX_DEPTH or self._room <= 0:
            return
        if isinstance(value, str):
            self._string(value, depth)
        elif isinstance(value, list):
            for item in value[:20]:
                self.walk(item, depth + 1)
        elif isinstance(value, dict):
            for key, inner in value.items():
                self._field(str(key).lower(), inner, depth)

    def overflow(self, text: str) -> Overflow:
        """The numbers in what was said."""
        prompt, output = None, None
        for pattern in INPUT_AND_OUTPUT:
            if match := pattern.search(text):
                numbers = [_number(group) for group in match.groups() if group]
                swapped = any(name.startswith("swap") for name in pattern.groupindex)
                prompt, output = reversed(numbers) if swapped else numbers
                break
        requested = self._numbers.get("n_prompt_tokens")
        if requested is None and prompt is not None and output is not None:
            requested = prompt + output
        if requested is None:
            requested = _first(TOTALS, text)
        limit = self._numbers.get("n_ctx")
        if limit is None and requested is not None:
            # What overflowed is above the window: a number that is not below it is something else.
            limit = _first(LIMITS, text, _MIN_LIMIT, requested - 1)
        if limit is None:
            limit = _first(LIMITS, text, _MIN_LIMIT, requested if requested is not None else sys.maxsize)
        return Overflow(limit, requested, output)

    def _string(self, value: str, depth: int) -> None:
        stripped = value.lstrip()
        if depth and stripped[:1] in ("{", "["):  # a provider's error inside another's
            inner = _parse(value)
            if isinstance(inner, dict | list):
                self.walk(inner, depth + 1)
                return
        self._texts.append(value[: self._room])
        self._room -= len(value)
        self.codes.update(word.lower() for word in _CODE_WORDS.findall(value[:_MAX_TEXT]))

    def _field(self, key: str, value: Any, depth: int) -> None:
        if key in _CODE_KEYS:
            if isinstance(value, str | int):
                self.codes.add(str(value).lower())
                self._texts.append(str(value)[:200])
        elif key in ("n_ctx", "n_prompt_tokens"):
            if isinstance(value, int):
                self._numbers[key] = value
        elif key in _TEXT_KEYS:
            self.walk(value, depth + 1)


_CODE_WORDS: Final = re.compile(
    r"\b(context_length_exceeded|context_window_exceeded|ContextWindowExceededError|exceed_context_size_error)\b",
    re.IGNORECASE,
)


def _parse(body: bytes | str) -> Json:
    """JSON as parsed, the data of an event stream as a list, anything else as text."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    text = body[: 4 * _MAX_TEXT].decode("utf-8", "replace") if isinstance(body, bytes) else body[: 4 * _MAX_TEXT]
    data = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
    if not data:
        return text
    found: list[Json] = []
    for line in data:
        try:
            found.append(orjson.loads(line))
        except orjson.JSONDecodeError:
            continue
    return found


def _error_within(document: Json) -> Json:
    """The error in an answer that calls itself a success; None where there is none."""
    if isinstance(document, list):
        return [error for item in document if (error := _error_within(item)) is not None] or None
    if not isinstance(document, dict):
        return None
    for key in ("error", "errors"):
        if document.get(key):
            return document[key]
    for key in ("response", "base_resp"):
        inner = document.get(key)
        if isinstance(inner, dict) and (inner.get("error") or inner.get("status_code")):
            return inner
    choices = document.get("choices")
    if isinstance(choices, list):
        return next((c["error"] for c in choices if isinstance(c, dict) and c.get("error")), None)
    return document if _is_bare_error(document) else None


def _is_bare_error(document: JsonObject) -> bool:
    """An error object on its own: a message and no answer beside it."""
    answers = ("content", "output", "delta", "data", "embedding", "text")
    return isinstance(document.get("message"), str) and not any(key in document for key in answers)
