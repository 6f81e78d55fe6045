"""JSON made smaller as JSON: arrays keep both ends and a count, long strings and deep levels are cut."""

from __future__ import annotations

from typing import NamedTuple

from gateway.shrink.choose import whole
from gateway.shrink.jsonrows import read, write
from gateway.types import Json, JsonObject

_WHERE_KEY = "… whole output"


class _Scale(NamedTuple):
    """How much of each thing stays; one step of an ever tighter series."""

    string: int
    array: int
    keys: int
    depth: int


# From barely touched to a bare outline; the first that fits is taken.
_SCALES = (
    _Scale(2_000, 200, 1_000, 40),
    _Scale(1_000, 60, 400, 20),
    _Scale(500, 24, 200, 12),
    _Scale(300, 12, 100, 9),
    _Scale(200, 8, 60, 7),
    _Scale(120, 6, 40, 6),
    _Scale(100, 4, 24, 5),
    _Scale(60, 2, 16, 4),
    _Scale(40, 2, 8, 3),
    _Scale(24, 2, 4, 2),
)


def cut_json(text: str, max_chars: int, where: str | None = None) -> str | None:
    """`text`, a JSON object or array, as valid JSON of at most `max_chars` characters.

    None where `text` is something else, or can't be made so small and keep its outline.
    """
    text = text.strip()
    if text[:1] not in "{[" or text[-1:] not in "}]":
        return None
    try:
        value = read(text)
        room = max_chars - (len(where) + len(_WHERE_KEY) + 8 if where else 0)
        for scale in _SCALES:
            candidate = write(_cut(value, scale, 0))
            if len(candidate) <= room:
                return write(_named(_cut(value, scale, 0), where)) if where else candidate
    except (ValueError, RecursionError):
        return None
    return None


def _named(value: Json, where: str) -> Json:
    if isinstance(value, dict):
        return {**value, _WHERE_KEY: where}
    return [*value, f"{_WHERE_KEY}: {where}"]


def _cut(value: Json, scale: _Scale, depth: int) -> Json:
    if isinstance(value, str):
        return _cut_string(value, scale.string)
    if isinstance(value, list):
        return _cut_list(value, scale, depth)
    if isinstance(value, dict):
        return _cut_object(value, scale, depth)
    return value


def _cut_string(value: str, most: int) -> str:
    if len(value) <= most + 20:
        return value
    head = most * 2 // 3
    tail = most - head
    gone = len(value) - most
    return f"{value[: whole(value, head)]}… {gone:,} chars …{value[whole(value, len(value) - tail) :]}"


def _cut_list(value: list[Json], scale: _Scale, depth: int) -> Json:
    if depth >= scale.depth and value:
        return f"… {len(value):,} items …"
    if len(value) <= scale.array + 1:
        return [_cut(item, scale, depth + 1) for item in value]
    tail = max(1, scale.array // 3)
    head = scale.array - tail
    return [
        *(_cut(item, scale, depth + 1) for item in value[:head]),
        f"… {len(value) - scale.array:,} of {len(value):,} items …",
        *(_cut(item, scale, depth + 1) for item in value[-tail:]),
    ]


def _cut_object(value: JsonObject, scale: _Scale, depth: int) -> Json:
    if depth >= scale.depth and value:
        return f"… {len(value):,} keys …"
    out: JsonObject = {}
    for count, (key, item) in enumerate(value.items()):
        if count >= scale.keys and len(value) > scale.keys + 1:
            out["…"] = f"{len(value) - scale.keys:,} more keys"
            break
        out[key] = _cut(item, scale, depth + 1)
    return out
