"""What the mock upstream remembers of each replay: a lane of requests, of which some are the agent's turns.

A proxy sends requests of its own (summaries, extractions, shadow copies), and may rewrite whatever it forwards, so no
header or field marks a turn reliably. Two things do: the reply that comes back to the replay carries the id that the
upstream gave it, which settles afterwards which request was the turn; and until then a request counts as the expected
turn where its newest message is the one the agent sent, by role and call id, or by role and how the text begins.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from bench.replay.counting import Counted, content_text
from bench.replay.ledger import Bill, Request, bill
from bench.replay.replies import reply_id

_HEAD_CHARS = 80  # of a user message, compared: what a proxy cuts, it cuts further down
_KEPT_TEXTS = 8  # newest requests whose text is held for `kept_lines`


@dataclass(frozen=True, slots=True)
class Expected:
    """The turn the agent is about to send: its newest message's identity, and the recorded reply to it."""

    role: str
    call_id: str | None
    head: str
    reply: dict[str, Any]

    @classmethod
    def of(cls, newest: dict[str, Any], reply: dict[str, Any]) -> Expected:
        """The expectation of a request that ends in `newest`."""
        head = content_text(newest.get("content")).strip()[:_HEAD_CHARS]
        return cls(str(newest.get("role")), newest.get("tool_call_id"), head, reply)

    def matches(self, messages: list[dict[str, Any]]) -> bool:
        """Whether a request ends in the message expected."""
        if not messages or messages[-1].get("role") != self.role:
            return False
        newest = messages[-1]
        if self.call_id is not None:
            return bool(newest.get("tool_call_id") == self.call_id)
        return content_text(newest.get("content")).strip().startswith(self.head)


@dataclass(slots=True)
class Seen:
    """A request that came: its number, its counted messages, the guess whether it was the turn, the reply's tokens."""

    number: int
    messages: list[Counted]
    guess: bool
    output: int


@dataclass(slots=True)
class Lane:
    """One conversation replayed through one proxy."""

    expected: Expected | None = None
    open: int = 0
    seen: list[Seen] = field(default_factory=list)
    texts: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=_KEPT_TEXTS))

    def cached(self, messages: list[Counted]) -> int:
        """Rendered tokens of the whole messages shared with the request before, for the `usage` the mock reports."""
        total = 0
        before = self.seen[-1].messages if self.seen else []
        for new, old in zip(messages, before, strict=False):
            if new.digest != old.digest:
                break
            total += new.rendered
        return total

    def keep_text(self, number: int, messages: list[dict[str, Any]]) -> None:
        """Hold the text of a request for a while."""
        self.texts.append((reply_id(number), "\n".join(content_text(m.get("content")) for m in messages)))

    def kept_lines(self, identity: str | None, lines: list[str]) -> int:
        """How many of `lines` stand in the request answered by the reply `identity`, else in the newest one."""
        held = dict(self.texts)
        text = held.get(identity or "") or (self.texts[-1][1] if self.texts else "")
        return sum(line in text for line in lines)

    def settle(self, turns: list[str | None]) -> tuple[Bill, int]:
        """The bill, given the reply's id of each turn (None: the proxy gave it another), and how many went by guess."""
        known = {identity for identity in turns if identity}
        ours = {reply_id(seen.number) for seen in self.seen}
        trusted = known & ours
        by_guess = len(turns) - len(trusted)
        requests = [
            Request(seen.messages, side=not self._is_turn(seen, trusted, by_guess), output=seen.output)
            for seen in self.seen
        ]
        return bill(requests), by_guess

    @staticmethod
    def _is_turn(seen: Seen, trusted: set[str], by_guess: int) -> bool:
        return reply_id(seen.number) in trusted or (by_guess > 0 and not trusted and seen.guess)
