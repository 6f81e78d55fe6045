"""The last look at the limit: what the stages before left over it is forced into it, pointers and all."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.stages.compact import Compact
from gateway.turn import Turn
from tests.support.builders import Message, assistant, check_pairs, system, tool, tool_call, user
from tests.support.engine import Engine
from tests.test_pipeline_properties import agent_session, turns

keys = (f"key-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    made = Engine(tmp_path_factory.mktemp("engine"), memory={"enabled": False})
    yield made
    made.close()


def lines(state: random.Random, count: int) -> str:
    """Lines that nothing folds."""
    return "\n".join(f"{state.randrange(16**8):x} {state.randrange(16**6):x} line" for _ in range(count))


@st.composite
def sessions(draw: st.DrawFn) -> list[Message]:
    """Rounds with long arguments, and results that come again and again, so that some go out as pointers."""
    state = random.Random(draw(st.integers(0, 2**32)))
    messages, seen = [system("Be careful."), user("Do it.")], [lines(state, 40)]
    for number in range(state.randrange(2, 8)):
        calls = [f"c{number}_{index}" for index in range(state.choice([1, 1, 2, 3]))]
        arguments = [json.dumps({"path": call, "content": lines(state, state.choice([0, 5, 60]))}) for call in calls]
        messages.append(assistant(None, *[tool_call(c, "write", a) for c, a in zip(calls, arguments, strict=True)]))
        for call in calls:
            text = state.choice(seen) if state.random() < 0.6 else lines(state, state.randrange(3, 100))
            seen.append(text)
            messages.append(tool(call, text))
    return messages


@settings(max_examples=40)
@given(sessions(), st.sampled_from([900, 1_700]))
def test_pointers_and_long_arguments_fit(engine: Engine, messages: list[Message], window: int) -> None:
    key = next(keys)
    for request in turns(messages):
        sent = engine.send(request, window=window, key=key)
        assert sent.turn.tokens_after <= sent.turn.limits.hard
        assert sent.turn.failures == []
        assert check_pairs(sent.messages) == []


def test_a_compaction_that_does_nothing_is_made_up_for(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(self: Compact, turn: Turn) -> None:
        return

    monkeypatch.setattr(Compact, "run", nothing)
    key = next(keys)
    before: list[Message] = []
    for request in turns(agent_session(30, seed=41)):
        sent = engine.send(request, window=1_700, key=key)
        assert sent.turn.tokens_after <= sent.turn.limits.hard
        assert check_pairs(sent.messages) == []
        if not sent.turn.rewritten:
            assert sent.messages[: len(before)] == before
        before = sent.messages


def test_a_text_cut_as_the_last_resort_stays_as_it_was_cut(engine: Engine) -> None:
    """One message larger than the window, then the conversation goes on: the same bytes, and no second cut."""
    state, key = random.Random(5), next(keys)
    task = user("Sort these: " + lines(state, 300))
    messages = [system("Be careful."), task]
    first = engine.send(messages, window=1_700, key=key)
    assert first.turn.actions == {"cut": 1}
    assert first.turn.tokens_after <= first.turn.limits.hard
    for number in range(4):
        messages += [assistant(None, tool_call(f"c{number}", "bash")), tool(f"c{number}", f"done {number}")]
        sent = engine.send(messages, window=1_700, key=key)
        assert sent.messages[:2] == first.messages
        assert sent.turn.actions == {"cut": 1}
        assert sent.turn.news == {}


def test_a_cut_text_is_cut_again_where_more_room_is_needed(engine: Engine) -> None:
    state, key = random.Random(6), next(keys)
    messages = [system("Be careful."), user("Sort these: " + lines(state, 300))]
    engine.send(messages, window=1_700, key=key)
    messages += [assistant("What of these?"), user("And these: " + lines(state, 300))]
    sent = engine.send(messages, window=1_700, key=key)
    assert sent.turn.tokens_after <= sent.turn.limits.hard
    assert engine.send(messages, window=1_700, key=key).out == sent.out
