"""The server's prompt cache goes on hitting behind the gateway: while nothing is rewritten, and again after it was.

The server keeps one prompt in its one slot and reads of the next one only what differs, so `cached_tokens` is what two
prompts in a row have in common, as the server's own tokenizer sees it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import pairwise

import openai
import pytest

from tests.real.asking import EDGE, Told, ask
from tests.real.conftest import CONTEXT, Clients, Front
from tests.real.llama_server import LlamaServer
from tests.support.agent import source_text
from tests.support.builders import Message, assistant, function_tool, system, tool, tool_call, user

pytestmark = pytest.mark.timeout(1_800)

TURNS = 18
RESULT_LINES = 5
TOOLS = [function_tool("read_file", path="string"), function_tool("run_tests", target="string")]
HEAD = [
    system("You are a careful engineer. Read before you change anything, and run the tests after each change."),
    user("The ledger importer rounds amounts twice. Find out where, and repair it with a test that shows it."),
]
REWRITES_MOST = 3
"""Turns of the long conversation that may cost the cache: large steps, seldom."""


def turns(result_lines: int, seed: int = 1) -> Iterator[list[Message]]:
    """An agent's growing history, one request after another; each has one more call and its result."""
    state, messages = random.Random(seed), list(HEAD)
    for number in range(TURNS):
        yield messages
        call = tool_call(f"call_{number}", "read_file", f'{{"path": "ledger/part_{number}.py"}}')
        messages = [*messages, assistant(None, call), tool(f"call_{number}", source_text(state, result_lines))]


def grow(client: openai.OpenAI, llama: LlamaServer) -> tuple[list[Told], list[int]]:
    """The conversation until the server, or the history, ends; and the turns before which it wrote a summary."""
    seen: list[Told] = []
    beside: list[int] = []
    ended = len(llama.settled())
    for messages in turns(RESULT_LINES):
        now = len(llama.settled())
        if now > ended + 1:
            beside.append(len(seen))
        ended = now
        try:
            seen.append(ask(client, messages, tools=TOOLS))
        except openai.BadRequestError:
            break
    return seen, beside


def owed(index: int, told: list[Told], beside: list[int]) -> int:
    """Tokens that the cache owes a turn.

    All of the prompt before. Where that has just been rewritten: what comes before the summary, which is the first
    request. Where the one slot has read a summary's prompt since: what the summary replaces, the larger part.
    """
    if told[index].prompt < told[index - 1].prompt:
        return told[0].prompt - EDGE
    return told[index].prompt // 2 if index in beside else told[index - 1].prompt - EDGE


def test_a_growing_conversation(
    llama: LlamaServer, front: Front, clients: Clients, note: Callable[[str], None]
) -> None:
    patient = {"compaction": {"timeout_s": 900.0}}
    gateway = front(models={"*": {"window": CONTEXT}}, memory={"enabled": False}, **patient)
    refused = len(llama.refused())
    direct, _ = grow(clients(llama.url), llama)
    assert len(llama.refused()) > refused, "the conversation has to outgrow the server"
    refused = len(llama.refused())
    through, beside = grow(clients(gateway.url), llama)
    note("growing tool conversation: prompt tokens (share cached), direct | through the gateway (actions)")
    for index, here in enumerate(through):
        there = f"{direct[index].prompt:5} ({direct[index].share:.2f})" if index < len(direct) else " refused    "
        ours = f"{here.prompt:5} ({here.share:.2f}), counted {here.after:5}"
        note(f"  turn {index + 1:2}: {there} | {ours} {here.actions or ''}")
    note(f"  a summary was written in the background before turns {[index + 1 for index in beside]}")
    assert (len(through), len(llama.refused())) == (TURNS, refused), "each turn is answered, at its first try"
    assert 1 <= sum(here.prompt < before.prompt for before, here in pairwise(through)) <= REWRITES_MOST
    for index in range(1, TURNS):
        assert through[index].cached >= owed(index, through, beside), f"turn {index + 1}"


def test_memory_stays_in_the_cache(
    llama: LlamaServer, front: Front, clients: Clients, note: Callable[[str], None]
) -> None:
    client = clients(front(models={"*": {"window": CONTEXT}}).url)
    direct = clients(llama.url)
    ask(client, [system("You are helpful."), user("Please remember: I always use tabs for indentation in Python.")])
    question = [*HEAD[:1], user("Which indentation do I want for Python, tabs or spaces?")]
    first = next(told for _ in range(20) if "memory" in (told := ask(client, question)).actions)
    bare = ask(direct, question)
    call = assistant(None, tool_call("call_1", "read_file", '{"path": ".editorconfig"}'))
    second = ask(client, [*question, call, tool("call_1", "[*]\nindent_style = unset")])
    third = ask(client, [*question, assistant("Tabs."), user("Then go on.")])
    assert first.prompt > bare.prompt + EDGE, "the memory is in the prompt"
    assert min(second.cached, third.cached) >= first.prompt - EDGE
    note(
        f"memory pinned: {first.prompt} prompt tokens with it, {bare.prompt} without; cached on the next turns: "
        f"{second.cached} of {second.prompt}, {third.cached} of {third.prompt}"
    )
