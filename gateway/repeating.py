"""Finding that a tool result repeats earlier ones of its conversation, and mending such pointers when these shrink."""

from __future__ import annotations

import asyncio
import re

from gateway.conversation import Level
from gateway.levels import call_of
from gateway.message import Message, Recent
from gateway.shrink.repeats import against_earlier
from gateway.turn import Turn

LOOK_BACK = 40
"""Earlier results compared with."""
LOOK_BACK_CHARS = 400_000
COMPARED = 8
"""Of these, those that are compared in full: the ones that share most lines."""
LEAST_CHARS = 150
"""Shorter results are not worth a pointer."""
LEAST_LINE = 8
"""Characters; a shorter line says nothing about where it came from."""
LINES_KEPT = 1_000_000
"""Line hashes kept over all conversations: 60 bytes each, about."""
INLINE_CHARS = 24_000
"""Text compared on the event loop, 1-2 ms; more goes to a thread."""
LABEL_CHARS = 48
_NUMBER = re.compile(r"(?m)^\d{1,7}[:|\t→]")


class Repeats:
    """Finds repeats. Keeps the set of each result's lines, so that only results that share some are compared in full."""

    def __init__(self) -> None:
        self._lines: Recent[bytes, frozenset[int]] = Recent(LINES_KEPT)

    async def shorter(self, turn: Turn, index: int, whole: Message) -> str | None:
        """The text of `turn.items[index]`, whole in `whole`, with what earlier results hold replaced by pointers."""
        if whole.facts.size < LEAST_CHARS or isinstance(whole.data.get("content"), list):
            return None
        near = self._sharing(turn, index, whole)
        if not near:
            return None
        earlier = [(_label(turn, before), turn.items[before].sent.text) for before in near]
        if len(whole.raw) + sum(len(told) for _, told in earlier) > INLINE_CHARS:
            return await asyncio.to_thread(against_earlier, whole.text, earlier)
        return against_earlier(whole.text, earlier)

    def _sharing(self, turn: Turn, index: int, whole: Message) -> list[int]:
        """The earlier results that stand whole and share lines with it: the few that share most, oldest first."""
        wanted = self._lines_of(whole)
        found: list[tuple[int, int]] = []
        looked = chars = 0
        for before in reversed(turn.standing()):
            item = turn.items[before]
            if before >= index or not item.original.facts.is_tool:
                continue
            if item.level is not Level.WHOLE or item.whole is not None:
                continue
            looked += 1
            chars += item.sent.facts.size
            if looked > LOOK_BACK or chars > LOOK_BACK_CHARS:
                break
            shared = len(wanted & self._lines_of(item.sent))
            if shared:
                found.append((shared, before))
        found.sort(reverse=True)
        return sorted(before for _, before in found[:COMPARED])

    def _lines_of(self, message: Message) -> frozenset[int]:
        """Hashes of its lines, line numbers at their beginning left out, the short ones too."""
        found = self._lines.get(message.facts.identity)
        if found is None:
            lines = _NUMBER.sub("", message.text).split("\n")
            found = frozenset([hash(line) for line in lines if len(line) >= LEAST_LINE])
            self._lines.put(message.facts.identity, found, len(found) + 1)
        return found


def _label(turn: Turn, index: int) -> str:
    name, arguments = call_of(turn, index)
    text = f"{name}({arguments})"
    return text if len(text) <= LABEL_CHARS else text[: LABEL_CHARS - 1] + "…"
