"""Tier 1: what is too long to send even once, cut before it piles up, its errors kept.

Head and tail alone lose nearly every error of a real CI log: they stand in the middle. So the middle's signal lines
stay, by their weight, and the whole is named where it is kept.
"""

from __future__ import annotations

import re

from gateway.shrink.choose import choose, cut_kept, cut_line, kept_lines, repeats, show
from gateway.shrink.jsoncut import cut_json
from gateway.shrink.signals import signal_lines

HEAD_SHARE = 0.20
MIDDLE_SHARE = 0.40
HEAD_LINES = 50
"""Lines of the head at least, as long as they stay under `_HEAD_MOST`."""
_HEAD_MOST = 0.30
_LINE_SHARE = 0.125  # of max_chars: the longest line that is kept whole
_NOTE = 260  # characters reserved for the two marks, beside `where`
_MARK = re.compile(r"^\[… (?:[\d,]+ lines \()?[\d.]+ [kM]B(?:\)| of long lines) left out", re.MULTILINE)


def cut_output(text: str, *, max_chars: int = 40_000, max_lines: int = 1_000, where: str | None = None) -> str | None:
    """`text` in at most `max_chars` characters and `max_lines` lines, or None where it is so already.

    Keeps a head, a tail, and of the middle the signal lines with a line around each. JSON stays valid JSON. `where`
    tells the reader how to get at the whole. Only what stands between `<keep>` marks can make it longer.
    """
    lines = text.split("\n")
    if len(text) <= max_chars and len(lines) <= max_lines:
        return None
    if "<keep>" not in text:
        as_json = cut_json(text, max_chars, where)
        if as_json is not None:
            return as_json
    elif _MARK.search(text):
        return None
    return _cut_lines(text, lines, max_chars, max_lines, where)


def _cut_lines(text: str, lines: list[str], max_chars: int, max_lines: int, where: str | None) -> str | None:
    room = max(0, max_chars - _NOTE - len(where or ""))
    limit = max(200, int(room * _LINE_SHARE))
    if len(lines) < 4:
        limit = max(200, room // len(lines) - 2)
    sizes = [min(len(line), limit) + 1 for line in lines]
    pinned = kept_lines(lines)
    fits = sum(sizes) <= room and len(lines) < max_lines  # once its long lines are cut
    head = len(lines) if fits else _head_end(sizes, room, max_lines)
    while head in pinned and head - 1 in pinned:
        head -= 1
    tail = _tail_start(sizes, head, int(room * (1 - MIDDLE_SHARE)) - sum(sizes[:head]), int(max_lines * 0.4))
    middle = lines[head:tail]
    signals = signal_lines(middle)
    budget = int(room * MIDDLE_SHARE)
    most = max(0, max_lines - head - (len(lines) - tail) - 3) // 2
    chosen = choose(middle, signals, budget, limit, most=most, around=True)
    used = sum(sizes[head + index] for index in chosen)
    counts = repeats(signals, chosen)
    spare_lines = max_lines - head - (len(lines) - tail) - 2 * len(chosen) - 4
    tail, chosen = _grow_tail(sizes, head, tail, chosen, budget - used - 20 * len(chosen), spare_lines)
    while tail in pinned and tail - 1 in pinned:
        tail += 1
    middle = lines[head:tail]
    here = {index - head for index in pinned if head <= index < tail}

    def shown(index: int) -> str:
        return cut_kept(lines[index], limit) if index in pinned else cut_line(lines[index], limit)

    out = [shown(index) for index in range(head)]
    left_out = tail - head - len(chosen | here)
    if left_out > 0:
        gone = len("\n".join(middle[: tail - head])) - sum(len(middle[index]) + 1 for index in chosen | here)
        out.append(_note(left_out, gone, bool(chosen), where))
        out += show(middle, chosen, here, head + 1, limit, counts)
        out.append(f"[{tail + 1} to the end]")
    elif any(len(line) > limit for line in lines):
        out.insert(0, _note(0, len(text) - sum(map(len, out)), False, where))
    out += [shown(index) for index in range(tail, len(lines))]
    result = "\n".join(out)
    return result if len(result) < len(text) else None


def _note(lines: int, characters: int, kept: bool, where: str | None) -> str:
    size = f"{characters / 1e6:.1f} MB" if characters >= 1e6 else f"{characters / 1e3:.1f} kB"
    parts = [f"[… {lines:,} lines ({size}) left out" if lines else f"[… {size} of long lines left out"]
    if kept:
        parts.append("; lines that matter kept below, after their [line number]")
    if where:
        parts.append(f"; whole output: {where}")
    return "".join(parts) + "]"


def _head_end(sizes: list[int], room: int, max_lines: int) -> int:
    """How many first lines stay."""
    used = 0
    most_lines = max(HEAD_LINES, int(max_lines * HEAD_SHARE))
    for index, size in enumerate(sizes):
        share = _HEAD_MOST if index < HEAD_LINES else HEAD_SHARE
        if used + size > room * share or index >= min(most_lines, max_lines // 2):
            return index
        used += size
    return len(sizes)


def _tail_start(sizes: list[int], head: int, room: int, most_lines: int) -> int:
    """Index of the first of the last lines that stay."""
    start = len(sizes)
    while start > head and len(sizes) - start < most_lines and sizes[start - 1] <= room:
        start -= 1
        room -= sizes[start]
    return start


def _grow_tail(sizes: list[int], head: int, tail: int, chosen: set[int], room: int, lines: int) -> tuple[int, set[int]]:
    """The tail, longer by what the middle's lines left of their budget."""
    while tail > head:
        if tail - 1 - head not in chosen:
            if sizes[tail - 1] > room or lines < 1:
                break
            room -= sizes[tail - 1]
            lines -= 1
        tail -= 1
    return tail, {index for index in chosen if index < tail - head}
