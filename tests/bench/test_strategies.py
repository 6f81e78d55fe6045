"""The baselines: what they keep, and that none of them orphans a tool reply."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replay.strategies import drop_oldest, no_gateway, sliding_window, snip_all

Message = dict[str, Any]


def length(message: Message) -> int:
    """A stand-in for tokens that is easy to add up: characters."""
    return len(message["content"])


def conversation(shape: list[tuple[int, int]]) -> list[Message]:
    """System, then for each pair a user message of so many characters and a call with so many replies of ten."""
    messages: list[Message] = [{"role": "system", "content": "s" * 5}]
    for number, (size, calls) in enumerate(shape):
        messages.append({"role": "user", "content": "u" * size})
        ids = [f"{number}-{i}" for i in range(calls)]
        messages.append({"role": "assistant", "content": "a" * 10, "tool_calls": [{"id": i} for i in ids]})
        messages += [{"role": "tool", "content": "t" * 10, "tool_call_id": i} for i in ids]
    return messages


conversations = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 4)), min_size=1, max_size=15).map(conversation)


@settings(max_examples=200)
@given(conversations, st.integers(20, 200))
def test_no_baseline_sends_a_reply_without_its_call(messages: list[Message], window: int) -> None:
    for strategy in (no_gateway, sliding_window, snip_all, drop_oldest(window, length)):
        calls: set[str] = set()
        for message in strategy(messages):
            calls |= {call["id"] for call in message.get("tool_calls", [])}
            if message["role"] == "tool":
                assert message["tool_call_id"] in calls


@settings(max_examples=200)
@given(conversations, st.integers(60, 400))
def test_drop_oldest_fits_its_budget_and_drops_no_more_than_it_must(messages: list[Message], window: int) -> None:
    sent = drop_oldest(window, length)(messages)
    budget = window - window // 10
    assert sent[0]["role"] == "system"
    assert sum(map(length, sent)) <= budget or len(sent) <= 2
    if sum(map(length, messages)) <= budget:
        assert sent == messages


def test_drop_oldest_by_hand() -> None:
    messages = conversation([(30, 0), (30, 0), (10, 0)])  # 5; 30, 10; 30, 10; 10, 10
    # A window of 80 leaves 72: 5 of the system, then from the end 10, 10, 10, 30 make 65; another 10 would make 75.
    assert drop_oldest(80, length)(messages) == [messages[0], *messages[3:]]


def test_the_sliding_window_keeps_twenty_less_the_orphans() -> None:
    messages = conversation([(1, 3)] * 5)  # five times user, assistant, three replies: 25 messages after the system's
    assert sliding_window(messages) == [messages[0], *messages[6:]]
    eleven = conversation([(1, 3)] * 4 + [(1, 1)])  # 23: the twenty start at the second of three replies
    assert sliding_window(eleven) == [eleven[0], *eleven[6:]]


def test_snip_keeps_both_ends_and_says_what_went() -> None:
    long = {"role": "tool", "content": "h" * 1500 + "m" * 600 + "t" * 1000, "tool_call_id": "1"}
    short = {"role": "tool", "content": "x" * 3000, "tool_call_id": "2"}
    said = {"role": "user", "content": "y" * 5000}
    snipped, same, untouched = snip_all([long, short, said])
    assert snipped["content"] == "h" * 1500 + "\n[600 characters snipped]\n" + "t" * 1000
    assert (same, untouched) == (short, said)
