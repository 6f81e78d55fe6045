"""Finding that a tool result repeats earlier ones of its conversation, and mending such pointers when these shrink."""

from __future__ import annotations

import asyncio

from gateway.conversation import Level
from gateway.forms import LARGE
from gateway.levels import call_of
from gateway.message import Message
from gateway.shrink.repeats import against_earlier
from gateway.turn import Turn

LOOK_BACK = 40
"""Earlier results compared with."""
LOOK_BACK_CHARS = 400_000
LEAST_CHARS = 150
"""Shorter results are not worth a pointer."""
LABEL_CHARS = 48


async def shorter(turn: Turn, index: int, whole: Message) -> str | None:
    """The text of `turn.items[index]`, whole in `whole`, with what earlier results hold replaced by pointers; or None."""
    if whole.facts.size < LEAST_CHARS or isinstance(whole.data.get("content"), list):
        return None
    earlier = _earlier(turn, index)
    if not earlier:
        return None
    if len(whole.raw) + sum(len(told) for _, told in earlier) > LARGE:
        return await asyncio.to_thread(against_earlier, whole.text, earlier)
    return against_earlier(whole.text, earlier)


def _earlier(turn: Turn, index: int) -> list[tuple[str, str]]:
    """Label and text of the results before it that stand whole."""
    found: list[tuple[str, str]] = []
    chars = 0
    for before in reversed([at for at in turn.standing() if at < index]):
        item = turn.items[before]
        if not item.original.facts.is_tool or item.level is not Level.WHOLE or item.whole is not None:
            continue
        chars += len(item.sent.raw)
        if len(found) >= LOOK_BACK or chars > LOOK_BACK_CHARS:
            break
        found.append((_label(turn, before), item.sent.text))
    return found[::-1]


def _label(turn: Turn, index: int) -> str:
    name, arguments = call_of(turn, index)
    text = f"{name}({arguments})"
    return text if len(text) <= LABEL_CHARS else text[: LABEL_CHARS - 1] + "…"
