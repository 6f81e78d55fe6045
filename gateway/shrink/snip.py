"""Tier 2: an old tool result's beginning, end, and what its middle had to say."""

from __future__ import annotations

import re

from gateway.shrink.choose import choose, kept_lines, repeats, show, whole
from gateway.shrink.jsoncut import cut_json
from gateway.shrink.signals import signal_lines

_NEAR = 200  # characters within which a line's border is preferred to the exact place
_MARK = re.compile(r"^\[… [\d,]+ characters? snipped", re.MULTILINE)
_MOST_LINES = 60  # of the middle; a thousand characters hold no more


def snip(text: str, *, max_chars: int = 3_000, head: int = 1_500, tail: int = 1_000, signal: int = 1_000) -> str | None:
    """The first `head` and last `tail` characters of `text`, and `signal` characters of signal lines between.

    None where `text` has at most `max_chars` characters, was snipped before, or would not get shorter. Cuts at a line's
    border where one is near. JSON stays valid JSON, and then has at most `max_chars` characters. Raises nothing.
    """
    if len(text) <= max_chars or _MARK.search(text):
        return None
    if "<keep>" not in text:
        as_json = cut_json(text, max_chars)
        if as_json is not None:
            return as_json if len(as_json) < len(text) else None
    start = _border_before(text, min(head, len(text)))
    end = max(start, _border_after(text, max(0, len(text) - tail)))
    pinned = kept_lines(text.split("\n")) if "<keep>" in text else set()
    start, end = _around_kept(text, start, end, pinned)
    middle = text[start:end]
    first = text.count("\n", 0, start)
    shown = _shown(middle.split("\n"), first, signal, pinned)
    note = f"[… {len(middle):,} characters snipped{'; lines that matter kept below' if shown else ''}]"
    pieces = [text[:start].removesuffix("\n"), note, *shown]
    if shown:
        pieces.append(f"[{text.count(chr(10), 0, end) + 1} to the end]")
    result = "\n".join([*pieces, text[end:]])
    return result if len(result) < len(text) else None


def _shown(lines: list[str], first: int, signal: int, pinned: set[int]) -> list[str]:
    """The middle's kept lines with their marks; `first` is the index of its first line in the whole."""
    signals = signal_lines(lines)
    limit = max(200, signal // 2)
    chosen = choose(lines, signals, signal, limit, most=_MOST_LINES, around=False)
    here = {index - first for index in pinned if first <= index < first + len(lines)}
    return show(lines, chosen, here, first + 1, limit, repeats(signals, chosen))


def _border_before(text: str, at: int) -> int:
    """`at`, or just after the last line break not far before it."""
    border = text.rfind("\n", max(0, at - _NEAR), at)
    return border + 1 if border >= 0 else whole(text, at)


def _border_after(text: str, at: int) -> int:
    """`at`, or just after the first line break not far after it."""
    if at == 0:
        return 0
    border = text.find("\n", at - 1, at + _NEAR)
    return border + 1 if 0 <= border < len(text) - 1 else whole(text, at)


def _around_kept(text: str, start: int, end: int, pinned: set[int]) -> tuple[int, int]:
    """The middle's borders, moved so that no run of kept lines lies across one."""
    if not pinned:
        return start, end
    position = 0
    begin: int | None = None
    for index, line in enumerate(text.split("\n")):
        stop = position + len(line) + 1
        if index in pinned:
            begin = position if begin is None else begin
            if index + 1 not in pinned:
                start = begin if begin < start < stop else start
                end = min(stop, len(text)) if begin < end < stop else end
                begin = None
        position = stop
    return start, max(start, end)
