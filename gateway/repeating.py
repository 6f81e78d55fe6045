"""Finding that a tool result repeats earlier ones of its conversation, and mending such pointers when these shrink."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from dataclasses import dataclass, field

from gateway.conversation import Level
from gateway.levels import call_of
from gateway.message import Message, Recent
from gateway.shrink.repeats import against_earlier
from gateway.turn import Turn

LOOK_BACK = 40
"""Earlier results compared with."""
LOOK_BACK_CHARS = 400_000
COMPARED = 4
"""Of these, those that are compared in full: the ones that share most lines."""
LEAST_CHARS = 150
"""Shorter results are not worth a pointer."""
LEAST_LINE = 8
"""Characters; a shorter line says nothing about where it came from."""
GROUPS_KEPT = 300_000
"""Hashes kept over all results: 75 bytes each, about, so 22 MB."""
SEEN_KEPT = 300_000
"""Hashes in the sets of whole conversations, over all of them: 40 to 75 bytes each."""
CONVERSATIONS_KEPT = 2_000
SEEN_MOST = 50_000
"""Hashes of one conversation; past that its set is begun anew."""
INLINE_CHARS = 24_000
"""Text compared on the event loop, 1-2 ms; more goes to a thread."""
LABEL_CHARS = 48
_NUMBER = re.compile(r"(?m)^\d{1,7}[:|\t→]")


class Repeats:
    """Finds repeats. Keeps a set for each result, so that only results that share something are compared in full.

    The sets hold hashes of three lines that follow each other, and of the last two: two results that repeat each other
    share some of these, two logs of the same tool do not.
    """

    def __init__(self) -> None:
        self._groups: Recent[bytes, frozenset[int]] = Recent(GROUPS_KEPT)
        self._seen: OrderedDict[tuple[str, str], _Seen] = OrderedDict()
        self._seen_groups = 0

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
        near = self._near(turn, index)
        seen = self._seen_of(turn)
        size = len(seen.groups)
        for before in near:
            sent = turn.items[before].sent
            if sent.facts.identity not in seen.results:
                seen.results.add(sent.facts.identity)
                seen.groups |= self._groups_of(sent)
        self._grown(len(seen.groups) - size)
        wanted = self._groups_of(whole)
        if wanted.isdisjoint(seen.groups):
            return []
        shared = [(len(wanted & self._groups_of(turn.items[before].sent)), before) for before in near]
        best = sorted((found for found in shared if found[0]), reverse=True)[:COMPARED]
        return sorted(before for _, before in best)

    @staticmethod
    def _near(turn: Turn, index: int) -> list[int]:
        found: list[int] = []
        chars = 0
        for before in reversed(turn.standing()):
            item = turn.items[before]
            if before >= index or not item.original.facts.is_tool:
                continue
            if item.level is not Level.WHOLE or item.whole is not None:
                continue
            chars += item.sent.facts.size
            if len(found) >= LOOK_BACK or chars > LOOK_BACK_CHARS:
                break
            found.append(before)
        return found

    def _seen_of(self, turn: Turn) -> _Seen:
        key = (turn.caller.tenant, turn.session)
        seen = self._seen.get(key)
        if seen is not None and len(seen.groups) > SEEN_MOST:
            self._seen_groups -= len(seen.groups)
            seen = None
        if seen is None:
            seen = self._seen[key] = _Seen()
        self._seen.move_to_end(key)
        return seen

    def _grown(self, groups: int) -> None:
        """Forget the conversations longest unused, down to the limit; the newest stays."""
        self._seen_groups += groups
        while self._seen_groups > SEEN_KEPT and len(self._seen) > 1:
            _, gone = self._seen.popitem(last=False)
            self._seen_groups -= len(gone.groups)
        while len(self._seen) > CONVERSATIONS_KEPT:
            _, gone = self._seen.popitem(last=False)
            self._seen_groups -= len(gone.groups)

    def _groups_of(self, message: Message) -> frozenset[int]:
        """Hashes of its groups of lines, line numbers at their beginning left out."""
        found = self._groups.get(message.facts.identity)
        if found is None:
            lines = [line for line in _NUMBER.sub("", message.text).split("\n") if len(line) >= LEAST_LINE]
            groups = zip(lines, lines[1:], lines[2:], strict=False)
            found = frozenset([*map(hash, groups), *map(hash, (tuple(lines[-2:]), tuple(lines)))])
            self._groups.put(message.facts.identity, found, len(found) + 1)
        return found


@dataclass(slots=True)
class _Seen:
    """All groups of lines of a conversation's results so far, for a first look."""

    results: set[bytes] = field(default_factory=set)
    groups: set[int] = field(default_factory=set)


def _label(turn: Turn, index: int) -> str:
    name, arguments = call_of(turn, index)
    text = f"{name}({arguments})"
    return text if len(text) <= LABEL_CHARS else text[: LABEL_CHARS - 1] + "…"
