"""What holds for any conversation that goes through the whole pipeline, turn by turn, at any window.

The judges are independent of the gateway: pairs by `check_pairs`, bytes by comparison with what the client wrote, and
canaries that the scripted summariser repeats, so that a summary can be traced to the messages it was made from.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.body import ChatBody
from tests.support.builders import Message, assistant, check_pairs, conversations, system, tool, tool_call, user
from tests.support.engine import WINDOWS, Engine, Sent

SMALL = [window for window in WINDOWS if 500 < window < 10_000]
AT_FIRST_SIGHT = {"fold", "spill", "repeat"}
"""Stages that act whatever the limits say, on what the upstream has not seen."""
keys = (f"key-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One gateway with memory off; each example comes under a key of its own."""
    made = Engine(tmp_path_factory.mktemp("engine"), memory={"enabled": False})
    yield made
    made.close()


def turns(messages: list[Message]) -> list[list[Message]]:
    """The requests that an agent makes on its way through a conversation: one before each assistant message."""
    ends = [index for index, message in enumerate(messages) if message["role"] == "assistant" and index > 0]
    return [messages[:end] for end in [*ends, len(messages)]]


def raw_messages(body: bytes) -> list[bytes]:
    """Each message as it stands in the body."""
    return ChatBody.parse(body).messages


def verbatim(messages: list[Message]) -> list[Message]:
    """What must stay word for word: instructions, the first and the newest user message, the newest user image."""
    users = [message for message in messages if message["role"] == "user"]
    images = [
        message
        for message in users
        if isinstance(message["content"], list) and any(part["type"] == "image_url" for part in message["content"])
    ]
    kept = [message for message in messages if message["role"] in ("system", "developer")]
    return [*kept, *users[:1], *users[-1:], *images[-1:]]


def assert_sound(sent: Sent, messages: list[Message]) -> None:
    """One request: whole, nothing lost that must stay, unchanged where nothing was done, no longer than it came."""
    assert sent.turn.failures == []
    assert check_pairs(sent.messages) == []
    if "cut" not in sent.turn.actions:
        for message in verbatim(messages):
            assert message in sent.messages
    if not sent.turn.actions:
        assert sent.out == sent.client
    assert sent.turn.tokens_after <= sent.turn.tokens_before
    assert len(sent.out) <= len(sent.client)
    given, made = json.loads(sent.client), json.loads(sent.out)
    assert {**given, "messages": 0} == {**made, "messages": 0}
    assert list(given) == list(made)


extra_fields = st.fixed_dictionaries(
    {}, optional={"temperature": st.floats(0, 2), "x_unknown": st.just({"messages": [1]}), "max_tokens": st.just(50)}
)


@settings(max_examples=80)
@given(conversations(), st.sampled_from(SMALL), extra_fields)
def test_any_conversation_stays_sound_and_sticky(
    engine: Engine, messages: list[Message], window: int, fields: dict[str, Any]
) -> None:
    key = next(keys)
    before: list[bytes] = []
    for request in turns(messages):
        sent = engine.send(request, window=window, key=key, **fields)
        assert_sound(sent, request)
        again = engine.send(request, window=window, key=key, **fields)
        if again.out != sent.out:
            # Only a rewrite that had to wait: for a summary begun ahead of need, or until it had been paid for.
            assert again.turn.rewritten
            assert_sound(again, request)
        if not sent.turn.rewritten:
            assert raw_messages(sent.out)[: len(before)] == before
        before = raw_messages(again.out)


@settings(max_examples=60)
@given(conversations())
def test_under_the_limits_only_what_is_new_is_touched(engine: Engine, messages: list[Message]) -> None:
    sent = engine.send(messages, window=128_000, key=next(keys))
    assert set(sent.turn.actions) <= AT_FIRST_SIGHT
    given, made = raw_messages(sent.client), raw_messages(sent.out)
    assert len(given) == len(made)
    for before, after, message in zip(given, made, messages, strict=True):
        assert before == after or message["role"] == "tool"


@settings(max_examples=60)
@given(conversations(), st.sampled_from(SMALL), st.data())
def test_broken_pairs_pass_as_they_came(
    engine: Engine, messages: list[Message], window: int, data: st.DataObject
) -> None:
    tools = [index for index, message in enumerate(messages) if message["role"] in ("tool", "assistant")]
    if not tools:
        return
    gone = data.draw(st.sampled_from(tools))
    broken = messages[:gone] + messages[gone + 1 :]
    if not check_pairs(broken):
        return
    small = engine.send(broken, window=window, key=next(keys))
    assert small.turn.failures == []
    assert set(check_problems(small.messages)) <= set(check_problems(broken))
    large = engine.send(broken, window=128_000, key=next(keys))
    assert [message.get("tool_call_id") for message in large.messages] == [m.get("tool_call_id") for m in broken]
    if not large.turn.actions:
        assert large.out == large.client


def check_problems(messages: list[Message]) -> list[str]:
    """What is wrong with the pairs, without the places, which a cut moves."""
    return [problem.split(": ", 1)[-1] for problem in check_pairs(messages)]


def agent_session(rounds: int, seed: int, mark: str = "", start: int = 0) -> list[Message]:
    """A task and tool rounds that never repeat; `mark` is put into each result."""
    state = random.Random(seed)
    messages = [system("You are careful."), user(f"Refactor the module {seed}.")] if start == 0 else []
    for number in range(start, start + rounds):
        calls = [f"c{seed}_{number}_{index}" for index in range(state.choice([1, 1, 2]))]
        arguments = [json.dumps({"path": f"src/m{state.randrange(1000)}.py"}) for _ in calls]
        messages.append(assistant(None, *[tool_call(c, "read_file", a) for c, a in zip(calls, arguments, strict=True)]))
        for call in calls:
            words = " ".join(f"value_{state.randrange(10**6)}" for _ in range(state.randrange(10, 120)))
            messages.append(tool(call, f"{mark} {words}".strip()))
    return messages


def test_rewriting_turns_are_rare_and_every_turn_fits(engine: Engine) -> None:
    for window in (3_200, 8_000):
        messages = agent_session(120, seed=window)
        key = next(keys)
        requests = turns(messages)
        sent = [engine.send(request, window=window, key=key) for request in requests]
        assert all(one.turn.tokens_after <= one.turn.limits.hard for one in sent)
        before: list[bytes] = []
        stable = 0
        for one in sent:
            out = raw_messages(one.out)
            stable += out[: len(before)] == before
            before = out
        assert stable == sum(not one.turn.rewritten for one in sent)
        # 0.70 to 0.50 of the window makes room for 0.2 × 3,200 tokens or more: at least two rounds of 65 words a result
        assert stable >= 0.66 * len(sent)


def test_the_same_bytes_go_out_after_a_restart(tmp_path: Path) -> None:
    engine = Engine(tmp_path, memory={"enabled": False})
    sessions = [(agent_session(25, seed=seed), window) for seed, window in enumerate((900, 1_700, 3_200, 3_200))]
    sessions += [(agent_session(30, seed=9), 1_700)]
    last: list[bytes] = []
    for number, (messages, window) in enumerate(sessions):
        last.append([engine.send(r, window=window, key=f"k{number}") for r in turns(messages)][-1].out)
    engine = engine.restarted()
    try:
        for number, (messages, window) in enumerate(sessions):
            assert engine.send(messages, window=window, key=f"k{number}").out == last[number]
            # And though the very first request of the same conversation comes once more in between.
        engine = engine.restarted()
        for number, (messages, window) in enumerate(sessions):
            engine.send(turns(messages)[0], window=window, key=f"k{number}")
            assert engine.send(messages, window=window, key=f"k{number}").out == last[number]
    finally:
        engine.close()


def test_a_summary_never_reaches_another_tenant(engine: Engine) -> None:
    messages = agent_session(20, seed=1, mark="canary-a1")
    other = [*messages[:2], *agent_session(20, seed=2, mark="canary-b2")[2:]]
    mine = [engine.send(request, window=900, key="owner-a") for request in turns(messages)]
    assert any("compact" in sent.turn.actions for sent in mine)
    for request in turns(other):
        assert b"canary-a1" not in engine.send(request, window=900, key="owner-a").out
    asked = len(engine.upstreams.asked)
    first = engine.send(messages, window=900, key="owner-b")
    assert "reused" not in first.turn.actions.values()
    assert len(engine.upstreams.asked) > asked
    named = engine.send(messages, window=900, key="owner-a", headers=[(b"x-memory-user", b"someone else")])
    assert "reused" not in named.turn.actions.values()


@settings(max_examples=40)
@given(st.integers(2, 18), st.integers(0, 10_000), st.sampled_from([900, 1_700]), st.booleans())
@example(fork=9, seed=3, window=900, same_session=True)
def test_a_fork_never_gets_the_other_branch(
    engine: Engine, fork: int, seed: int, window: int, same_session: bool
) -> None:
    trunk = agent_session(fork, seed=seed, mark="canary-0")
    left = trunk + agent_session(12, seed=seed, mark="canary-1", start=fork)
    right = trunk + agent_session(12, seed=seed + 1, mark="canary-2", start=fork)
    key = next(keys)
    headers = [(b"x-session-id", b"one session")] if same_session else []
    for request in turns(left):
        engine.send(request, window=window, key=key, headers=headers)
    for request in turns(right)[fork:]:
        sent = engine.send(request, window=window, key=key, headers=headers)
        assert b"canary-1" not in sent.out
        assert check_pairs(sent.messages) == []


@settings(max_examples=40)
@given(st.data(), st.integers(0, 10_000), st.sampled_from([900, 1_700]))
def test_an_edited_history_is_never_given_what_was_edited(
    engine: Engine, data: st.DataObject, seed: int, window: int
) -> None:
    messages = agent_session(18, seed=seed)
    at = data.draw(st.sampled_from([i for i, message in enumerate(messages) if message["role"] == "tool"]))
    old = [*messages]
    old[at] = {**old[at], "content": "canary-dead " + old[at]["content"]}
    key = next(keys)
    for request in turns(old):
        engine.send(request, window=window, key=key)
    sent = engine.send(messages, window=window, key=key)
    assert b"canary-dead" not in sent.out
    assert check_pairs(sent.messages) == []


@settings(max_examples=40)
@given(st.data(), st.integers(0, 10_000), st.sampled_from([900, 1_700, 3_200]))
def test_kept_spans_outlive_every_stage_but_a_cut(engine: Engine, data: st.DataObject, seed: int, window: int) -> None:
    messages = agent_session(16, seed=seed)
    tools = [index for index, message in enumerate(messages) if message["role"] == "tool"]
    kept = {at: f"<keep>exact {at} of {seed}</keep>" for at in data.draw(st.sets(st.sampled_from(tools), max_size=4))}
    for at, span in kept.items():
        words = messages[at]["content"].split(" ")
        place = data.draw(st.integers(0, len(words)))
        messages[at] = {**messages[at], "content": " ".join([*words[:place], span, *words[place:]])}
    key = next(keys)
    for request in turns(messages):
        sent = engine.send(request, window=window, key=key)
        contents = {message.get("tool_call_id"): message["content"] for message in sent.messages}
        for at, span in kept.items():
            if messages[at]["tool_call_id"] in contents:
                assert span in contents[messages[at]["tool_call_id"]]


def test_a_summary_is_asked_for_once_however_many_ask(engine: Engine) -> None:
    messages = agent_session(30, seed=77)
    key = next(keys)
    raw = json.dumps({"model": "win-900", "messages": messages}).encode()
    asked = len(engine.upstreams.asked)
    one = engine.send(messages, window=900, key=next(keys))
    alone = len(engine.upstreams.asked) - asked
    assert one.turn.actions["compact"] == "new"

    async def together() -> list[Sent]:
        return await asyncio.gather(*(engine.pass_through(raw, key=key, settle=False) for _ in range(10)))

    sent = engine.run(together())
    assert len({id(one.turn.conversation) for one in sent}) == 1
    assert len({one.out for one in sent}) == 1
    assert len(engine.upstreams.asked) - asked == 2 * alone
