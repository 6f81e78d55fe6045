"""Which lines of a tool's output matter: errors, failures, crashes, and where they happened.

A line is judged by words that compilers, test runners, package managers, orchestrators, kernels and stack traces share,
not by any tool's format. One search over the whole text finds the words; each is weighed in its surroundings
(`signal_words`), and the line's own verdict ("PASSED", "INFO") is heard last.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from gateway.shrink.signal_words import (
    CERTAIN,
    CUT,
    ERROR,
    FOREIGN_HIT,
    HIT,
    PLACE,
    REACH,
    TROUBLE,
    VERDICT,
    WARNING,
    weigh,
)

__all__ = ["ERROR", "PLACE", "TROUBLE", "VERDICT", "WARNING", "Signal", "kind_key", "signal_lines", "strength_of"]

_LONGEST_JUDGED = 4_000
"""Characters of a line that are looked at; beyond, a line is data, not a message."""
_PREFIX = 160  # characters at a line's start in which its level stands

_PASSED = re.compile(
    r"^\W*(?:PASS(?:ED)?|OK|ok|SKIP(?:PED)?)\b|^\s*[✓✔√]|^\s*(?:=== (?:RUN|PAUSE|CONT|NAME)|--- (?:PASS|SKIP))"
    r"|\bTEST-(?:PASS|OK|START|SKIP)\b|\[\s+(?:OK|RUN)\s+\]|\b(?:PASSED|SKIPPED|XFAIL)\b(?: +\[ *\d+%\])?\s*$"
    r"|\.\.\. ?(?:ok|skipped|ignored)\b|(?:测试)?通过\s*$"
)
_VERDICT_FIRST = re.compile(r"[\W\d]*(?:[A-Z]+[- ])*(?:UNEXPECTED|FAIL|CRASH|FATAL|PANIC|ERROR)")
_PASSED_WORDS = (
    "PASS",
    "OK",
    "ok",
    "SKIP",
    "RUN",
    "START",
    "XFAIL",
    "✓",
    "✔",
    "√",
    "通过",
    "=== ",
    "skipped",
    "ignored",
)
_CALM = re.compile(
    r"\b(?:INFO|DEBUG|TRACE|NOTICE|VERBOSE)\b|\[(?:info|debug|trace|notice)\s*\]|\blevel=\"?(?:info|debug|trace)\b"
    r"|\"(?:level|severity|levelname)\"\s*:\s*\"(?:info|debug|trace|notice)\"|^[ID]\d{4} \d\d:"
    r"|[\[【](?:信息|调试)[\]】]"
)

_VARIABLE = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-f]{7,64}\b|\d+")
_PATHS = re.compile(r"(?<![\w.@+~-])(?:[A-Za-z]:|[.~])?[\\/]?(?:[\w.@+~-]+[\\/])+[\w.@+~?&=-]*")


_NUMBERED = re.compile(r"\n {0,6}\d{1,4}\) \S")
_TITLE = re.compile(r" {0,6}\d{1,4}\) \S")
_TITLE_ABOVE = 4  # lines between a failure's title and what went wrong, at most


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


class Signal(NamedTuple):
    """One line that matters: its index, how much (1 to 5), and what it has in common with its repeats."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs
    strength: int
    kind_key: str


def kind_key(line: str) -> str:
    """`line` without what differs between repeats: times, paths, numbers, hexadecimal ids, spacing."""
    line = line[:_LONGEST_JUDGED]
    if "/" in line or "\\" in line:
        line = _PATHS.sub("P", line)
    return " ".join(_VARIABLE.sub("0", line).split())


def strength_of(line: str) -> int:
    """How much one line matters: `VERDICT` (5), `ERROR`, `TROUBLE`, `WARNING`, `PLACE` (1), or 0 for not at all."""
    found = signal_lines([line])
    return found[0].strength if found else 0


def signal_lines(lines: Sequence[str]) -> list[Signal]:
    """The lines that matter, in order. Linear; a megabyte of log takes some tens of milliseconds."""
    text = "\n".join(["", *lines])
    lowered = text.lower()
    if len(lowered) != len(text):  # a few letters have a longer lower case; offsets must agree
        lowered = "".join(low if len(low := char.lower()) == 1 else char for char in text)
    starts = list(accumulate((len(line) + 1 for line in lines), initial=1))
    strongest = _strongest(HIT, text, lowered, starts)
    if not text.isascii():
        for index, strength in _strongest(FOREIGN_HIT, text, lowered, starts).items():
            strongest[index] = max(strength, strongest.get(index, 0))
        strongest = dict(sorted(strongest.items()))
    signals: list[Signal] = []
    judged: dict[tuple[int, bytes], tuple[int, str]] = {}
    for index, strength in strongest.items():
        line = lines[index]
        likeness = (strength, line.encode("utf-8", "surrogatepass").translate(None, b"0123456789"))
        verdict = judged.get(likeness)
        if verdict is None:
            verdict = judged[likeness] = (_heard(line, strength), kind_key(line))
        if verdict[0]:
            signals.append(Signal(index, *verdict))
    return _with_titles(lines, signals) if _NUMBERED.search(text) else signals


def _with_titles(lines: Sequence[str], signals: list[Signal]) -> list[Signal]:
    """The signals with the numbered titles right above some of them: which test failed (mocha, rspec, phpunit …)."""
    known = {signal.index: signal for signal in signals}
    for signal in signals:
        if signal.strength < TROUBLE:
            continue
        depth = _indent(lines[signal.index])
        for index in range(signal.index - 1, max(-1, signal.index - 1 - _TITLE_ABOVE), -1):
            if _TITLE.match(lines[index]):
                above = _indent(lines[index])
                if above < depth or (above == depth and index == signal.index - 1):
                    known[index] = Signal(index, VERDICT, kind_key(lines[index]))
                break
            if index in known:
                break
    return [known[index] for index in sorted(known)]


def _strongest(words: re.Pattern[str], text: str, lowered: str, starts: list[int]) -> dict[int, int]:
    """Line index → the greatest weight among the words found in it, for lines with any."""
    found: dict[int, int] = {}
    weights: dict[tuple[str, str, str, bool], int] = {}
    index, begin, end, best = -1, 0, 0, 0
    for hit in words.finditer(lowered):
        at = hit.start()
        if lowered[at] == "\n":
            at += 1
        if at >= end:
            index = bisect_right(starts, at, max(index, 0)) - 1
            begin, end, best = starts[index], starts[index + 1], 0
        if best >= CERTAIN or at - begin > _LONGEST_JUDGED:
            continue
        stop = hit.end()
        before = CUT + lowered[at - REACH : at] if at - begin > REACH else lowered[begin:at]
        around = (lowered[at:stop], before, lowered[stop : min(end - 1, stop + REACH)], text[at:stop].isupper())
        weight = weights.get(around)
        if weight is None:
            weight = weights[around] = weigh(*around)
        if weight > best:
            found[index] = best = weight
    return found


def _heard(line: str, strength: int) -> int:
    """`strength` after what the line says of itself: that it passed, or that it only informs."""
    line = line[:_LONGEST_JUDGED]
    if any(word in line for word in _PASSED_WORDS) and _PASSED.search(line):
        return 0
    if strength == CERTAIN:
        return VERDICT
    if strength > PLACE and (level := _CALM.search(line[:_PREFIX])):
        if strength == VERDICT:  # a test runner's own verdict often comes at level INFO, right after it
            return VERDICT if _VERDICT_FIRST.match(line, level.end()) else ERROR
        return max(PLACE, strength - 2)
    return strength
