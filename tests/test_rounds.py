"""Safe cuts and rounds, judged by the provider's own rule on any conversation, whole or broken."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.message import Facts, Messages
from gateway.rounds import pairs_whole, recent_start, round_starts, safe_cuts
from gateway.tokens import fast
from tests.support.builders import Message, assistant, check_pairs, conversations, system, tool, tool_call, user

reader = Messages(fast.message_tokens)


def facts_of(messages: list[Message]) -> list[Facts]:
    """As the gateway knows them."""
    return [reader.read(orjson.dumps(message)).facts for message in messages]


@settings(max_examples=150)
@given(conversations())
def test_whole_conversations_are_whole(messages: list[Message]) -> None:
    assert check_pairs(messages) == []
    assert pairs_whole(facts_of(messages))


@settings(max_examples=150)
@given(conversations(), st.data())
def test_a_cut_is_safe_exactly_where_both_sides_are_whole(messages: list[Message], data: st.DataObject) -> None:
    safe = safe_cuts(facts_of(messages))
    assert len(safe) == len(messages)
    for index, here in enumerate(safe):
        assert here == (not check_pairs(messages[:index]) and not check_pairs(messages[index:]))


@settings(max_examples=150)
@given(conversations(), st.data())
def test_what_is_broken_is_seen(messages: list[Message], data: st.DataObject) -> None:
    broken = [*messages]
    change = data.draw(st.sampled_from(["drop", "swap", "twice"]))
    at = data.draw(st.integers(0, len(broken) - 1))
    if change == "drop":
        del broken[at]
    elif change == "twice":
        broken.insert(at, broken[at])
    else:
        to = data.draw(st.integers(0, len(broken) - 1))
        broken[at], broken[to] = broken[to], broken[at]
    assert pairs_whole(facts_of(broken)) == (check_pairs(broken) == [])


@settings(max_examples=100)
@given(conversations(), st.integers(0, 6))
def test_rounds_begin_outside_of_pairs(messages: list[Message], rounds: int) -> None:
    facts = facts_of(messages)
    safe = safe_cuts(facts)
    starts = round_starts(facts)
    assert all(safe[index] for index in starts)
    assert starts == sorted(set(starts))
    recent = recent_start(facts, rounds)
    assert sum(1 for index in starts if index >= recent) == (len(starts) if recent == 0 else rounds)


def test_an_agent_alone_makes_a_round_of_each_step() -> None:
    steps: list[Message] = []
    for number in range(4):
        steps += [assistant(None, tool_call(f"c{number}")), tool(f"c{number}", "ok")]
    facts = facts_of([system("s"), user("task"), *steps])
    # The user's message with the first step, then one round for each of the other three.
    assert round_starts(facts) == [1, 4, 6, 8]
    assert recent_start(facts, 3) == 4
    assert recent_start(facts, 4) == 0
    assert recent_start(facts, 0) == 10


def test_two_user_messages_in_a_row_are_one_round() -> None:
    facts = facts_of([user("a"), user("b"), assistant("c"), user("d")])
    assert round_starts(facts) == [0, 3]


def test_legacy_functions_need_no_ids() -> None:
    call: dict[str, Any] = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    assert pairs_whole(facts_of([user("a"), call, {"role": "function", "name": "f", "content": "1"}, user("b")]))


def test_the_same_id_in_two_rounds_is_two_pairs() -> None:
    round_ = [assistant(None, tool_call("c")), tool("c", "ok")]
    facts = facts_of([user("a"), *round_, *round_])
    assert pairs_whole(facts)
    assert safe_cuts(facts) == [True, True, False, True, False]
