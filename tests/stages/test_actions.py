"""What the header says holds for its request; what the metric counts was done on its turn."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest

from tests.support.builders import Message, assistant, system, tool, tool_call, user
from tests.support.engine import Engine
from tests.test_pipeline_properties import agent_session, turns

keys = (f"key-{number}" for number in itertools.count())
FOLDABLE = "\n".join(["Downloading the very same package again and again"] * 60)
WORDS = random.Random(4)
LOG = "\n".join(" ".join(f"{WORDS.randrange(16**6):x}" for _ in range(WORDS.randrange(4, 12))) for _ in range(60))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    made = Engine(tmp_path_factory.mktemp("engine"), memory={"enabled": False})
    yield made
    made.close()


def result(number: int, text: str) -> list[Message]:
    return [assistant(None, tool_call(f"c{number}", "bash", f'{{"n":{number}}}')), tool(f"c{number}", text)]


START = [system("Be brief."), user("Build it.")]


def test_a_conversation_that_grows_counts_each_message_once(engine: Engine) -> None:
    key, messages = next(keys), [*START]
    for number in range(6):
        messages += result(number, f"{number}\n{FOLDABLE}")
        sent = engine.send(messages, key=key)
        assert sum(int(count) for count in sent.turn.actions.values()) == number + 1
        assert sum(sent.turn.news.values()) >= 1
        again = engine.send(messages, key=key)
        assert again.turn.actions == sent.turn.actions
        assert again.turn.news == {}
        assert again.turn.new_actions() == {}


def test_another_last_message_is_not_counted_with_the_one_it_takes_the_place_of(engine: Engine) -> None:
    key, messages = next(keys), [*START, *result(0, FOLDABLE)]
    assert engine.send(messages, key=key).turn.actions == {"fold": 1}
    for number in range(1, 4):
        other = [*messages[:-1], tool("c0", f"attempt {number}\n{FOLDABLE}")]
        assert engine.send(other, key=key).turn.actions == {"fold": 1}
    assert engine.send([*messages[:-1], tool("c0", "short")], key=key).turn.actions == {}


def test_a_repeat_is_counted_as_one_thing(engine: Engine) -> None:
    key, messages = next(keys), [*START, *result(0, LOG)]
    first = engine.send(messages, key=key).turn.actions
    messages += result(1, LOG)
    assert engine.send(messages, key=key).turn.actions == {**first, "repeat": 1}
    assert engine.send([*messages, *result(2, "done")], key=key).turn.actions == {**first, "repeat": 1}


def test_the_same_counts_whether_known_or_new(engine: Engine) -> None:
    """A gateway that takes over what it settled says the same as one that has to work it out from its records."""
    key = next(keys)
    requests = turns(agent_session(30, seed=31))
    told = [engine.send(request, window=3_200, key=key).turn.actions for request in requests]
    assert any("compact" in actions or "microcompact" in actions for actions in told)
    engine.services.prefixes.forget(
        engine.services.gatekeeper.admit([(b"authorization", b"Bearer " + key.encode())], "").tenant
    )
    again = engine.send(requests[-1], window=3_200, key=key).turn
    last = {stage: what for stage, what in told[-1].items() if stage != "compact"}
    assert {stage: what for stage, what in again.actions.items() if stage != "compact"} == last
    assert "reused" not in again.new_actions().values()
