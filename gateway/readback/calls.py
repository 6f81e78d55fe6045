"""Tells the gateway's own calls from the client's, in a whole message and in a stream of deltas.

The client never declared the tool, so it must never see a call of it: not a name, not an id, not a gap in the indices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.body import as_object
from gateway.forms import TOOL_NAME
from gateway.tenants import digest
from gateway.types import ChatMessage, JsonObject
from gateway.upstream.toolcalls import ToolCallAssembler

_ENTRY_FIELDS = frozenset(("index", "id", "type", "function"))


@dataclass(frozen=True, slots=True)
class OwnCall:
    """A call of `read_spilled_output`. `place`: among all calls of its message, from 0."""

    place: int
    call: JsonObject

    @property
    def arguments(self) -> object:
        """JSON text as a rule; whole or broken."""
        return as_object(self.call.get("function")).get("arguments")

    @property
    def id(self) -> str:
        """Never empty."""
        return str(self.call["id"])


def is_own(call: object) -> bool:
    """Whether a whole call is the gateway's to answer."""
    return as_object(as_object(call).get("function")).get("name") == TOOL_NAME


def parted(message: ChatMessage) -> tuple[list[OwnCall], list[JsonObject]]:
    """The gateway's calls of a whole message, and the client's."""
    calls = message.get("tool_calls")
    calls = calls if isinstance(calls, list) else []
    own = [OwnCall(place, _with_id(call, place)) for place, call in enumerate(calls) if is_own(call)]
    return own, [call for call in calls if not is_own(call)]


class CallRouter:
    """Sorts the `tool_calls` entries of a stream as they come.

    A call is held back only until it is clear whose it is; mostly its first entry says so.
    """

    def __init__(self, client_tools: frozenset[str]) -> None:
        self._client_tools = client_tools
        self._calls = ToolCallAssembler()
        self._mine: dict[int, bool | None] = {}
        """By place; None while it is not clear."""
        self._held: dict[int, list[JsonObject]] = {}
        self._numbers: dict[int, int] = {}
        self._extras: dict[int, JsonObject] = {}

    @property
    def has_own(self) -> bool:
        """Whether one of the calls so far is the gateway's."""
        return any(self._mine.values())

    def route(self, entries: Sequence[object]) -> list[JsonObject]:
        """The entries for the client now, its calls numbered from 0."""
        out: list[JsonObject] = []
        for entry in entries:
            if isinstance(entry, dict):
                out += self._entry(entry)
        return out

    def settle(self) -> list[JsonObject]:
        """At the end: what is still held, as the client's unless it is the gateway's by name."""
        out: list[JsonObject] = []
        for place in [place for place, mine in self._mine.items() if mine is None]:
            out += self._decide(place, mine=self._calls.at(place).name == TOOL_NAME)
        return out

    def own(self) -> list[OwnCall]:
        """The gateway's calls, in order."""
        found = []
        for place in sorted(place for place, mine in self._mine.items() if mine):
            made = self._calls.at(place)
            function = {"name": made.name, "arguments": made.arguments}
            call = {"id": made.id, "type": "function", "function": function, **self._extras.get(place, {})}
            found.append(OwnCall(place, _with_id(call, place)))
        return found

    def client_ids(self) -> tuple[str, ...]:
        """Ids of the client's calls, in the order in which it got them."""
        return tuple(self._calls.at(place).id for place in sorted(self._numbers, key=self._numbers.__getitem__))

    def _entry(self, entry: JsonObject) -> list[JsonObject]:
        place, _ = self._calls.place(entry)
        out: list[JsonObject] = []
        if place not in self._mine:
            out += self.settle()
            self._mine[place] = None
        extras = {key: value for key, value in entry.items() if key not in _ENTRY_FIELDS and value is not None}
        if extras:
            self._extras.setdefault(place, {}).update(extras)
        mine = self._mine[place]
        if mine is None:
            self._held.setdefault(place, []).append(entry)
            mine = self._whose(place)
            return out if mine is None else out + self._decide(place, mine=mine)
        return out if mine else [*out, self._numbered(place, entry)]

    def _whose(self, place: int) -> bool | None:
        """Names may come in pieces: one that may still become the tool's is nobody's yet, until arguments come."""
        call = self._calls.at(place)
        if call.name == TOOL_NAME:
            return True
        open_still = not call.name or (TOOL_NAME.startswith(call.name) and not call.arguments)
        return None if open_still and call.name not in self._client_tools else False

    def _decide(self, place: int, *, mine: bool) -> list[JsonObject]:
        self._mine[place] = mine
        held = self._held.pop(place, [])
        return [] if mine else [self._numbered(place, entry) for entry in held]

    def _numbered(self, place: int, entry: JsonObject) -> JsonObject:
        number = self._numbers.setdefault(place, len(self._numbers))
        index = entry.get("index")
        if index == number or (index is None and not self.has_own):
            return entry
        return {**entry, "index": number}


def _with_id(call: JsonObject, place: int) -> JsonObject:
    """Some vendors give calls no id; upstream the result must name one."""
    if isinstance(call.get("id"), str) and call["id"]:
        return call
    made = digest("call", str(place), str(as_object(call.get("function")).get("arguments")))
    return {**call, "id": f"call_{made[:24]}"}
