"""The demo's conversations: what its users ask, what the agent does about it, and what its tools return.

`sessions.json` holds the words; long tool results are made by `outputs.py`. A conversation is not replayed: the driver
sends what an agent would send, takes the reply that comes back through the gateway, runs the "tools" that the reply
calls, and goes on. The scripted upstream finds its next reply by the newest message, as a model would.
"""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateway.demo.outputs import make_output
from gateway.types import ChatMessage

OutputSpec = str | list[str | int]


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation: who has it, how it begins, what the user says in turn."""

    name: str
    title: str
    user: str
    project: str
    stream: bool
    system: str
    says: tuple[str, ...]
    """The user's messages, in order."""
    replies: dict[str, ChatMessage]
    """The assistant's message by `newest_key` of the request that it answers."""
    outputs: dict[str, OutputSpec]
    """What a tool returns, by call id."""
    tools: list[dict[str, Any]]

    @property
    def requests(self) -> int:
        """Requests that the whole conversation takes."""
        return len(self.replies)

    def output(self, call_id: str) -> str:
        """The text that the tool behind this call returns."""
        return make_output(self.outputs[call_id])


def newest_key(messages: Sequence[ChatMessage]) -> str:
    """What the newest message is known by: a user's by its text, a tool's by its call id; empty for any other."""
    newest = messages[-1] if messages else {}
    if newest.get("role") == "tool":
        return f"tool:{newest.get('tool_call_id')}"
    content = newest.get("content")
    return f"user:{content}" if newest.get("role") == "user" and isinstance(content, str) else ""


def load_sessions() -> list[Session]:
    """All conversations, in the order in which they are held."""
    raw = importlib.resources.files("gateway.demo").joinpath("sessions.json").read_text(encoding="utf-8")
    return [_session(index, data) for index, data in enumerate(json.loads(raw))]


def _session(index: int, data: dict[str, Any]) -> Session:
    replies: dict[str, ChatMessage] = {}
    outputs: dict[str, OutputSpec] = {}
    arguments: dict[str, set[str]] = {}
    for exchange in data["exchanges"]:
        key = newest_key([{"role": "user", "content": exchange["user"]}])
        for turn in exchange["rounds"]:
            calls = []
            for name, given, output in turn["calls"]:
                call_id = f"call_{index}_{len(outputs)}"
                outputs[call_id] = output
                arguments.setdefault(name, set()).update(given)
                function = {"name": name, "arguments": json.dumps(given, ensure_ascii=False)}
                calls.append({"id": call_id, "type": "function", "function": function})
            replies[key] = {"role": "assistant", "content": turn.get("say"), "tool_calls": calls}
            key = newest_key([{"role": "tool", "tool_call_id": calls[-1]["id"]}])
        replies[key] = {"role": "assistant", "content": exchange["answer"]}
    return Session(
        name=data["name"],
        title=data["title"],
        user=data["user"],
        project=data["project"],
        stream=data["stream"],
        system=data["system"],
        says=tuple(exchange["user"] for exchange in data["exchanges"]),
        replies=replies,
        outputs=outputs,
        tools=[_tool(name, sorted(names)) for name, names in sorted(arguments.items())],
    )


def _tool(name: str, arguments: Sequence[str]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {argument: {} for argument in arguments}}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}
