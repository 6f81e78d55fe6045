"""The summariser's bounds: a summary is trimmed at a border, and merges come to an end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.summarise import summary_room, trimmed
from gateway.tokens.fast import text_tokens
from tests.support.builders import texts


@given(texts, st.integers(10, 400))
def test_a_summary_is_no_longer_than_its_room(text: str, room: int) -> None:
    short = trimmed(text, room)
    assert text.startswith(short)
    assert text_tokens(short) <= room or text_tokens(text) <= room
    if text_tokens(text) <= room:
        assert short == text


def test_whole_lines_go_first() -> None:
    text = "Goal: fix the parser.\n" * 3 + "word " * 400
    assert trimmed(text, 60) == ("Goal: fix the parser.\n" * 3).rstrip()


@given(st.integers(256, 2_000_000))
def test_a_summary_has_a_tenth_of_the_window_within_bounds(window: int) -> None:
    room = summary_room(window)
    assert 0 < room <= max(window // 4, 1)
    assert room <= 2_000
    if 3_000 <= window <= 20_000:
        assert room == window // 10
