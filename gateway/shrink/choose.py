"""Which of a long output's middle lines to keep within a number of characters, and how to show them.

Distinct kinds of error come before repeats of one, the strong before the weak, and of equals the outermost first: the
first error is most often the cause, the last one the outcome.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gateway.shrink.signals import ERROR, PLACE, TROUBLE, VERDICT, WARNING, Signal

KEEP_OPEN = "<keep>"
KEEP_CLOSE = "</keep>"

GROUP_COST = 16
"""Characters that the line-number mark before a group of kept lines takes at most, its line break included."""
_PLAIN_ERRORS_SHARE = 0.25  # of the budget, for kinds of ERROR before the repeats of verdicts
_MIN_LINE = 80  # characters; a line is not cut below this


def kept_lines(lines: Sequence[str]) -> set[int]:
    """Indices of the lines on which something stands between `<keep>` and `</keep>`."""
    found: set[int] = set()
    opened: int | None = None
    for index, line in enumerate(lines):
        if opened is None and KEEP_OPEN in line:
            opened = index
        if opened is not None and KEEP_CLOSE in line:
            found.update(range(opened, index + 1))
            opened = None
            if line.rfind(KEEP_OPEN) > line.rfind(KEEP_CLOSE):
                opened = index
    return found


def cut_line(line: str, limit: int) -> str:
    """`line` at `limit` characters at most, its middle replaced by its size."""
    limit = max(limit, _MIN_LINE)
    if len(line) <= limit:
        return line
    note = f" [… {len(line):,} chars …] "
    head = (limit - len(note)) * 2 // 3
    tail = limit - len(note) - head
    return line[: whole(line, head)] + note + line[whole(line, len(line) - tail) :]


def cut_kept(line: str, limit: int) -> str:
    """`line`, one of `kept_lines`, cut only before and after what `<keep>` marks."""
    start, end = line.find(KEEP_OPEN), line.rfind(KEEP_CLOSE) + len(KEEP_CLOSE)
    if start < 0 or (KEEP_CLOSE in line and line.find(KEEP_CLOSE) < start):
        start = 0  # a span opened before goes on here
    if end < len(KEEP_CLOSE) or line.rfind(KEEP_OPEN) > end:
        end = len(line)  # a span opened here goes on
    return cut_line(line[:start], limit) + line[start:end] + cut_line(line[end:], limit)


def whole(text: str, at: int) -> int:
    """The greatest position up to `at` that splits no CRLF, no joined or combined character and no surrogate pair."""
    for _ in range(32):  # a longer chain of combining marks is no text
        if not 0 < at < len(text):
            break
        after, before = text[at], text[at - 1]
        joined = (
            (before == "\r" and after == "\n")
            or "\ud800" <= before <= "\udbff"
            or before == "\u200d"
            or after in "\u200d\ufe0e\ufe0f\u20e3"
            or "\u0300" <= after <= "\u036f"
            or "\U0001f3fb" <= after <= "\U0001f3ff"
            or ("\U0001f1e6" <= after <= "\U0001f1ff" and "\U0001f1e6" <= before <= "\U0001f1ff")
        )
        if not joined:
            break
        at -= 1
    return at


def choose(
    lines: Sequence[str], signals: Sequence[Signal], budget: int, limit: int, *, most: int, around: bool
) -> set[int]:
    """Indices of at most `most` of `lines` to keep in `budget` characters, none counted for more than `limit`.

    `around` also takes the line before and after each first error of its kind, once all errors are in.
    """
    chosen: set[int] = set()
    left = budget
    plain_left = int(budget * _PLAIN_ERRORS_SHARE)
    for index, capped in _order(lines, signals, around):
        if index in chosen or not 0 <= index < len(lines):
            continue
        cost = min(len(lines[index]), limit) + 1
        if index - 1 not in chosen and index + 1 not in chosen:
            cost += GROUP_COST
        if cost > left or (capped and cost > plain_left):
            continue
        chosen.add(index)
        left -= cost
        if capped:
            plain_left -= cost
        if left < _MIN_LINE or len(chosen) >= most:
            break
    return chosen


def _order(lines: Sequence[str], signals: Sequence[Signal], around: bool) -> Iterator[tuple[int, bool]]:
    """Indices in the order in which they deserve a place, and whether they count against the share of plain errors."""
    verdicts, errors = _Kinds(signals, VERDICT), _Kinds(signals, ERROR)
    outer = [verdicts.firsts[:1], verdicts.lasts[-1:], errors.firsts[:1], errors.lasts[-1:]]
    for group in outer:
        yield from _free(group)
    yield from _free(_outermost(verdicts.firsts))
    yield from ((index, True) for index in _outermost(errors.firsts))
    if not around:
        yield from _free(_outermost(verdicts.lasts))
        yield from _free(_outermost(errors.lasts))
    yield from _free(verdicts.all)
    yield from _free(errors.firsts)
    if around:
        for index in verdicts.firsts + errors.firsts:
            yield from _free((index + 1, index - 1))
    yield from _free(_outermost(_Kinds(signals, TROUBLE).firsts))
    yield from _free(errors.all)
    for strength in (WARNING, PLACE):
        kinds = _Kinds(signals, strength)
        yield from _free(_outermost(kinds.firsts))
        if not around:
            yield from _free(_outermost(kinds.lasts))
            yield from _free(kinds.all)
    if around:
        yield from _free(_Kinds(signals, TROUBLE).all)


def _free(indices: Iterable[int]) -> Iterator[tuple[int, bool]]:
    return ((index, False) for index in indices)


class _Kinds:
    """The signals of one strength: all, and the first and last of each kind, as indices in order."""

    def __init__(self, signals: Sequence[Signal], strength: int) -> None:
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        self.all: list[int] = []
        for signal in signals:
            if signal.strength == strength:
                self.all.append(signal.index)
                first.setdefault(signal.kind_key, signal.index)
                last[signal.kind_key] = signal.index
        self.firsts = list(first.values())
        self.lasts = sorted(last.values())


def _outermost(indices: Sequence[int]) -> Iterator[int]:
    """First, last, second, second last …"""
    low, high = 0, len(indices) - 1
    while low <= high:
        yield indices[low]
        if high > low:
            yield indices[high]
        low, high = low + 1, high - 1


def show(
    lines: Sequence[str], chosen: set[int], pinned: set[int], first_number: int, limit: int, counts: dict[int, int]
) -> list[str]:
    """The chosen and pinned lines in order, each group after `[its line number]`, with `×n` where `counts` says so."""
    out: list[str] = []
    previous = None
    for index in sorted(chosen | pinned):
        if previous is None or index != previous + 1:
            more = counts.get(index)
            out.append(f"[{first_number + index}, ×{more}]" if more else f"[{first_number + index}]")
        out.append(cut_kept(lines[index], limit) if index in pinned else cut_line(lines[index], limit))
        previous = index
    return out


def repeats(signals: Sequence[Signal], chosen: set[int]) -> dict[int, int]:
    """First chosen index of a kind → how many lines of that kind there are, where not all of them are shown."""
    total: dict[str, int] = {}
    shown: dict[str, list[int]] = {}
    for signal in signals:
        total[signal.kind_key] = total.get(signal.kind_key, 0) + 1
        if signal.index in chosen:
            shown.setdefault(signal.kind_key, []).append(signal.index)
    return {indices[0]: total[key] for key, indices in shown.items() if total[key] > len(indices)}
