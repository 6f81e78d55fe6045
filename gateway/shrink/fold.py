"""Tier 0: what a tool result can lose while a reader loses nothing.

Escape sequences and overwritten progress go; a run of equal lines keeps the first and a count, a run that differs only
in times, percentages, step counters or ids the first, a count and the last; lines that share a form become rows
(`linerows`); JSON loses its white space and repeated keys. Every other line stays as it was, indentation and all.
"""

from __future__ import annotations

import re

from gateway.shrink.cost import shorter
from gateway.shrink.jsonrows import fold_json, unfold_json
from gateway.shrink.linerows import fold_rows, has_rows, unfold_rows
from gateway.shrink.terminal import overwrite, strip_escapes

__all__ = ["fold", "unfold_json", "unfold_rows"]

_MAX_PASSES = 6  # each pass shortens the text; two settle anything but built cases
_MIN_RUN = 3
_MIN_COUNTER_RUN = 10  # plain numbers rising by one, with neither a time nor a percentage beside them
_MIN_JSON = 24  # characters; below, no table and hardly any white space can be won
_SHORT_REPEAT = 24  # characters two equal lines must spare before a count is worth its tokens
_MAX_PERIOD = 8  # lines of a repeated block

_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_DIGITS = re.compile(r"\d+")
# What may differ between lines of one run: dates, clock times and epochs, percentages, `3/10`, `step 3 of 10`.
_VOLATILE = re.compile(
    r"\d{4}[-/.]\d\d?[-/.]\d\d?|\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?|\b1\d{9}(?:\d{3}){0,2}\b|\d+(?:\.\d+)?\s?%"
    r"|\b\d+\s?/\s?\d+\b|\b\d+ of \d+\b|第?\s?\d+\s?[页步个条]?\s?[/／共]\s?\d+"
)
# What else may differ where one of those is there too: amounts done and the time they took.
_AMOUNT = re.compile(r"\d+(?:\.\d+)?\s?(?:[kKMGT]i?)?[Bb](?:/s|ps)?\b|\d+(?:\.\d+)?\s?(?:ms|µs|us|s|m|h|it/s)\b")
_PROGRESS = re.compile(r"\d\s?%|\d\s?/\s?\d|\d of \d")
_HASH = re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b")
_WORDS = re.compile(r"[^\W\d_]")


def fold(text: str, *, quotable: bool = False) -> str:
    """`text` with nothing lost and fewer tokens, or `text` itself.

    `quotable`: the text of a file that an agent may have to quote back in an edit; then only escape sequences and
    overwritten progress go. Idempotent, linear, never longer in characters or estimated tokens; raises nothing.
    """
    if not quotable and len(text) >= _MIN_JSON:
        folded = fold_json(text.strip())
        if folded is not None:
            return folded if shorter(folded, text) else text
    if has_rows(text):
        return text
    for _ in range(_MAX_PASSES):
        before = text
        text = _clean(text) if quotable else _fold_lines(_clean(text))
        if text == before:
            break
    return text if quotable else fold_rows(text)


def _clean(text: str) -> str:
    return overwrite(strip_escapes(text))


def _fold_lines(text: str) -> str:
    lines = text.split("\n")
    if "\r" not in text:
        lines = [line.rstrip() for line in lines] if _has_trailing_space(text) else lines
    else:
        lines = [line.rstrip(" \t") if not line.endswith("\r") else line for line in lines]
    if len(lines) < _MIN_RUN:
        return "\n".join(lines)
    return "\n".join(_fold_blocks(_fold_runs(lines, _shapes(lines))))


def _shapes(lines: list[str]) -> list[bytes]:
    """Each line with every number as one 0. On bytes: a translation table over them is ten times faster."""
    data = "\n".join(lines).encode("utf-8", "surrogatepass").translate(_ZEROS)
    while b"00" in data:
        data = data.replace(b"00", b"0")
    return data.split(b"\n")


def _has_trailing_space(text: str) -> bool:
    return " \n" in text or "\t\n" in text or text[-1:].isspace() or "\f\n" in text or "\v\n" in text


def _fold_runs(lines: list[str], shapes: list[bytes]) -> list[str]:
    out: list[str] = []
    total, start = len(lines), 0
    while start < total:
        end = start + 1
        shape = shapes[start]
        while end < total and shapes[end] == shape:
            end += 1
        if end - start == 1:
            end = _hash_run(lines, start)
            if end - start > _MIN_RUN:
                out += [lines[start], _alike(end - start - 2), lines[end - 1]]
            else:
                end = start + 1
                out.append(lines[start])
        else:
            _fold_shape_run(lines[start:end], out)
        start = end
    return out


def _alike(count: int) -> str:
    return f"[… ×{count} alike …]"


def _fold_shape_run(run: list[str], out: list[str]) -> None:
    """Appends to `out` the lines of `run`, all of one shape, with what repeats folded."""
    fixed, least = _fixed_numbers(run[0])
    start = 0
    while start < len(run):
        first = run[start]
        same = start + 1
        while same < len(run) and run[same] == first:
            same += 1
        end = max(same, _counter_run(run, start, fixed, least))
        spared = sum(map(len, run[start + 1 : end])) + end - start - 1
        if end == same and spared > _SHORT_REPEAT:
            out += [first, f"[×{end - start}]"]
        elif end > same and spared - len(run[end - 1]) > 2 * _SHORT_REPEAT:
            out += [first, _alike(end - start - 2), run[end - 1]]
        else:
            out.append(first)
            end = start + 1
        start = end


def _fixed_numbers(line: str) -> tuple[list[int], int]:
    """Which numbers of `line` (by position) may not differ freely in a run, and the least length of such a run."""
    numbers = [found.span() for found in _DIGITS.finditer(line)]
    spans = [found.span() for found in _VOLATILE.finditer(line)]
    least = _MIN_RUN if spans else _MIN_COUNTER_RUN
    if _PROGRESS.search(line):
        spans += [found.span() for found in _AMOUNT.finditer(line)]
    fixed = [at for at, (low, high) in enumerate(numbers) if not any(a <= low and high <= b for a, b in spans)]
    return fixed, least


def _counter_run(run: list[str], start: int, fixed: list[int], least: int) -> int:
    """End of the run from `start` in which the `fixed` numbers stay or rise evenly; `start + 1` where too short."""
    if len(run) - start < least:
        return start + 1
    if not fixed:
        return len(run)
    before = _numbers(run[start], fixed)
    steps = None
    end = start + 1
    while end < len(run):
        now = _numbers(run[end], fixed)
        if now is None or before is None:
            break
        moved = [new - old for new, old in zip(now, before, strict=True)]
        if steps is None:
            steps = moved
        if moved != steps:
            break
        before = now
        end += 1
    return end if end - start >= least else start + 1


def _numbers(line: str, fixed: list[int]) -> list[int] | None:
    found = _DIGITS.findall(line)
    picked = [found[at] for at in fixed if at < len(found)]
    return [int(digits) for digits in picked] if len(picked) == len(fixed) and max(map(len, picked)) < 19 else None


def _hash_run(lines: list[str], start: int) -> int:
    """End of the run from `start` whose lines are equal but for hexadecimal ids beside some words."""
    first = lines[start]
    end = start + 1
    if end >= len(lines) or len(lines[end]) != len(first) or len(first) < 20 or first[-4:] != lines[end][-4:]:
        return end
    bare = _HASH.sub("#", first)
    if bare == first or len(_WORDS.findall(bare)) < 6:
        return end
    while end < len(lines) and len(lines[end]) == len(first) and _HASH.sub("#", lines[end]) == bare:
        end += 1
    return end


def _fold_blocks(lines: list[str]) -> list[str]:
    """Blocks of 2 to 8 lines that follow each other unchanged, as one block and a count."""
    total = len(lines)
    if total < 2 * _MIN_RUN:
        return lines
    out: list[str] = []
    at = 0
    repeats = _repeat_starts(lines)
    while at < total:
        period = repeats.get(at)
        if period is None:
            out.append(lines[at])
            at += 1
            continue
        block = lines[at : at + period]
        count = 1
        while lines[at + count * period : at + (count + 1) * period] == block:
            count += 1
        out += [*block, f"[the {period} lines above ×{count}]"]
        at += count * period
    return out


def _repeat_starts(lines: list[str]) -> dict[int, int]:
    """Where a block of `period` lines is followed by itself, worth a marker: start index → smallest such period."""
    starts: dict[int, int] = {}
    total = len(lines)
    for period in range(_MAX_PERIOD, 1, -1):
        run = 0
        for at, (left, right) in enumerate(zip(lines, lines[period:], strict=False)):
            run = run + 1 if left == right else 0
            if run >= period and run % period == 0:
                start = at - run + 1
                if run > period or start not in starts:
                    block = lines[start : start + period]
                    if sum(map(len, block)) + period > 2 * _SHORT_REPEAT and len(set(block)) > 1:
                        starts[start] = period
    return {at: period for at, period in starts.items() if at + 2 * period <= total}
