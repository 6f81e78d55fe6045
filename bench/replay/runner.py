"""Replaying a conversation: over HTTP through a proxy, or through a baseline with the same counter and no proxy."""

from __future__ import annotations

import contextlib
import http.client
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import orjson

from bench.replay.conversations import Conversation, Messages
from bench.replay.counting import TokenCounter, content_text
from bench.replay.ledger import Bill, Request, bill
from bench.replay.strategies import Strategy

MODEL = "gpt-4o"
REQUEST_TIMEOUT_S = 120.0
SETTLE_WAIT_S = 0.3  # for work a proxy begins after its last reply


@dataclass(slots=True)
class Outcome:
    """One conversation through one strategy. `window` is None where the strategy knows none."""

    conversation: str
    kind: str
    strategy: str
    window: int | None
    bill: Bill
    labelled: int = 0
    kept: int = 0
    lost: int = 0  # turns that failed, or whose reply came from somewhere else than the upstream
    by_guess: int = 0
    proxy: bool = False  # whether it went over HTTP
    seconds: float = 0.0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Replay:
    """A proxy to replay through: where it listens, where the mock upstream does, and how the agent behaves.

    `think_s` is the agent's pause before each turn; `budget_s` the time after which a conversation is given up.
    """

    strategy: str
    window: int | None
    proxy_url: str
    upstream_url: str
    think_s: float = 0.02
    budget_s: float = 600.0

    def run(self, conversation: Conversation) -> Outcome:
        """Replay every turn in order, as the agent that recorded it sent it."""
        lane = f"bench-{conversation.name}-{self.strategy}-{self.window}"
        outcome = Outcome(conversation.name, conversation.kind, self.strategy, self.window, Bill(), proxy=True)
        started = time.monotonic()
        self._steer("/__lane", {"lane": lane})
        turns: list[str | None] = []
        for messages, reply in conversation.turns():
            if time.monotonic() - started > self.budget_s:
                outcome.problem = f"given up after {self.budget_s:.0f} s and {len(turns)} turns"
                break
            time.sleep(self.think_s)
            self._steer("/__expect", {"lane": lane, "newest": messages[-1], "reply": reply})
            identity, problem = self._turn(lane, messages)
            turns.append(identity)
            if problem:
                outcome.problem = outcome.problem or f"turn {len(turns)}: {problem}"
            lines = conversation.new_labels(messages)
            if lines:
                outcome.labelled += len(lines)
                outcome.kept += self._steer("/__kept", {"lane": lane, "id": identity, "lines": lines})["kept"]
        time.sleep(SETTLE_WAIT_S)
        settled = self._steer("/__settle", {"lane": lane, "turns": turns})
        outcome.bill = Bill(**settled["bill"])
        outcome.by_guess = settled["by_guess"]
        outcome.lost = len(turns) - outcome.bill.turns
        outcome.seconds = time.monotonic() - started
        return outcome

    def _turn(self, lane: str, messages: Messages) -> tuple[str | None, str]:
        """Send one turn; its reply's id, where it looks like the upstream's, and what went wrong, if anything."""
        body = orjson.dumps({"model": MODEL, "messages": messages})
        try:
            status, raw = post(f"{self.proxy_url}/v1/chat/completions", body, lane)
        except (OSError, http.client.HTTPException) as error:
            return None, f"{type(error).__name__}: {error}"
        if status != http.HTTPStatus.OK:
            return None, f"HTTP {status}: {raw[:200].decode('utf-8', 'replace')}"
        try:
            identity = orjson.loads(raw).get("id")
        except (orjson.JSONDecodeError, AttributeError):
            return None, f"not a completion: {raw[:200].decode('utf-8', 'replace')}"
        return (identity if isinstance(identity, str) else None), ""

    def _steer(self, path: str, body: dict[str, Any]) -> Any:
        status, raw = post(self.upstream_url + path, orjson.dumps(body), "")
        if status != http.HTTPStatus.OK:
            raise RuntimeError(f"mock upstream, {path}: HTTP {status}: {raw[:200]!r}")
        return orjson.loads(raw)


def replay_baseline(
    conversation: Conversation, name: str, strategy: Strategy, counter: TokenCounter, window: int | None = None
) -> Outcome:
    """Bill a conversation under a baseline, counted as the mock upstream counts."""
    outcome = Outcome(conversation.name, conversation.kind, name, window, Bill())
    requests = []
    for messages, _ in conversation.turns():
        sent = strategy(messages)
        requests.append(Request(counter.request(sent)))
        lines = conversation.new_labels(messages)
        if lines:
            text = "\n".join(content_text(message.get("content")) for message in sent)
            outcome.labelled += len(lines)
            outcome.kept += sum(line in text for line in lines)
    outcome.bill = bill(requests)
    return outcome


def post(url: str, body: bytes, key: str) -> tuple[int, bytes]:
    """One POST on a connection of its own: a proxy that closes idle ones must not look like one that fails."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port, timeout=REQUEST_TIMEOUT_S)
    try:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
        # A server may refuse a body before it has read it all: what it answered is still there to be read.
        with contextlib.suppress(BrokenPipeError):
            connection.request("POST", parts.path, body, headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()
