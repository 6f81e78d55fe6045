"""Holds the demo's conversations through the gateway with the real openai SDK, and measures each turn on both sides.

Every request is also sent straight to the scripted upstream under another key, so that the two bills come from the
same meter in the same run. Nothing here is computed from what ought to happen.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gateway.demo.script import Session
from gateway.demo.upstream import MODEL, ScriptedUpstream, Seen
from gateway.types import ChatMessage

if TYPE_CHECKING:
    from openai import OpenAI

GATEWAY_KEY = "demo-through-gateway"
DIRECT_KEY = "demo-direct"
TIMEOUT_S = 60.0


@dataclass(slots=True)
class Turn:
    """One request as it was seen at both ends."""

    number: int
    session: str
    user: str
    newest: str
    """What the request brings: the user's words, or the tools whose results it carries."""
    status: int = 0
    before: int = 0
    """Tokens of the request as the agent sent it, by the upstream's own count of the direct request."""
    after: int = 0
    """Tokens of what the gateway made of it, by the same count."""
    estimated_before: int = 0
    """The gateway's own count of the first, from its response header."""
    cached: int = 0
    direct_refused: bool = False
    actions: dict[str, str] = field(default_factory=dict)
    """Stage to what it did, from the gateway's response header."""
    remembered: list[str] = field(default_factory=list)
    """Lines of memory that this request had in its system message and the one before had not."""
    kept: list[str] = field(default_factory=list)
    """What the gateway has taken into its memory since this user's turn before, by its own listing."""
    milliseconds: float = 0.0
    error: str = ""


class Driver:
    """An agent with its tools."""

    def __init__(self, gateway_url: str, upstream: ScriptedUpstream, pause_s: float) -> None:
        import httpx
        from openai import DefaultHttpxClient, OpenAI

        self._gateway_url = gateway_url
        self._upstream = upstream
        self._pause_s = pause_s
        self._http = httpx.Client(trust_env=False, timeout=TIMEOUT_S)
        self._client: OpenAI = OpenAI(
            base_url=f"{gateway_url}/v1",
            api_key=GATEWAY_KEY,
            max_retries=0,
            timeout=TIMEOUT_S,
            http_client=DefaultHttpxClient(trust_env=False),
        )
        self._number = 0
        self._shown: set[str] = set()
        self._kept: dict[str, set[str]] = {}

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
        self._http.close()

    def hold(self, session: Session) -> Iterator[Turn]:
        """The whole conversation, a turn at a time; ends early where the gateway did not answer."""
        messages: list[ChatMessage] = [{"role": "system", "content": session.system}]
        self._shown = set()
        for said in session.says:
            messages.append({"role": "user", "content": said})
            newest = said
            while True:
                turn, reply = self._turn(session, messages, newest)
                yield turn
                if reply is None:
                    return
                messages.append(reply)
                calls = reply.get("tool_calls") or ()
                if not calls:
                    break
                newest = ", ".join(_call_label(call) for call in calls)
                for call in calls:
                    output = session.output(call["id"])
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": output})
                time.sleep(self._pause_s)

    def _turn(self, session: Session, messages: list[ChatMessage], newest: str) -> tuple[Turn, ChatMessage | None]:
        self._number += 1
        turn = Turn(self._number, session.name, session.user, newest)
        books = self._upstream.of(GATEWAY_KEY)
        known = len(books.seen)
        started = time.perf_counter()
        reply = self._ask(session, messages, turn)
        turn.milliseconds = (time.perf_counter() - started) * 1000
        arrived = [seen for seen in books.seen[known:] if not seen.side]
        if arrived:
            turn.after, turn.cached = arrived[-1].usage.prompt, arrived[-1].usage.cached
            turn.remembered = self._news(session, arrived[-1])
        self._send_direct(session, messages, turn)
        turn.kept = self._newly_kept(session.user)
        return turn, reply

    def _ask(self, session: Session, messages: list[ChatMessage], turn: Turn) -> ChatMessage | None:
        import openai

        fields: dict[str, Any] = {"model": MODEL, "messages": messages, "stream": session.stream}
        if session.tools:
            fields["tools"] = session.tools
        fields |= {"user": session.user, "extra_headers": {"X-Memory-Project": session.project}}
        try:
            raw = self._client.chat.completions.with_raw_response.create(**fields)
        except openai.OpenAIError as error:
            turn.status, turn.error = int(getattr(error, "status_code", 0) or 0), str(error)
            return None
        turn.status = raw.status_code
        turn.estimated_before = int(raw.headers.get("x-gateway-tokens-before", 0))
        turn.actions = _actions(raw.headers.get("x-gateway-actions", ""))
        answer: Any = raw.parse()
        return _streamed(answer) if session.stream else _plain(answer.choices[0].message)

    def _news(self, session: Session, seen: Seen) -> list[str]:
        """Lines that the gateway added to the instructions, and had not added before in this conversation."""
        lines: list[str] = []
        for message in seen.messages:
            if message.get("role") in ("system", "developer"):
                added = str(message.get("content")).removeprefix(session.system)
                lines += [line.removeprefix("- ") for line in added.splitlines() if line.startswith("- ")]
        news = [line for line in lines if line not in self._shown]
        self._shown.update(news)
        return news

    def _newly_kept(self, user: str) -> list[str]:
        """Oldest first. The scribe writes beside the requests: what a turn says is listed then or soon after."""
        headers = {b"Authorization": f"Bearer {GATEWAY_KEY}".encode(), b"X-Memory-User": user.encode()}
        answer = self._http.get(f"{self._gateway_url}/v1/memory/facts", headers=headers)
        answer.raise_for_status()
        known = self._kept.setdefault(user, set())
        news = [entry["content"] for entry in answer.json()["data"] if entry["content"] not in known]
        known.update(news)
        return news[::-1]

    def _send_direct(self, session: Session, messages: list[ChatMessage], turn: Turn) -> None:
        body = {"model": MODEL, "messages": messages, "tools": session.tools}
        headers = {"Authorization": f"Bearer {DIRECT_KEY}"}
        answer = self._http.post(f"{self._upstream.url}/chat/completions", json=body, headers=headers)
        turn.direct_refused = answer.status_code != 200
        turn.before = self._upstream.of(DIRECT_KEY).seen[-1].usage.prompt


def _actions(header: str) -> dict[str, str]:
    return dict(part.partition(":")[::2] for part in header.split(",") if part)


def _call_label(call: dict[str, Any]) -> str:
    import json

    values = json.loads(call["function"]["arguments"]).values()
    return f"{call['function']['name']} {next(iter(values), '')}"


def _plain(message: Any) -> ChatMessage:
    """The SDK's message as an agent appends it to its history."""
    reply: ChatMessage = {"role": "assistant", "content": message.content}
    if message.tool_calls:
        reply["tool_calls"] = [_call(c.id, c.function.name, c.function.arguments) for c in message.tool_calls]
    return reply


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _streamed(chunks: Any) -> ChatMessage:
    """The same from a stream's deltas."""
    text: list[str] = []
    calls: dict[int, list[str]] = {}
    for chunk in chunks:
        for delta in (choice.delta for choice in chunk.choices):
            text.append(delta.content or "")
            for call in delta.tool_calls or ():
                parts = calls.setdefault(call.index, ["", "", ""])
                parts[0] += call.id or ""
                if call.function is not None:
                    parts[1] += call.function.name or ""
                    parts[2] += call.function.arguments or ""
    reply: ChatMessage = {"role": "assistant", "content": "".join(text) or None}
    if calls:
        reply["tool_calls"] = [_call(*calls[index]) for index in sorted(calls)]
    return reply
