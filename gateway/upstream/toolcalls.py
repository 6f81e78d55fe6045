"""Put streamed tool calls together again.

OpenAI's rule is by `index`. Vendors leave the index out, repeat ids or names on each delta, send `''` as an id, give
two calls the same index, or send arguments as an object: each of these once merged or lost calls in some gateway.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson

from gateway.types import JsonObject


@dataclass(slots=True)
class ToolCall:
    """One call the model made; `arguments` is the JSON text as it came, whole or broken."""

    id: str
    name: str
    arguments: str


@dataclass(slots=True)
class _Slot:
    order: int
    place: int
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    def arguments(self) -> str:
        return "".join(self.pieces)


class ToolCallAssembler:
    """Takes `tool_calls` entries in the order they come; `calls()` gives the calls so far, by index."""

    __slots__ = ("_by_index", "_slots")

    def __init__(self) -> None:
        self._slots: list[_Slot] = []
        self._by_index: dict[int, _Slot] = {}

    def add(self, entry: JsonObject) -> int:
        """Take one entry; returns the characters of arguments it added."""
        return self.place(entry)[1]

    def place(self, entry: JsonObject) -> tuple[int, int]:
        """Take one entry; returns which call it belongs to, from 0 as they came, and the characters it added."""
        call_id = entry.get("id")
        call_id = call_id if isinstance(call_id, str) else ""
        function = entry.get("function")
        if not isinstance(function, dict):
            function = entry.get("custom")
        if not isinstance(function, dict):
            function = {}
        name = function.get("name")
        name = name if isinstance(name, str) else ""
        arguments = _text(function["input"] if "input" in function else function.get("arguments"))
        slot = self._slot(entry.get("index"), call_id, name, arguments)
        slot.id = slot.id or call_id
        if name and name != slot.name:
            slot.name += name
        if arguments:
            slot.pieces.append(arguments)
        return slot.place, len(arguments)

    def at(self, place: int) -> ToolCall:
        """A call so far, by `place`."""
        slot = self._slots[place]
        return ToolCall(slot.id, slot.name, slot.arguments())

    def calls(self) -> list[ToolCall]:
        """The calls so far."""
        return [ToolCall(s.id, s.name, s.arguments()) for s in sorted(self._slots, key=lambda slot: slot.order)]

    def _slot(self, index: Any, call_id: str, name: str, arguments: str) -> _Slot:
        if isinstance(index, int):
            slot = self._by_index.get(index)
            if slot is None or self._starts_anew(slot, call_id, name, arguments):
                slot = self._by_index[index] = self._open(index)
            return slot
        if call_id:
            for slot in self._slots:
                if slot.id == call_id:
                    return slot
            return self._open(len(self._slots))
        if not self._slots or (name and self._slots[-1].name):
            return self._open(len(self._slots))
        return self._slots[-1]

    def _open(self, order: int) -> _Slot:
        slot = _Slot(order, len(self._slots))
        self._slots.append(slot)
        return slot

    @staticmethod
    def _starts_anew(slot: _Slot, call_id: str, name: str, arguments: str) -> bool:
        """Whether an entry at an index in use is another call: by its id, else by a name after whole arguments."""
        if call_id and slot.id:
            return call_id != slot.id
        if not name or not slot.name or not slot.pieces:
            return False
        return name != slot.name or (bool(arguments) and _is_whole(slot.arguments()))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else orjson.dumps(value, default=str).decode()


def _is_whole(arguments: str) -> bool:
    try:
        orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return False
    return True
