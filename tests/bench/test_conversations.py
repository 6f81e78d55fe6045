"""The conversations: sizes as published with the data, pairs intact, labels in their place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.replay.conversations import LONG, TRACE, Conversation, ToolOutput, build_log_session, chain, load_all
from bench.replay.counting import TokenCounter

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture(scope="module")
def loaded() -> dict[str, Conversation]:
    if not DATA.is_dir():
        pytest.skip("no shared test data beside the repository")
    return {conversation.name: conversation for conversation in load_all(DATA)}


def test_thirty_traces_four_long_sessions_and_the_logs(loaded: dict[str, Conversation]) -> None:
    kinds = [conversation.kind for conversation in loaded.values()]
    assert (kinds.count(TRACE), kinds.count(LONG), len(kinds)) == (30, 4, 35)


@pytest.mark.parametrize(("name", "thousands"), [("tau-all", 82), ("tau-6", 47), ("swe-all", 123), ("swe-6", 64)])
def test_the_long_sessions_weigh_what_was_measured(loaded: dict[str, Conversation], name: str, thousands: int) -> None:
    counter = TokenCounter()
    tokens = sum(counter.message(message).billed for message in loaded[name].messages)
    assert tokens == pytest.approx(thousands * 1000, rel=0.015)


def test_every_call_is_answered_once_and_ids_are_unique(loaded: dict[str, Conversation]) -> None:
    for conversation in loaded.values():
        calls = [c["id"] for m in conversation.messages for c in m.get("tool_calls") or []]
        replies = [m["tool_call_id"] for m in conversation.messages if m["role"] == "tool"]
        assert sorted(calls) == sorted(replies)
        if conversation.kind != TRACE:
            assert len(set(calls)) == len(calls)


def test_the_log_session_holds_every_labelled_line(loaded: dict[str, Conversation]) -> None:
    logs = loaded["build-log"]
    seen = []
    for messages, _ in logs.turns():
        lines = logs.new_labels(messages)
        text = "\n".join(str(message["content"]) for message in messages)
        assert all(line in text for line in lines)
        seen += lines
    assert len(seen) == 62  # as the data's own list has it


def call(identity: str) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [{"id": identity, "function": {"name": "f"}}]}


def reply(identity: str, text: str = "out") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": identity, "content": text}


def test_repeated_ids_are_renamed_with_their_replies() -> None:
    trace = [{"role": "system", "content": "s"}, call("a"), reply("a"), call("a"), reply("a")]
    chained = chain([trace, trace])
    assert [message["role"] for message in chained].count("system") == 1
    assert [m["tool_calls"][0]["id"] for m in chained if "tool_calls" in m] == ["a", "a_2", "a_3", "a_4"]
    assert [m["tool_call_id"] for m in chained if m["role"] == "tool"] == ["a", "a_2", "a_3", "a_4"]
    assert trace[1] == call("a")


def test_outputs_are_spread_and_the_newest_result_has_its_labels() -> None:
    base = [m for number in range(4) for m in (call(str(number)), reply(str(number)))] + [call("last")]
    outputs = [ToolOutput("one", "text of one", []), ToolOutput("two", "an error here", ["error"])]
    session = build_log_session(base, outputs)
    assert [m["content"] for m in session.messages if m["role"] == "tool"] == [
        "text of one",
        "out",
        "an error here",
        "out",
    ]
    assert [session.new_labels(messages) for messages, _ in session.turns() if messages] == [[], [], ["error"], []]
