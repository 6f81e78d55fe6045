"""Recognise "the context is too long" in every vendor's words, and read the window it names.

There is no common code for it: it comes as a 400, 413, 422 or 500, inside an HTTP 200 event stream, wrapped in
another provider's error, in English or Chinese. The answer to it is to shrink the request and try once more, so a
mistake costs either a failed request or a needless compaction. Two neighbours must not be taken for it: rate limits,
which also speak of too many tokens, and a `max_tokens` that no shrinking would make right.

Recognition is by wording (`_SIGNS`) and by code; numbers are read by patterns of their own (`_LIMITS`, ...), since
vendors combine the same phrases freely. The test table names a source for each wording.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Literal

import orjson

from gateway.types import Json, JsonObject

_N: Final = r"(\d[\d,_]*)"
_MAX_TEXT: Final = 16_384
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
    if status in _NEVER:
        return None
    document = _parse(body) if isinstance(body, bytes | str) else body
    if status < 400 and (document := _error_within(document)) is None:
        return None
    said = _Said()
    said.walk(document)
    text = said.text()
    if said.codes & _CODES:
        return said.overflow(text)
    if _RATE.search(text):
        return None
    if _SIGNS.search(text):
        found = said.overflow(text)
        return found if found.shrinkable else None
    if status == 413 or _BYTES.search(text):
        return Overflow(unit="bytes")
    return None


_NEVER: Final = frozenset({401, 402, 403, 404, 405, 407, 408, 429})
"""Statuses that say something else by definition."""

_CODES: Final = frozenset(
    {
        "context_length_exceeded",  # OpenAI, Azure, Groq, OpenRouter, Together
        "context_window_exceeded",
        "contextwindowexceedederror",  # litellm
        "exceed_context_size_error",  # llama.cpp
        "model_max_prompt_tokens_exceeded",  # GitHub Copilot
        "1261",  # Zhipu GLM
    }
)

_RATE: Final = re.compile(
    r"tokens? per (?:min|hour|day|sec)|\bTP[MD]\b|rate[ _-]?limit|per[ -]minute|too many requests|quota",
    re.IGNORECASE,
)

_SUBJECT: Final = r"(?:prompt|input|context|conversation|messages?|request|query|inputs?|history|chat)"
_SIGNS: Final = re.compile(
    "|".join(
        (
            r"context[ _-]?(?:length|window|size|limit)s?[ _](?:\w+[ _]){0,3}?exceed",
            r"exceed\w*(?:\W+\w+){0,6}?\W+(?:context|prompt|input)[ _-]?(?:length|window|size|limit)",
            r"context[ _]?(?:window|length|size)? ?(?:overflow|exceeds)",
            r"max(?:imum)?\W+(?:\w+ ){0,2}?(?:context|prompt|input|sequence|model|token)[ _-]?(?:length|window|size)",
            r"(?:longer|larger|greater|bigger) than (?:\S+ ){0,4}(?:context|model|input)[ _-]?(?:length|window|size)",
            _SUBJECT + r"(?: (?!max)\w+){0,3}?(?: \([^)]{0,40}\))?(?: is| are| was)? ?too (?:long|many tokens)",
            r"too many (?:input |prompt |total )?tokens(?! (?:to generate|requested for))",
            r"too large for (?:the )?model with",
            r"(?:input|prompt)s?[ _](?:tokens? ?)?(?:count|length|limit)?\W.{0,40}exceed\w*\W+(?:the|model|limit)\b",
            r"input tokens exceed|max length exceeded",
            r"(?<!output )(?<!completion )token limit(?: exceeded|:)|exceeded model token limit",
            r"request contains \d+ tokens",
            r"requested tokens? .{0,40}exceed",
            r"range of input length should be",
            r"inputs\W? (?:tokens \+|must have less than)",
            r"tokens to keep from the initial prompt|keep the first \d+ tokens when context|n_keep.{0,30}n_ctx",
            r"max_tokens must be at least 1, got -",
            r"reduce (?:the )?(?:length|size) of (?:the |your )?(?:messages|prompt|input|conversation)",
            r"(?:prompt|input|messages?|conversation)(?: \w+){0,3} exceeds? (?:the )?max(?:imum)?(?: \w+){0,3} length",
            r"(?:total number of tokens|tokens in the prompt).{0,30}(?:cannot|can't|must not) exceed",
            r"(?:prompt|input|request) has [\d,]+ tokens, but|requested token count .{0,20}(?:is greater|exceeds)",
            r"model_context_window_exceeded",
            r"current length is \d+.{0,20}limit is \d+",
            r"(?:输入|上下文|提示词|对话|消息|prompt|token)\S{0,12}(?:超过|超出|超长|过长|太长|溢出)",
            r"(?:超过|超出)\S{0,12}(?:最大长度|长度限制|上下文|输入长度|最大输入|token)",
        )
    ),
    re.IGNORECASE,
)

_BYTES: Final = re.compile(
    r"(?:request|payload|body|entity|content)(?: \w+){0,2} (?:is )?(?:too large|exceeds the (?:limit|maximum))"
    r"|request_too_large|total text bytes"
    r"|message size \d+ exceeds|invalid 'messages\[\d+\]\.content[^']*': string too long"
    r"|(?:invalid 'messages'|\$\.messages'?)(?:: array| is)? too long",
    re.IGNORECASE,
)

_GAP: Final = r"(?:(?!\bby\b|limit \()[^\d]){0,40}?"
"""What may stand between a name and its number: not `by` (a difference follows) nor MiniMax's code in brackets."""

_LIMITS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"n_ctx\W{1,5}" + _N,
        r"\d tokens? ?> ?" + _N,
        r"context limit: ?\d+ ?\+ ?\d+ ?> ?" + _N,
        _N + r" maximum context length",
        r"range of input length should be \[\d+, ?" + _N,
        r"maximum (?:context|prompt|input|model|sequence)[ _-]?(?:length|window|size)?" + _GAP + _N,
        r"max input length" + _GAP + _N,
        r"(?:must be <=|must have less than) ?" + _N,
        r"maximum number of (?:input )?tokens(?: allowed)?\W{1,3}" + _N,
        r"context[ _-](?:length|window|size|limit)" + _GAP + _N,
        r"(?:token limit|max length)\W{1,3}" + _N,
        r"cannot exceed " + _N,
        r"exceeds? (?:the )?(?:\w+ ){0,4}(?:limit|maximum)(?: of)?[ :=]{1,3}" + _N,
        r"limit (?:is|of) " + _N,
        r"> " + _N + r" maximum",
        r"max tokens supported is " + _N,
        r"(?:最大|上限|限制|不超过|不能超过)[^\d]{0,12}" + _N,
    )
)

_TOTALS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"total of (?:at least |about )?" + _N,
        r"requested:? (?:about |at least )?" + _N + r"(?! (?:output|completion))",
        r"resulted in (?:about |at least )?" + _N,
        r"too long\W{1,2}" + _N + r" (?:input )?tokens",
        r"token count\W{1,3}(?:of )?" + _N,
        r"supplied " + _N,
        r"received " + _N,
        r"or less, got " + _N,
        r"current length is " + _N,
        r"first " + _N + r" tokens",
        r"n_keep\W{1,5}" + _N,
        r"requested tokens? \(" + _N,
        r"(?:prompt|input|request|messages?) \((?:length |of )?" + _N,
        r"(?:prompt|request|input|messages?)(?: \w+)? (?:contains?|has|have) (?:about |at least )?"
        + _N
        + r"(?! input)",
        r"given: " + _N + r"(?!\d* \Winputs)",
    )
)

_INPUT_AND_OUTPUT: Final = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        r"context limit: ?" + _N + r" ?\+ ?" + _N,
        r"given: " + _N + r" \Winputs\W? tokens and " + _N,
        r"\(" + _N + r" (?:in the messages|in your prompt|of text input|in the prompt)[^)]{0,60}?[,;] ?"
        r"(?:\d+ of tool input, )?" + _N + r" (?:in|for) the (?:completion|output)",
        r"requested " + _N + r"(?= output tokens)(?P<swap>).{0,40}?contains at least " + _N,
        r"has " + _N + r" input tokens plus " + _N,
        r"tokens\W{0,2} (?:or \S+ )?is too large: " + _N + r"(?P<swap2>).{0,120}?has " + _N + r" input tokens",
    )
)  # fmt: skip


def _number(text: str) -> int:
    return int(text.replace(",", "").replace("_", ""))


def _first(patterns: tuple[re.Pattern[str], ...], text: str, least: int = 0) -> int | None:
    for pattern in patterns:
        for match in pattern.finditer(text):
            value = _number(match.group(1))
            if value >= least:
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
        for pattern in _INPUT_AND_OUTPUT:
            if match := pattern.search(text):
                numbers = [_number(group) for group in match.groups() if group]
                swapped = any(name.startswith("swap") for name in pattern.groupindex)
                prompt, output = reversed(numbers) if swapped else numbers
                break
        limit = self._numbers.get("n_ctx") or _first(_LIMITS, text, _MIN_LIMIT)
        requested = self._numbers.get("n_prompt_tokens")
        if requested is None and prompt is not None and output is not None:
            requested = prompt + output
        if requested is None:
            requested = _first(_TOTALS, text)
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
