"""What a new tool result repeats of an earlier one, said once: a pointer in place of a long verbatim span.

Re-reads of a file, overlapping windows of it and the same closing lines on every result are common in agents. The
earlier text stays where it is, so nothing is lost as long as the model still sees it; only text that is itself no
pointer is pointed at.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from gateway.shrink.cost import tokens

MIN_LINES = 8
MIN_CHARS = 400
"""A span is worth a pointer from here on: `MIN_LINES` lines with `_MIN_LINES_CHARS` characters, or `MIN_CHARS`."""
_MIN_LINES_CHARS = 240
_MIN_END_CHARS = 100  # of the lines with which both results end
_MIN_GAIN = 8  # tokens that a pointer must save beyond its own
_CANDIDATES = 4  # earlier places tried for each line
_MAX_SEARCHED = 4_000_000  # characters of earlier text, the newest first

_NUMBERED = re.compile(r"(\d{1,7})([:|\t→])(.*)", re.DOTALL)
_POINTER = re.compile(
    r"^\[(?:the same as|last (?P<last>\d+) lines: as in|(?P<count>\d+) lines: as lines (?P<low>\d+)-(?P<high>\d+) of) "
    r"(?P<label>.+?) above(?:, numbered (?P<shift>\d+) (?P<way>higher|lower))?\]$"
)


class _Line(NamedTuple):
    """A line as it is compared: a leading line number, what parts it from the rest, and the rest."""

    number: int
    rest: str


class _Span(NamedTuple):
    start: int
    length: int
    source: int
    at: int
    shift: int


def against_earlier(text: str, earlier: Sequence[tuple[str, str]]) -> str | None:
    """`text` with spans that stand in an earlier result too replaced by one line each; None where nothing is won.

    `earlier`: (label, text) of the results before it that the model still sees, oldest first. A label that occurs twice
    means the later. Line-numbered listings match also where all numbers moved alike. Linear in the texts' lengths.
    """
    if len(text) < _MIN_END_CHARS or not earlier:
        return None
    lines = text.split("\n")
    if any(line[:1] == "[" and _POINTER.match(line) for line in lines):
        return None
    sources = _sources(earlier)
    for label, source in reversed(sources):
        if source == text and tokens(text) > tokens(label) + 4 + _MIN_GAIN:
            return f"[the same as {label} above]"
    parsed = [[_parse(line) for line in source.split("\n")] for _, source in sources]
    spans = _spans([_parse(line) for line in lines], parsed, lines)
    out: list[str] = []
    position = 0
    for span in spans:
        pointer = _pointer(span, sources[span.source][0], len(lines), len(parsed[span.source]))
        if tokens("\n".join(lines[span.start : span.start + span.length])) < tokens(pointer) + _MIN_GAIN:
            continue
        out += [*lines[position : span.start], pointer]
        position = span.start + span.length
    if position == 0 and not out:
        return None
    result = "\n".join([*out, *lines[position:]])
    return result if len(result) < len(text) else None


def unfold_repeats(text: str, earlier: Sequence[tuple[str, str]]) -> str:
    """The text that `against_earlier` was given. Raises KeyError where a pointer's label is not among `earlier`."""
    sources = dict(_sources(earlier))
    out: list[str] = []
    for line in text.split("\n"):
        found = _POINTER.match(line)
        if found is None:
            out.append(line)
            continue
        source = sources[found["label"]].split("\n")
        if found["last"]:
            out += source[len(source) - int(found["last"]) :]
        elif found["count"]:
            shift = int(found["shift"] or 0) * (-1 if found["way"] == "lower" else 1)
            out += [_shifted(given, shift) for given in source[int(found["low"]) - 1 : int(found["high"])]]
        else:
            out += source
    return "\n".join(out)


def _sources(earlier: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The results that can be pointed at: of one label the last, within the size searched, with a usable label."""
    found: dict[str, str] = {}
    left = _MAX_SEARCHED
    for label, text in reversed(earlier):
        left -= len(text)
        if left < 0:
            break
        if label and label not in found and "\n" not in label and " above" not in label:
            found[label] = text
    return list(reversed(found.items()))


def _parse(line: str) -> _Line:
    found = _NUMBERED.match(line) if line[:1].isdigit() else None
    if found is None or (len(found[1]) > 1 and found[1][0] == "0"):
        return _Line(-1, line)
    return _Line(int(found[1]), found[2] + found[3])


def _shifted(line: str, shift: int) -> str:
    parsed = _parse(line)
    return line if parsed.number < 0 or not shift else f"{parsed.number + shift}{parsed.rest}"


def _spans(lines: list[_Line], sources: list[list[_Line]], raw: list[str]) -> list[_Span]:
    """The spans worth a pointer, in order, none overlapping."""
    places: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for source, given in enumerate(sources):
        for at in range(len(given) - 1):
            found = places.setdefault((given[at].rest, given[at + 1].rest), [])
            if len(found) < _CANDIDATES:
                found.append((source, at))
            else:
                found[at % _CANDIDATES] = (source, at)
    spans: list[_Span] = []
    start = 0
    while start < len(lines) - 1:
        best = None
        for source, at in places.get((lines[start].rest, lines[start + 1].rest), ()):
            span = _longest(lines, start, sources[source], at, source)
            if best is None or span.length > best.length:
                best = span
        if best is not None and _worth(best, raw, len(sources[best.source])):
            spans.append(best)
            start += best.length
        else:
            start += 1
    return spans


def _longest(lines: list[_Line], start: int, source: list[_Line], at: int, index: int) -> _Span:
    """How far the two texts agree from here on, all line numbers moved alike."""
    shift: int | None = None
    length = 0
    most = min(len(lines) - start, len(source) - at)
    while length < most:
        new, old = lines[start + length], source[at + length]
        if new.rest != old.rest or (new.number < 0) != (old.number < 0):
            break
        if new.number >= 0:
            moved = new.number - old.number
            if shift is None:
                shift = moved
            elif moved != shift:
                break
        if old.rest[:1] == "[" and _POINTER.match(old.rest):
            break
        length += 1
    return _Span(start, length, index, at, shift or 0)


def _worth(span: _Span, raw: list[str], source_lines: int) -> bool:
    if span.length < 2:
        return False
    size = sum(map(len, raw[span.start : span.start + span.length])) + span.length
    if size >= MIN_CHARS or (span.length >= MIN_LINES and size >= _MIN_LINES_CHARS):
        return True
    return size >= _MIN_END_CHARS and _at_ends(span, len(raw), source_lines)


def _at_ends(span: _Span, lines: int, source_lines: int) -> bool:
    return span.start + span.length == lines and span.at + span.length == source_lines and not span.shift


def _pointer(span: _Span, label: str, lines: int, source_lines: int) -> str:
    if _at_ends(span, lines, source_lines):
        return f"[last {span.length} lines: as in {label} above]"
    moved = f", numbered {abs(span.shift)} {'higher' if span.shift > 0 else 'lower'}" if span.shift else ""
    return f"[{span.length} lines: as lines {span.at + 1}-{span.at + span.length} of {label} above{moved}]"
