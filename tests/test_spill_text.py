"""Reading back parts of a kept output: ranges by hand, searches against Python's own `re`."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import BadRequest
from gateway.spill_text import GREP_BYTES, GREP_S, select

TEXT = "one\ntwo\nthree\nfour\nfive\n"


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (None, TEXT),
        ("1", "one\n"),
        ("5", "five\n"),
        ("2-3", "two\nthree\n"),
        ("4-", "four\nfive\n"),
        ("1-5", TEXT),
        ("4-99", "four\nfive\n"),
        ("6", ""),
        ("6-9", ""),
    ],
)
def test_ranges_count_from_one_and_include_both_ends(lines: str | None, wanted: str) -> None:
    assert select(TEXT, lines).text == wanted


def test_an_unended_last_line_stays_so() -> None:
    assert select("a\nb", "2").text == "b"
    assert select("a\nb", "1").text == "a\n"
    assert select("a\nb").lines == 2
    assert select("a\nb\n").lines == 2


def test_a_range_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(BadRequest):
        select(TEXT, "3-2")


def test_a_carriage_return_or_form_feed_is_no_line_end() -> None:
    assert select("a\rb\x0cc\u2028d\ne", "1").text == "a\rb\x0cc\u2028d\n"


@given(st.lists(st.text(st.characters(blacklist_characters="\n", blacklist_categories=["Cs"]))), st.data())
def test_a_range_is_the_slice_of_lines(lines: list[str], data: st.DataObject) -> None:
    text = "".join(f"{line}\n" for line in lines)
    first = data.draw(st.integers(1, len(lines) + 2))
    last = data.draw(st.integers(first, len(lines) + 4))
    assert select(text, f"{first}-{last}").text == "".join(f"{line}\n" for line in lines[first - 1 : last])


def test_grep_names_the_lines_of_the_whole_text() -> None:
    found = select(TEXT, None, "^t")
    assert (found.text, found.how, found.lines, found.shown) == ("2:two\n3:three\n", "regex", 5, 2)
    assert select(TEXT, "3-5", "e$").text == "3:three\n5:five\n"
    assert select(TEXT, None, "nothing").text == ""


@pytest.mark.parametrize("pattern", ["f(", "[", "*x", "a{2,1}", "(?P<n>"])
def test_what_is_no_regular_expression_is_looked_for_as_it_stands(pattern: str) -> None:
    with pytest.raises(re.error):
        re.compile(pattern)
    text = f"call {pattern} here\nnothing\n"
    found = select(text, None, pattern)
    assert (found.text, found.how) == (f"1:call {pattern} here\n", "literal")


def test_a_pattern_that_never_ends_is_given_up() -> None:
    text = "a" * 5_000 + "!\n(a|aa)+$ stands here\n"
    started = time.monotonic()
    found = select(text, None, "(a|aa)+$")
    waited = time.monotonic() - started
    assert (found.text, found.how) == ("2:(a|aa)+$ stands here\n", "literal")
    assert waited < 20 * GREP_S  # it ended, on any machine; by itself it would take longer than the universe


def test_a_search_gives_back_no_more_than_its_limit_and_says_so() -> None:
    count = 3 * GREP_BYTES // 1_000
    text = "".join(f"error {number:06d} {'x' * 986}\n" for number in range(count))
    found = select(text, None, "error")
    assert len(found.text.encode()) <= GREP_BYTES
    assert found.shown + found.left_out == count
    assert found.shown > 0
    assert found.text.splitlines()[0].startswith("1:error 000000 ")
