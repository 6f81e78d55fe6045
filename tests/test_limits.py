"""The limits of a window: hard > soft > low on every window, and the numbers of the common ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.limits import limits_for
from gateway.settings import MIN_WINDOW, LimitSettings

DEFAULTS = LimitSettings()
windows = st.integers(MIN_WINDOW, 2_000_000)
outputs = st.none() | st.integers(1, 3_000_000)


@given(windows, outputs)
def test_the_limits_stand_in_order_on_every_window(window: int, max_output: int | None) -> None:
    limits = limits_for(window, max_output, DEFAULTS)
    assert 0 < limits.low < limits.soft < limits.hard < window
    assert limits.low <= 0.50 * window
    assert limits.soft <= 0.70 * window
    assert 0 < limits.speculative <= limits.hard
    assert 0 < limits.min_gain <= min(2_000, 0.05 * window)


def test_a_large_window_keeps_the_whole_buffer() -> None:
    limits = limits_for(200_000, None, DEFAULTS)
    assert limits.hard == 200_000 - 13_000
    assert limits.soft == 140_000
    assert limits.low == 100_000
    assert limits.min_gain == 2_000


def test_a_small_window_keeps_a_tenth() -> None:
    limits = limits_for(8_192, None, DEFAULTS)
    assert limits.hard == 8_192 - 819
    assert limits.soft == 5_734  # 0.70 × 8,192 = 5,734.4, under 0.90 × 7,373 = 6,635.7
    assert limits.min_gain == 409  # 5 %


def test_what_the_reply_asks_for_is_kept_free() -> None:
    limits = limits_for(128_000, 64_000, DEFAULTS)
    assert limits.hard == 64_000
    assert limits.soft == 57_600  # 0.90 × hard, under 0.70 × window


def test_a_small_reply_does_not_shrink_the_buffer() -> None:
    assert limits_for(200_000, 100, DEFAULTS) == limits_for(200_000, None, DEFAULTS)


@given(windows, outputs, st.integers(1, 2_000_000))
def test_a_smaller_size_named_by_the_upstream_is_obeyed(window: int, max_output: int | None, tokens: int) -> None:
    limits = limits_for(window, max_output, DEFAULTS)
    shrunk = limits.shrunk_to(tokens)
    assert shrunk.hard <= min(max(1, tokens), limits.hard)
    assert 1 <= shrunk.low <= shrunk.soft <= shrunk.hard <= shrunk.window
