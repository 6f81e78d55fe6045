"""The rounds that the gateway answers within one turn: reads, another request, and what is remembered of it all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from gateway.body import encode
from gateway.conversation import Reading
from gateway.forward import Answer, Forwarder
from gateway.message import Message
from gateway.pipeline import Pipeline
from gateway.readback.answers import Answers
from gateway.readback.calls import OwnCall
from gateway.readback.readings import own_items, reading_digest, with_reading
from gateway.readback.tool import ANSWER_CHARS
from gateway.services import Services
from gateway.turn import Turn
from gateway.types import ChatMessage, JsonObject
from gateway.upstream.usage import Usage

ROUNDS_MOST: Final = 5
"""Of reads in one turn; then the model has to go on with what it has."""
CALLS_MOST: Final = 8
"""Reads answered in one message."""
CHARS_PER_TOKEN: Final = 2
"""Of what is left of the window: low, since logs and Chinese have few characters a token."""
RESERVE: Final = 500
"""Tokens that stay free beside the answers."""
_TOO_MANY: Final = f"[Not read: at most {CALLS_MOST} reads at once. Ask again for this one.]"
_LAST_ONE: Final = "\n[That was the last read for now. Go on with what you have.]"


@dataclass(slots=True)
class Course:
    """One turn's rounds so far."""

    turn: Turn
    key: bytes
    """Chain of the client's last message, under which the reading is kept."""
    at: bytes
    """Chain of the last message there is."""
    length: int = 0
    """Items of the turn before any round."""
    rounds: list[str] = field(default_factory=list)
    said: str = ""
    """Text of these rounds that the client has got."""
    usages: list[Usage | None] = field(default_factory=list)
    totals: JsonObject = field(default_factory=dict)
    """The usage objects of these rounds, summed."""
    sent: int = 0
    """Tokens sent in these rounds, by the gateway's count."""

    @property
    def spent(self) -> bool:
        """Whether there may be no more reads."""
        return self.turn.rounds >= ROUNDS_MOST

    def add_usage(self, answer: Answer, raw: JsonObject | None) -> None:
        """Take the usage of a round that is not the last."""
        self.usages.append(answer.usage())
        self.totals = summed(self.totals, raw) if raw else self.totals
        self.sent += self.turn.tokens_after

    def settle(self) -> None:
        """At the end: the turn has sent what was sent in all rounds, as its usage tells, and is the client's again."""
        self.turn.tokens_after += self.sent
        self.sent = 0
        if self.rounds:
            self.turn.items = self.turn.items[: self.length]
            self.turn.changed()

    def usage(self, last: Usage | None) -> Usage | None:
        """All rounds together."""
        told = [usage for usage in (*self.usages, last) if usage is not None]
        if not told:
            return None
        return Usage(
            _sum([usage.prompt_tokens for usage in told]),
            _sum([usage.completion_tokens for usage in told]),
            _sum([usage.cached_tokens for usage in told]),
            _sum([usage.reasoning_tokens for usage in told]),
        )


class Conductor:
    """What all courses share."""

    def __init__(self, services: Services, pipeline: Pipeline, forwarder: Forwarder) -> None:
        self._services = services
        self._pipeline = pipeline
        self._forwarder = forwarder
        self._answers = Answers(services.store)

    def begin(self, turn: Turn) -> Course:
        """The course of a turn whose first answer has come."""
        chain = next(item.chain for item in reversed(turn.items) if not item.own)
        return Course(turn, chain, chain, len(turn.items))

    async def next_round(self, course: Course, message: ChatMessage, calls: Sequence[OwnCall]) -> Answer:
        """Answer the calls of `message`, which are all the gateway's, and ask the model again.

        Raises:
            GatewayError: no upstream could be reached.
        """
        turn = course.turn
        results = await self._results(course, calls, last=turn.rounds + 1 >= ROUNDS_MOST)
        made = [self._services.messages.make(message), *results]
        self._services.counting.recount(turn, made)
        items = own_items(course.at, made)
        turn.items += items
        turn.changed()
        course.at = items[-1].chain
        course.rounds += [one.raw.decode() for one in made]
        turn.rounds += 1
        if course.spent:
            self._take_away(turn)
        return await self._forwarder.forward(turn, await self._pipeline.next_round(turn))

    async def beside(self, course: Course, calls: Sequence[OwnCall]) -> tuple[tuple[int, str, str], ...]:
        """Answer calls that stand beside the client's own: to be put back once it has answered these."""
        results = await self._results(course, calls, last=False)
        return tuple(
            (call.place, encode(call.call).decode(), result.raw.decode())
            for call, result in zip(calls, results, strict=True)
        )

    def end(self, course: Course, text: str, ids: tuple[str, ...], beside: tuple[tuple[int, str, str], ...]) -> None:
        """Remember the course, before the client has the whole reply and may answer it.

        Args:
            text: all that the client gets as the reply's text.
            ids: of the client's calls in it.
        """
        if not course.rounds and not beside:
            return
        conversation = course.turn.conversation
        new = Reading(tuple(course.rounds), course.said, reading_digest(text), ids, beside)
        readings = with_reading(conversation.record(course.key).readings, new)
        self._services.conversations.amend(conversation, course.key, readings=readings)

    async def _results(self, course: Course, calls: Sequence[OwnCall], *, last: bool) -> list[Message]:
        turn = course.turn
        left = (turn.limits.hard - turn.count()) / turn.ratio - RESERVE
        room = min(ANSWER_CHARS, int(left * CHARS_PER_TOKEN) // max(1, min(len(calls), CALLS_MOST)))
        turn.act("read", len(calls))
        found: list[Message] = []
        for number, call in enumerate(calls):
            text = _TOO_MANY
            if number < CALLS_MOST:
                text = await self._answers.answer(turn.caller.tenant, call.arguments, room)
            if last and number == len(calls) - 1:
                text += _LAST_ONE
            found.append(self._services.messages.make({"role": "tool", "tool_call_id": call.id, "content": text}))
        return found

    @staticmethod
    def _take_away(turn: Turn) -> None:
        """No more reads. Where the client has no tools of its own the tool stays declared, since upstreams refuse calls
        in the history of a request that has none; but it may not be called."""
        if turn.body.get("tools"):
            turn.changes.pop("tools", None)
        else:
            turn.changes["tool_choice"] = b'"none"'


def summed(one: JsonObject, other: JsonObject) -> JsonObject:
    """Two usage objects as one: numbers added, objects within them likewise, anything else as the later has it."""
    out = {**one, **{key: value for key, value in other.items() if value is not None or key not in one}}
    for key in one.keys() & other.keys():
        left, right = one[key], other[key]
        if isinstance(left, dict) and isinstance(right, dict):
            out[key] = summed(left, right)
        elif _is_number(left) and _is_number(right):
            out[key] = left + right
    return out


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _sum(counts: list[int | None]) -> int | None:
    told = [count for count in counts if count is not None]
    return sum(told) if told else None
