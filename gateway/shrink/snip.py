"""Tier 2: an old tool result's beginning, end, and what its middle had to say."""

from __future__ import annotations

import re

from gateway.shrink.choose import choose, cut_line, kept_lines, repeats, show, whole
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
    start, end, keeps = _around_keeps(text, start, end)
    middle = text[start:end]
    lines = middle.split("\n")
    kept = _middle(lines, text.count("\n", 0, start) + 1, signal, keeps)
    gone = len(middle) - sum(map(len, kept[1])) if kept else len(middle)
    note = f"[… {gone:,} characters snipped{'; lines that matter kept below' if kept[0] else ''}]"
    pieces = [text[:start].removesuffix("\n"), note, *kept[0]]
    if kept[0]:
        pieces.append(f"[{text.count(chr(10), 0, end) + 1} to the end]")
    result = "\n".join([*pieces, text[end:]])
    return result if len(result) < len(text) else None


def _middle(lines: list[str], first_number: int, signal: int, keeps: bool) -> tuple[list[str], list[str]]:
    """The middle's kept lines with their marks, and the same lines without."""
    signals = signal_lines(lines)
    limit = max(200, signal // 2)
    chosen = choose(lines, signals, signal, limit, most=_MOST_LINES, around=False)
    if keeps:
        chosen |= kept_lines(lines)
    shown = show(lines, chosen, first_number, limit, repeats(signals, chosen))
    return shown, [cut_line(lines[index], limit) for index in sorted(chosen)]


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


def _around_keeps(text: str, start: int, end: int) -> tuple[int, int, bool]:
    """The middle's borders moved to lines' borders where a kept span crosses them, and whether it has such spans."""
    if "<keep>" not in text:
        return start, end, False
    lines = text.split("\n")
    pinned = kept_lines(lines)
    position = 0
    for index, line in enumerate(lines):
        stop = position + len(line) + 1
        if index in pinned:
            if position < start < stop:
                start = min(position, end)
            if position < end < stop:
                end = min(stop, len(text))
        position = stop
    return start, max(start, end), bool(pinned)
