from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.shrink.fold import fold
from gateway.shrink.repeats import against_earlier, unfold_repeats
from tests.shrink.data import tool_results

FILE = "\n".join(f"    value_{n} = compute_{n * 7 % 13}(row, {n})  # step" for n in range(80))


def _numbered(text: str, first: int) -> str:
    return "\n".join(f"{first + at}:{line}" for at, line in enumerate(text.split("\n")))


def test_the_same_result_again() -> None:
    assert against_earlier(FILE, [("open(a.py)", FILE)]) == "[the same as open(a.py) above]"


def test_an_overlapping_window() -> None:
    lines = FILE.split("\n")
    window = "\n".join(["[File a.py]", *lines[40:70], "[end]"])
    short = against_earlier(window, [("open(a.py)", FILE)])
    assert short == "[File a.py]\n[30 lines: as lines 41-70 of open(a.py) above]\n[end]"
    assert unfold_repeats(short, [("open(a.py)", FILE)]) == window


def test_a_window_whose_numbers_moved() -> None:
    earlier = [("open(a.py)", "[File]\n" + _numbered(FILE, 1))]
    again = "File updated.\n" + _numbered(FILE, 3) + "\nbash-$"
    short = against_earlier(again, earlier)
    assert short == "File updated.\n[80 lines: as lines 2-81 of open(a.py) above, numbered 2 higher]\nbash-$"
    assert unfold_repeats(short, earlier) == again


def test_closing_lines_that_every_result_has() -> None:
    end = "(Open file: /srv/project/module/src/handlers/orders.py)\n(Current directory: /srv/project/module)\nbash-$"
    earlier = [("ls", "one\n" + end)]
    assert against_earlier("two\n" + end, earlier) == "two\n[last 3 lines: as in ls above]"


def test_little_in_common_is_left() -> None:
    assert against_earlier("a\nb\nc", [("x", "a\nb\nc")]) is None
    assert against_earlier(FILE, []) is None
    assert against_earlier(FILE, [("x", FILE[::-1])]) is None


def test_pointers_are_never_pointed_at() -> None:
    first = ("first", FILE)
    second_text = "x\n" + FILE + "\nand a new line"
    second = against_earlier(second_text, [first])
    assert second is not None
    third = against_earlier(second_text, [first, ("second", second)])
    assert third is not None
    assert "of first above" in third and "second" not in third
    assert against_earlier(third, [first]) is None


@pytest.mark.parametrize("name", ["swe_agent", "tau_bench_airline"])
def test_recorded_conversations_reverse_exactly(name: str) -> None:
    pointed = 0
    for calls in tool_results(name):
        earlier: list[tuple[str, str]] = []
        for number, (_, _, result) in enumerate(calls):
            text = fold(result)
            short = against_earlier(text, earlier)
            if short is not None:
                pointed += 1
                assert len(short) < len(text)
                assert unfold_repeats(short, earlier) == text
            earlier.append((f"result {number}", short or text))
    assert pointed >= 5


_line = st.sampled_from(
    [f"a line that is long enough to matter, number {n}" for n in range(6)]
    + ["7:seven", "8:eight", "9:nine", "", "[the same as x above]"]
)
_doc = st.lists(_line, max_size=60).map("\n".join)


@settings(max_examples=200)
@given(_doc, st.lists(_doc, max_size=4))
def test_any_pointer_reverses(text: str, before: list[str]) -> None:
    earlier = [(f"r{at}", doc) for at, doc in enumerate(before)]
    short = against_earlier(text, earlier)
    if short is not None:
        assert len(short) < len(text)
        assert unfold_repeats(short, earlier) == text
        assert against_earlier(short, earlier) is None


@pytest.mark.parametrize("text", ["a\n" * 50_000, "\n" * 80_000, "1:x\n" * 40_000, "x" * 1_000_000], ids=range(4))
def test_hostile_input_takes_linear_time(text: str) -> None:
    short = against_earlier(text + "end", [("one", text), ("two", text + "other")])
    assert short is None or len(short) < len(text)
