"""Parts of a kept tool output: a range of lines, the lines that match a pattern. For people over HTTP, and for models.

A pattern that is no regular expression still finds what it says. A pattern can be made to run for ever; it is given a
deadline, and a matcher that lets other threads go on meanwhile.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gateway.errors import BadRequest

GREP_S = 1.0
"""Seconds a regular expression may take over a whole text."""
GREP_BYTES = 1 << 20
"""The most that a search gives back; a count of what was left out is given with it."""
LONG_LINE = 2_000
"""Characters of a matching line shown by a search."""
SPILL_ID = re.compile(r"[0-9a-f]{8,64}")


@dataclass(frozen=True, slots=True)
class Selected:
    """Lines of a text. `how`: `regex`, `literal`, or empty where nothing was searched for."""

    text: str
    lines: int
    """Of the whole text."""
    shown: int
    how: str = ""
    left_out: int = 0
    """Matching lines past the size limit."""


def select(text: str, lines: str | None = None, grep: str | None = None) -> Selected:
    """The part of `text` that is in the range and matches. A line's end is a line feed; a range alone gives the text's
    own characters, a search gives `number:line` for each match.

    Raises:
        BadRequest: the range ends before it begins.
    """
    whole = text.split("\n")
    total = len(whole) - (whole[-1] == "" and len(whole) > 1)
    first, last = _range(lines, total)
    if grep is None:
        if lines is None:
            return Selected(text, total, total)
        part = whole[first - 1 : last]
        ended = last < len(whole) and bool(part)
        return Selected("\n".join(part) + ("\n" if ended else ""), total, len(part))
    numbered = list(enumerate(whole[first - 1 : last], first))
    how, hits = _grep(numbered, grep)
    shown: list[str] = []
    room = GREP_BYTES
    for number, line in hits:
        entry = f"{number}:{line[:LONG_LINE]}{'…' if len(line) > LONG_LINE else ''}\n"
        room -= len(entry.encode("utf-8", "replace"))
        if room < 0:
            break
        shown.append(entry)
    return Selected("".join(shown), total, len(shown), how, len(hits) - len(shown))


def _range(lines: str | None, total: int) -> tuple[int, int]:
    if lines is None:
        return 1, total
    first, dash, last = lines.partition("-")
    begin = int(first)
    end = int(last) if last else (total if dash else begin)
    if last and end < begin:
        raise BadRequest("'lines' ends before it begins.", param="lines", code="invalid_value")
    return begin, min(end, total)


def _grep(lines: list[tuple[int, str]], pattern: str) -> tuple[str, list[tuple[int, str]]]:
    try:
        return "regex", list(_matching(lines, pattern))
    except (ValueError, TimeoutError, MemoryError):
        return "literal", [(number, line) for number, line in lines if pattern in line]


def _matching(lines: list[tuple[int, str]], pattern: str) -> Iterator[tuple[int, str]]:
    search = _search(pattern)
    for number, line in lines:
        if search(line):
            yield number, line


def _search(pattern: str) -> Callable[[str], object]:
    """A matcher that gives up at the deadline. ValueError where `pattern` is no regular expression."""
    import regex  # type: ignore[import-untyped]

    try:
        compiled = regex.compile(pattern)
    except regex.error as error:
        raise ValueError(str(error)) from error
    deadline = time.monotonic() + GREP_S

    def search(line: str) -> object:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return compiled.search(line, timeout=left, concurrent=True)

    return search
