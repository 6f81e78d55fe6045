"""The bill against sums done by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replay.counting import Counted
from bench.replay.ledger import Request, add_up, bill, common_prefix, extends, geometric_mean


def counted(*ids: int, rendered: int | None = None) -> Counted:
    """A message made of these tokens."""
    array = np.array(ids, dtype=np.uint32)
    return Counted(array.tobytes(), array, len(ids) if rendered is None else rendered)


SYSTEM = counted(*range(100, 110))  # 10 tokens
TASK = counted(*range(200, 220))  # 20 tokens
RESULT = counted(*range(300, 370))  # 70 tokens


def test_the_first_request_is_all_fresh() -> None:
    total = bill([Request([SYSTEM, TASK])])
    assert (total.tokens, total.cached, total.cost, total.cost_uncached) == (30, 0, 30, 30)


def test_a_request_that_grows_pays_a_tenth_for_what_it_had() -> None:
    total = bill([Request([SYSTEM, TASK]), Request([SYSTEM, TASK, RESULT])])
    # 30 fresh, then 70 fresh and 30 cached.
    assert total.cost == pytest.approx(30 + 70 + 3)
    assert total.cost_uncached == 30 + 100
    assert total.cached_share == pytest.approx(30 / 130)
    assert (total.stable, total.stable_share, total.compactions) == (1, 1.0, 0)


def test_a_changed_message_keeps_the_cache_up_to_the_token_that_differs() -> None:
    changed = counted(*range(200, 205), 9, 9)
    total = bill([Request([SYSTEM, TASK, RESULT]), Request([SYSTEM, changed, RESULT])])
    assert total.cached == 10 + 5
    assert (total.stable, total.compactions) == (0, 1)  # 87 tokens after 100: history got shorter


def test_a_changed_prefix_that_grows_is_no_compaction() -> None:
    longer = counted(*range(200, 230))
    total = bill([Request([SYSTEM, TASK]), Request([SYSTEM, longer])])
    assert (total.stable, total.compactions, total.cached) == (0, 0, 30)


def test_a_side_call_is_billed_with_its_output_and_leaves_the_agent_s_cache_alone() -> None:
    instruction = counted(1, 2, 3, 4, 5)
    total = bill(
        [
            Request([SYSTEM, TASK]),
            Request([SYSTEM, TASK, instruction], side=True, output=250),
            Request([SYSTEM, TASK, RESULT]),
        ]
    )
    assert (total.turns, total.side_calls, total.side_tokens, total.side_cached) == (2, 1, 35, 30)
    # Agent: 30 fresh, then 70 fresh and 30 cached. Side: 5 fresh, 30 cached, 250 out at 4 each.
    assert total.cost == pytest.approx(30 + 70 + 3 + 5 + 3 + 1000)
    assert total.cost_uncached == 130 + 35 + 1000
    assert total.stable_share == 1.0


def test_a_side_call_may_share_its_prefix_with_the_side_call_before() -> None:
    prompt = counted(*range(40))
    side = [Request([prompt, TASK], side=True), Request([prompt, RESULT], side=True)]
    assert bill([Request([SYSTEM]), *side]).side_cached == 40


def test_over_and_largest_go_by_what_a_window_holds() -> None:
    total = bill([Request([counted(1, 2, 3, rendered=50)]), Request([counted(1, rendered=101)])])
    assert (total.over(100), total.over(101), total.over(49), total.largest) == (1, 0, 2, 101)


def test_the_total_of_conversations_adds_their_bills() -> None:
    one = bill([Request([SYSTEM, TASK])])
    two = bill([Request([TASK]), Request([TASK, RESULT])])
    total = add_up([one, two])
    assert total.cost == pytest.approx(one.cost + two.cost)
    assert (total.turns, total.tokens, total.stable) == (3, 30 + 20 + 90, 1)


def test_geometric_mean() -> None:
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1.0)
    assert geometric_mean([0.227, 0.378, 0.248, 0.553]) == pytest.approx(0.329, abs=0.001)
    assert math.isnan(geometric_mean([]))


messages = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4).map(lambda ids: counted(*ids)), max_size=6)


@settings(max_examples=200)
@given(messages, messages)
def test_the_common_prefix_never_exceeds_that_of_the_tokens(a: list[Counted], b: list[Counted]) -> None:
    left = [int(token) for one in a for token in one.ids]
    right = [int(token) for one in b for token in one.ids]
    flat = next((i for i, (x, y) in enumerate(zip(left, right, strict=False)) if x != y), min(len(left), len(right)))
    assert common_prefix(a, b) == common_prefix(b, a) <= flat
    if extends(a, b):
        assert common_prefix(a, b) == len(right)
