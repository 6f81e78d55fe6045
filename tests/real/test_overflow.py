"""The server's own overflow error: one refusal, one smaller request that is answered, and a lesson for the next."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.real.asking import ask
from tests.real.conftest import CONTEXT, Clients, Front
from tests.real.llama_server import LlamaServer
from tests.support.agent import source_text
from tests.support.builders import Message, assistant, system, tool, tool_call, user

pytestmark = pytest.mark.timeout(1_800)

BELIEVED = 32_768
"""Tokens of window that the configuration claims for the server."""
RULES = {"compaction": {"enabled": False}}
WRONG = {"models": {"*": {"window": BELIEVED}}, **RULES}


def long_history(seed: int, rounds: int = 24) -> list[Message]:
    """Tool rounds that come to about one and a half of the server's windows."""
    state = random.Random(seed)
    messages = [system("You are a careful engineer."), user("Port the ledger importer to the new schema.")]
    for number in range(rounds):
        messages.append(assistant(None, tool_call(f"call_{number}", "read_file", '{"path":"a.py"}')))
        messages.append(tool(f"call_{number}", source_text(state, 5)))
    return messages


@pytest.mark.parametrize("sections", [{}, RULES, WRONG], ids=["unknown", "rules", "wrong"])
def test_one_refusal_one_retry_and_a_lesson(
    llama: LlamaServer, front: Front, clients: Clients, note: Callable[[str], None], sections: dict[str, Any]
) -> None:
    client = clients(front(memory={"enabled": False}, **sections).url)
    llama.settled()
    refused, messages = llama.refused(), long_history(1)
    told = ask(client, messages)
    llama.settled()
    news = llama.refused()[len(refused) :]
    assert len(news) == 1, "one request was too long, and the next was answered"
    assert news[0] > CONTEXT
    assert told.prompt + told.completion <= CONTEXT
    assert told.actions["compact"] == "reactive"
    later = ask(client, [*messages, assistant("Half of it is done."), user("Go on with the rest.")])
    other = ask(client, long_history(2, rounds=20))
    llama.settled()
    assert llama.refused()[len(refused) :] == news, "the window was learnt: neither was refused"
    assert other.prompt <= CONTEXT
    believed = f"window configured as {BELIEVED}" if "models" in sections else "window unknown"
    how = "without a summariser" if sections else "with one"
    note(
        f"overflow ({believed}, {how}): {news[0]} tokens refused by a window "
        f"of {CONTEXT}, answered with {told.prompt}; next turn {later.prompt}, another conversation {other.prompt}"
    )
