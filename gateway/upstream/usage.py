"""Read token usage out of a reply, whoever wrote it.

Every vendor counts the same four things under other names and in other places: inside `usage`, in Groq's `x_groq`, in
a choice (Moonshot), in a `response` or `message` object (OpenAI's Responses, Anthropic), or as Gemini's own metadata.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from gateway.types import JsonObject


@dataclass(slots=True)
class Usage:
    """Tokens as the upstream counted them; None where it didn't say.

    `prompt_tokens` is the whole prompt, cached part included; `cached_tokens` is the part read from a cache;
    `reasoning_tokens` is the part of `completion_tokens` that was thought.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


_DETAILS: Final = ("prompt_tokens_details", "input_tokens_details")
_CACHED: Final = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens", "cachedContentTokenCount")
_OUTPUT_DETAILS: Final = ("completion_tokens_details", "output_tokens_details")
_REASONING: Final = ("reasoning_tokens", "thoughtsTokenCount")


def find_usage(chunk: JsonObject) -> JsonObject | None:
    """The usage object of a chunk or of a whole reply, wherever it stands; None where there is none."""
    usage = chunk.get("usage")
    if isinstance(usage, dict):
        return usage
    for holder in ("x_groq", "response", "message"):
        inner = chunk.get(holder)
        if isinstance(inner, dict) and isinstance(inner.get("usage"), dict):
            return dict(inner["usage"])
    choices = chunk.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        usage = choices[0].get("usage")
        if isinstance(usage, dict):
            return usage
    usage = chunk.get("usageMetadata")
    return usage if isinstance(usage, dict) else None


def read_usage(raw: JsonObject) -> Usage:
    """Normalise a usage object. Unknown and malformed fields count as not said."""
    prompt = _first(raw, ("prompt_tokens", "promptTokenCount"))
    if prompt is None:
        prompt = _first(raw, ("input_tokens",))
        if prompt is not None:
            # Anthropic counts the cached parts beside the input, everyone else within it.
            prompt += _first(raw, ("cache_read_input_tokens",)) or 0
            prompt += _first(raw, ("cache_creation_input_tokens",)) or 0
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=_first(raw, ("completion_tokens", "output_tokens", "candidatesTokenCount")),
        cached_tokens=_largest(raw, _DETAILS, _CACHED),
        reasoning_tokens=_largest(raw, _OUTPUT_DETAILS, _REASONING),
    )


def _count(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1 << 53:
        return None
    return int(value)


def _first(raw: JsonObject, names: tuple[str, ...]) -> int | None:
    for name in names:
        value = _count(raw.get(name))
        if value is not None:
            return value
    return None


def _largest(raw: JsonObject, holders: tuple[str, ...], names: tuple[str, ...]) -> int | None:
    """The largest of a count given under several names: some vendors fill one and leave another at 0."""
    places = [raw, *(inner for holder in holders if isinstance(inner := raw.get(holder), dict))]
    found = [value for place in places for name in names if (value := _count(place.get(name))) is not None]
    return max(found, default=None)
