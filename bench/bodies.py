"""Request bodies for the overhead bench: many conversations, each request a new turn of one of them.

A body is cut into a head, a slot of fixed width for a number that never repeats, and a tail. The slot stands in
the newest message, so each request is a conversation seen before with one message never seen before, as in an
agent's loop: a cache by message helps as much as it would there, and no whole request ever repeats.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

CONVERSATIONS = 64
SLOT = "000000000000"
MESSAGES_LARGE = 100
SIZES = {"1KB": 1_000, "200KB": 200_000}
MODEL = "gpt-4o"
USER_TURN_EVERY = 4
"""Of the large conversations one in this many ends in a user's message, the others in a tool's result."""

NOUNS = ("parser", "ledger", "importer", "router", "cache", "schema", "worker", "index", "session", "reader", "queue")
VERBS = ("load", "parse", "merge", "flush", "check", "render", "resolve", "split", "retry", "close", "open")


@dataclass(frozen=True)
class Body:
    """A request's bytes around its slot."""

    head: bytes
    tail: bytes

    def with_number(self, number: int) -> bytes:
        """The whole body; its length does not depend on the number."""
        return self.head + b"%012d" % number + self.tail

    def __len__(self) -> int:
        return len(self.head) + len(SLOT) + len(self.tail)


def prose(state: random.Random, words: int) -> str:
    """Plain English sentences of that many words."""
    made = [
        f"the {state.choice(NOUNS)} should {state.choice(VERBS)} the {state.choice(NOUNS)}"
        for _ in range(words // 6 + 1)
    ]
    return ". ".join(made).capitalize() + "."


def tool_result(state: random.Random, size: int) -> str:
    """About `size` characters of code, a log or grep hits; one in four is indented JSON, which folds."""
    kind = state.randrange(4)
    lines: list[str] = []
    while sum(map(len, lines)) + len(lines) < size:
        verb, noun, number = state.choice(VERBS), state.choice(NOUNS), state.randrange(10_000)
        if kind == 0:
            lines.append(f"    def {verb}_{noun}_{number}(self, value: int) -> int:")
        elif kind == 1:
            lines.append(f"2026-11-30 12:{number % 60:02d}:{number % 59:02d} INFO {noun} {verb} took {number} ms")
        elif kind == 2:
            lines.append(f"src/{noun}/{verb}.py:{number}:    return {verb}({noun}, {number})")
        else:
            lines.append(json.dumps({"id": number, "name": noun, "state": verb, "size": number * 7}, indent=2))
    return "[" + ",\n".join(lines) + "]" if kind == 3 else "\n".join(lines)


def small_messages(state: random.Random) -> list[dict[str, Any]]:
    """A short chat whose newest message is the user's."""
    return [
        {"role": "system", "content": "You are a helpful assistant. " + prose(state, 60)},
        {"role": "user", "content": prose(state, 18)},
        {"role": "assistant", "content": prose(state, 24)},
        {"role": "user", "content": f"Ticket {SLOT}: how should we {state.choice(VERBS)} the {state.choice(NOUNS)}?"},
    ]


def large_messages(state: random.Random, number: int) -> list[dict[str, Any]]:
    """A hundred messages of an agent at work: a task, then calls and their results."""
    share = (SIZES["200KB"] - 24_000) // (MESSAGES_LARGE // 2)
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You are a careful engineer. " + prose(state, 300)},
        {"role": "user", "content": "Fix the importer. " + prose(state, 60)},
    ]
    ends_with_user = number % USER_TURN_EVERY == 0
    while len(messages) < MESSAGES_LARGE - 2 * ends_with_user:
        call_id = f"call_{number}_{len(messages)}"
        arguments = json.dumps({"path": f"src/{state.choice(NOUNS)}/{state.choice(VERBS)}.py"})
        call = {"id": call_id, "type": "function", "function": {"name": "read_file", "arguments": arguments}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call_id, "content": tool_result(state, share)})
    if ends_with_user:
        messages.append({"role": "assistant", "content": prose(state, 60)})
        messages.append({"role": "user", "content": f"Ticket {SLOT}: {prose(state, 40)}"})
    else:
        messages[-1]["content"] += f"\nexit status 0, run {SLOT}"
    return messages


def build(size: str, stream: bool, seed: int = 7) -> list[Body]:
    """The bodies of one size, one a conversation."""
    made = []
    for number in range(CONVERSATIONS):
        state = random.Random(seed * 1000 + number)
        messages = small_messages(state) if size == "1KB" else large_messages(state, number)
        request = {"model": MODEL, **({"stream": True} if stream else {}), "messages": messages, "temperature": 0.2}
        text = json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode()
        head, tail = text.rsplit(SLOT.encode(), 1)
        made.append(Body(head, tail))
    return made
