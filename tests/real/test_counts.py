"""The gateway's counts come to the server's `usage`: Gemma's tokenizer is none that the gateway has."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from tests.real.asking import ask
from tests.real.conftest import CONTEXT, Clients, Front
from tests.support.builders import Message, assistant, system, tool, tool_call, user
from tests.tokens.corpora import corpora

pytestmark = pytest.mark.timeout(1_800)

CONVERSATIONS = 6
LEARNING = 4
"""Of the conversations: those that the gateway learns from before the others are judged."""
ROUNDS = 3
SHARES = {"Chinese": 80, "code": 850, "English prose": 250}
"""Characters of each kind of text in a round, on the average: an agent at work on a repository."""
CLOSE = 0.03
"""The most that the counts of a calibrated model may be off, as a mean; a single one may be off by twice as much."""


def conversations(data: Path, seed: int) -> Iterator[list[list[Message]]]:
    """Conversations, each of other texts, as the requests they grow through."""
    state = random.Random(seed)
    found = corpora(data)
    kinds = {kind: "\n".join(found[kind]) for kind in SHARES}

    def piece(kind: str) -> str:
        length = state.randint(SHARES[kind] // 2, SHARES[kind] * 3 // 2)
        start = state.randrange(len(kinds[kind]) - length)
        return kinds[kind][start : start + length]

    while True:
        messages, requests = [system("You are a careful engineer.")], []
        for number in range(ROUNDS):
            call = tool_call(f"call_{number}", "read_file", f'{{"path": "src/part_{number}.py"}}')
            messages = [*messages, user(piece("Chinese")), assistant(None, call), tool(f"call_{number}", piece("code"))]
            requests.append(messages)
            messages = [*messages, assistant(piece("English prose"))]
        yield requests


def test_counts_come_to_the_servers(
    front: Front, clients: Clients, shared_data: Path, note: Callable[[str], None]
) -> None:
    client = clients(front(models={"*": {"window": CONTEXT}}, memory={"enabled": False}).url)
    note("conversations of other texts each: counted by the gateway before the reply, told by the server after it")
    errors = []
    for number, requests in enumerate(islice(conversations(shared_data, seed=3), CONVERSATIONS)):
        for messages in requests:
            told = ask(client, messages, max_tokens=1)
            assert told.after is not None
            assert told.actions == {}
            errors.append(told.after / told.prompt - 1)
            note(f"  conversation {number + 1}: {told.after:5} {told.prompt:5} {errors[-1]:+.1%}")
    judged = [abs(error) for error in errors[LEARNING * ROUNDS :]]
    mean = sum(judged) / len(judged)
    note(f"  first {errors[0]:+.1%}; of the last {len(judged)} by size: mean {mean:.1%}, most {max(judged):.1%}")
    assert abs(errors[0]) > CLOSE, "there is something to learn"
    assert mean <= CLOSE
    assert max(judged) <= 2 * CLOSE


def test_what_was_learnt_outlives_the_gateway(front: Front, clients: Clients, shared_data: Path) -> None:
    gateway = front(models={"*": {"window": CONTEXT}}, memory={"enabled": False})
    client = clients(gateway.url)
    *_, body = next(conversations(shared_data, seed=4))
    first = ask(client, body, max_tokens=1)
    gateway.stop()
    gateway.start()
    again = ask(client, body, max_tokens=1)
    assert first.after is not None
    assert again.after is not None
    assert abs(again.after / again.prompt - 1) < abs(first.after / first.prompt - 1)
