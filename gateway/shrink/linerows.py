"""Lines that share a form, said once with what differs of each: logs with times and levels, listings, search results.

    Requirement already satisfied: pytz in /opt/site-packages (from marsh==3.13) (2024.2)
    Requirement already satisfied: tox in /opt/site-packages (from marsh==3.13) (4.23.2)
    …
becomes
    [31 lines of the form "Requirement already satisfied: {} in /opt/site-packages (from marsh==3.13) ({})"; their {}
    are:]
    pytz 2024.2
    tox 4.23.2
    …

Code stays as it is, for an edit may have to quote it. Lines that report trouble do too: whoever looks for an error
finds it word for word. What cuts a text undoes the rows first (`unfold_rows`), so that no row is left without its
form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.shrink.cost import tokens
from gateway.shrink.signals import WARNING, signal_lines

_MIN_LINES = 5
_MIN_SHARED = 40  # characters that every line of a run must share: the times and paths of logs, not short phrases
_MIN_SPARED = 160  # characters that a run must spare, its form already paid for
_LEAST_GAIN = 0.2  # of a run's characters, at four to a token
_LED_WORTH = 0.85  # of the best run: lines that begin alike are preferred, for what follows stays word for word
_SETTLED = 16  # lines that changed nothing about a run's form, before it is made a pattern
_FORM_COST = 60  # characters of a form's line beside the shared ones
_START = 4  # characters at a line's start by which runs are looked for
_STRIDE = 2  # lines from one place where a run is looked for to the next; a run met in its middle is followed back
_FIELDS = 40  # of a line, at most; the last one holds the rest of it

# What code begins with and logs, listings and searches don't: indentation, a diff's signs, imports, a line's number.
_CODE = re.compile(r"[\s+\-@]|(?:from|import|#include|using?|export|const|let|var|pub|require)\b|\d{1,6}[:|\t→](?!\d)")
_HOLE = "{}"
FORM_END = "; their {} are:]"
"""With what a form's line ends: a text without it has no rows."""
_FORM_LINE = re.compile(r'\[(\d+) lines of the form "(.*)"; their \{\} are:\]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Run:
    """Lines `start` up to `stop` that agree in their first fields.

    `spans` has for each such field the lengths of the shared beginning and end, or None where it is the same in all.
    `rest`: whether more follows after these fields, different in each line. `lead`: characters that all lines begin
    with, where they share nothing but that; then there are no spans.
    """

    start: int
    stop: int
    spans: tuple[tuple[int, int] | None, ...]
    rest: bool
    spared: int
    lead: int = 0


def has_rows(text: str) -> bool:
    """Whether some lines of the text are folded to rows."""
    return FORM_END in text and any(_FORM_LINE.fullmatch(line) for line in text.split("\n"))


def fold_rows(text: str) -> str:
    """`text` with runs of lines that share a form as that form and rows, or `text` itself where nothing is won.

    `unfold_rows` gives the text back. Linear, never longer in characters or estimated tokens; raises nothing.
    """
    if len(text) < _MIN_SPARED:
        return text
    lines = text.split("\n")
    starts = ["" if _CODE.match(line) else line[:_START] for line in lines]
    found = _found(lines, starts)
    if not found or has_rows(text):
        return text
    trouble = [signal.index for signal in signal_lines(lines) if signal.strength >= WARNING]
    for index in trouble:
        starts[index] = ""
    if any(begin <= index < end for begin, end, _ in found for index in trouble):
        found = _found(lines, starts)
    out: list[str] = []
    done = 0
    for begin, end, rows in found:
        out += [*lines[done:begin], *rows]
        done = end
    return "\n".join([*out, *lines[done:]]) if found else text


def unfold_rows(text: str) -> str:
    """The text that `fold_rows` was given."""
    if FORM_END not in text:
        return text
    out: list[str] = []
    form: list[str] = []
    left = 0
    for line in text.split("\n"):
        if left:
            left -= 1
            values = line.split(" ", len(form) - 2)
            values += [""] * (len(form) - 1 - len(values))
            out.append(form[0] + "".join(value + part for value, part in zip(values, form[1:], strict=True)))
            continue
        found = _FORM_LINE.fullmatch(line)
        if found is None or _HOLE not in found[2]:
            out.append(line)
        else:
            left, form = int(found[1]), found[2].split(_HOLE)
    return "\n".join(out)


def _groups(starts: Sequence[str]) -> list[tuple[int, int]]:
    """Stretches of enough lines that begin alike."""
    found: list[tuple[int, int]] = []
    begin = 0
    for index in range(1, len(starts) + 1):
        if index == len(starts) or starts[index] != starts[begin]:
            if index - begin >= _MIN_LINES and starts[begin]:
                found.append((begin, index))
            begin = index
    return found


def _found(lines: Sequence[str], starts: Sequence[str]) -> list[tuple[int, int, list[str]]]:
    """The runs worth folding, in order: where each begins and ends, and what stands in its place."""
    found: list[tuple[int, int, list[str]]] = []
    for begin, end in _groups(starts):
        group = lines[begin:end]
        fields = [line.split(" ", _FIELDS) for line in group]
        free = at = 0
        while at + _MIN_LINES <= len(group):
            if not _alike(fields[at], fields[at + _MIN_LINES - 1]):
                at += _STRIDE
                continue
            first = at
            while first > max(free, at - _STRIDE + 1) and _alike(fields[first - 1], fields[at]):
                first -= 1
            run = _run(fields, group, first)
            rows = _rows(fields, run) if run else None
            if run is None or rows is None:
                at += _STRIDE
                continue
            found.append((begin + run.start, begin + run.stop, rows))
            free = at = run.stop
    return found


def _run(fields: Sequence[list[str]], lines: Sequence[str], start: int) -> _Run | None:
    """The run from a line on that spares most; None where none spares enough."""
    led = _led(lines, start)
    whole, beginnings = _grown(fields, lines, start, rest=False), _grown(fields, lines, start, rest=True)
    best = max(whole, beginnings, key=lambda run: run.spared if run else 0)
    if led and led.spared >= _LED_WORTH * (best.spared if best else 0):
        best = led
    return best if best and best.spared >= _MIN_SPARED else None


def _led(lines: Sequence[str], start: int) -> _Run | None:
    """The best run from a line on of lines that begin alike."""
    first = lines[start]
    lead = len(first)
    best: _Run | None = None
    for index in range(start + 1, len(lines)):
        line = lines[index]
        if not line.startswith(first[:lead]):
            lead = _at_border(first, _common(first[:lead], line))
            while lead and first[lead - 1] == " ":
                lead -= 1
            if lead < _MIN_SHARED:
                break
        spared = (index - start) * lead - _FORM_COST
        if index - start >= _MIN_LINES - 1 and spared > (best.spared if best else 0):
            best = _Run(start, index + 1, (), True, spared, lead)
    return best


def _alike(one: list[str], other: list[str]) -> bool:
    """Whether two lines may share enough: a quick look that turns away nothing but lines that don't."""
    shared = possible = 0
    differ: list[tuple[str, str]] = []
    for mine, its in zip(one, other, strict=False):
        if mine == its:
            shared += len(mine) + 1
        else:
            differ.append((mine, its))
            possible += min(len(mine), len(its))
    for mine, its in differ:
        if shared >= _MIN_SHARED or shared + possible < _MIN_SHARED:
            break
        possible -= min(len(mine), len(its))
        shared += _common(mine, its) + _common(mine[::-1], its[::-1])
    return shared >= _MIN_SHARED


def _grown(fields: Sequence[list[str]], lines: Sequence[str], start: int, *, rest: bool) -> _Run | None:
    """The best run from a line on, of whole lines with as many fields each, or of beginnings before a `rest`."""
    first = fields[start]
    spans: list[tuple[int, int] | None] = [None] * (len(first) - 1 if rest else len(first))
    best: _Run | None = None
    settled = 0
    index, stop = start + 1, len(fields)
    while index < stop:
        line = fields[index]
        if rest:
            del spans[len(line) - 1 :]
        elif len(line) != len(first):
            break
        before, spans = spans, _narrowed(spans, first, line, rest=rest)
        settled = settled + 1 if spans == before else 0
        shared = sum((len(first[at]) if span is None else span[0] + span[1]) + 1 for at, span in enumerate(spans))
        if shared < _MIN_SHARED:
            break
        index += 1
        if settled >= _SETTLED:  # from here on a pattern knows faster what fits
            fits = _pattern(first, spans, rest=rest).fullmatch
            while index < stop and fits(lines[index]):
                index += 1
            settled = 0
        spared = (index - start - 1) * shared - _FORM_COST
        if index - start >= _MIN_LINES and spared > (best.spared if best else 0):
            best = _Run(start, index, tuple(spans), rest, spared)
    return best


def _pattern(first: list[str], spans: Sequence[tuple[int, int] | None], *, rest: bool) -> re.Pattern[str]:
    parts = [
        re.escape(first[at])
        if span is None
        else f"{re.escape(first[at][: span[0]])}[^ ]*{re.escape(first[at][len(first[at]) - span[1] :])}"
        for at, span in enumerate(spans)
    ]
    return re.compile(" ".join(parts) + (" .*" if rest else ""), re.DOTALL)


def _narrowed(
    spans: list[tuple[int, int] | None], first: list[str], line: list[str], *, rest: bool
) -> list[tuple[int, int] | None]:
    """What is still shared when one more line is taken in.

    Before a rest, the fields end where two share nothing, and the rest keeps its indentation.
    """
    found: list[tuple[int, int] | None] = []
    for span, mine, other in zip(spans, first, line, strict=False):
        if span is None and mine == other:
            found.append(None)
            continue
        before, after = span or (len(mine), len(mine))
        before = _at_border(mine, min(before, _common(mine, other)))
        after = min(after, _common(mine[::-1], other[::-1]))
        after = min(_at_border(mine[::-1], after), min(len(mine), len(other)) - before)
        if rest and not before and not after and found and found[-1] == (0, 0):
            return found[:-1]
        found.append((before, max(0, after)))
    while rest and found and (found[-1] == (0, 0) or not first[len(found) - 1]):
        found.pop()
    return found


def _common(one: str, other: str) -> int:
    """Length of the common beginning."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while low < high - 1:
        middle = (low + high) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle
    return low


def _at_border(text: str, length: int) -> int:
    """`length`, or less so that no word or number is split."""
    while 0 < length < len(text) and text[length - 1].isalnum():
        length -= 1
    return length


def _rows(fields: Sequence[list[str]], run: _Run) -> list[str] | None:
    """The form's line and the rows; None where the form could not be read back, or rows would win too little."""
    first = fields[run.start]
    if run.lead:
        shape = " ".join(first)[: run.lead] + _HOLE
        rows = [" ".join(line)[run.lead :] for line in fields[run.start : run.stop]]
        return _worth(shape, 1, rows, run)
    form: list[str] = []
    holes: list[tuple[int, int, int]] = []
    for at, span in enumerate(run.spans):
        if span is None:
            form.append(first[at])
        else:
            before, after = span
            form.append(first[at][:before] + _HOLE + first[at][len(first[at]) - after :])
            holes.append((at, before, after))
    if run.rest:
        form.append(_HOLE)
    rows = []
    for line in fields[run.start : run.stop]:
        values = [line[at][before : len(line[at]) - after] for at, before, after in holes]
        if run.rest:
            values.append(" ".join(line[len(run.spans) :]))
        rows.append(" ".join(values))
    return _worth(" ".join(form), len(holes) + run.rest, rows, run)


def _worth(shape: str, holes: int, rows: list[str], run: _Run) -> list[str] | None:
    """The rows under their form's line, where that can be read back and wins enough."""
    if not any(rows) or shape.count(_HOLE) != holes:
        return None
    head = f'[{len(rows)} lines of the form "{shape}"; their {_HOLE} are:]'
    size = sum(map(len, rows)) + run.spared
    gain = len(rows) * (tokens(shape) - 2 * holes) - tokens(head)
    return [head, *rows] if gain >= _LEAST_GAIN * size / 4 else None
