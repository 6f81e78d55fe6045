"""An agent as the gateway meets it: a loop that resends its whole history each turn, and never knows it was
shortened.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from tests.support.builders import Message, assistant, tool, tool_call, user
from tests.support.chat import fresh_key, send_chat
from tests.support.chat_model import ChatModel
from tests.support.raw_http import RawReply

NOUNS = ("parser", "config", "router", "cache", "schema", "worker", "index", "session", "buffer", "handler")
VERBS = ("load", "parse", "merge", "flush", "check", "render", "resolve", "split", "retry", "close")
HANZI = (
    "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出"
    "就分对成会可主发年动同工也能下过子说产种面而方后多定行学法所"
)


def source_text(random_state: random.Random, lines: int) -> str:
    """Lines that look like code and never repeat."""
    made = []
    for number in range(lines):
        verb, noun = random_state.choice(VERBS), random_state.choice(NOUNS)
        made.append(f"def {verb}_{noun}_{random_state.randrange(10_000)}(value: int) -> int:  # line {number}")
    return "\n".join(made)


def chinese_text(random_state: random.Random, length: int) -> str:
    """Chinese characters in sentences."""
    return "".join(random_state.choice(HANZI) + ("。" if index % 17 == 16 else "") for index in range(length))


Result = Callable[[random.Random, int], str]


@dataclass
class Agent:
    """Sends `messages` under one key, checks each answer, and grows the history as an agent would."""

    port: int
    model: ChatModel
    messages: list[Message]
    model_name: str = "small-8k"
    key: str = field(default_factory=fresh_key)
    fields: dict[str, Any] = field(default_factory=dict)
    turns_with_side_calls: int = 0

    def send(self) -> RawReply:
        """One turn: the whole history, and an answer with status 200."""
        self.model.announce(self.messages)
        side_calls = len(self.model.side_calls)
        reply = send_chat(self.port, self.messages, self.key, **{**self.fields, "model": self.model_name})
        assert reply.status == 200, reply.body
        self.turns_with_side_calls += len(self.model.side_calls) > side_calls
        return reply

    def tool_rounds(self, rounds: int, result: Result, seed: int = 1) -> None:
        """That many requests, each answered by a call whose result joins the history; every fifth has two calls."""
        state = random.Random(seed)
        for number in range(rounds):
            self.send()
            path = f"src/{state.choice(NOUNS)}_{number}.py"
            ids = [f"call_{number}_{index}" for index in range(2 if number % 5 == 4 else 1)]
            arguments = orjson.dumps({"path": path}).decode()
            self.messages.append(assistant(None, *(tool_call(call_id, "read_file", arguments) for call_id in ids)))
            self.messages += [tool(call_id, result(state, number)) for call_id in ids]
        self.send()

    def chat_rounds(self, rounds: int, say: Result, seed: int = 1) -> None:
        """That many questions and the model's own answers."""
        state = random.Random(seed)
        for number in range(rounds):
            answer = orjson.loads(self.send().body)["choices"][0]["message"]["content"]
            self.messages.append(assistant(f"{answer} {say(state, number)}"))
            self.messages.append(user(f"Question {number}: {say(state, number)}"))
        self.send()
