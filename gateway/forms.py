"""The forms a message can take, from whole to skeleton, each made once and remembered.

Every form is a pure function of the message (and, for a skeleton, of the call it answers), so a decision only has to
remember the level: the bytes come out the same on every turn, on every replica, after every restart.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gateway.message import Message, Messages, Recent
from gateway.settings import Settings
from gateway.shrink.budget import cut_output
from gateway.shrink.fold import fold, unfold_rows
from gateway.shrink.linerows import FORM_END
from gateway.shrink.parts import map_text
from gateway.shrink.skeleton import skeleton_arguments, skeleton_result
from gateway.shrink.snip import snip
from gateway.types import ChatMessage

FORMS_BYTES = 32 * 1024 * 1024
"""Of forms kept."""
UNCHANGED_WEIGHT = 400
"""Bytes that remembering "nothing to win here" costs, measured: a key of three, and its places in two maps."""
FORM_WEIGHT = 1_200
"""Bytes that a form costs beside its JSON: the same, a message and its facts."""
SPILLED_BYTES = 32 * 1024 * 1024
"""Of messages within their budget, with the whole texts that were cut."""
WORTH_IT = 0.97
"""Of a message's tokens: a form is used from here down. Estimates err, and a change that wins nothing is none."""
SHORTEST = 200
"""Characters; no text is cut to less."""
LARGE = 8 * 1024
"""Bytes; a message over this is worked on in a thread: folding takes a millisecond for so much."""
SPILL_ID_CHARS = 32
"""128 bits of the text's SHA-256: content-addressed, and short enough to name in a prompt."""
TOOL_NAME = "read_spilled_output"


@dataclass(frozen=True, slots=True)
class Spilled:
    """A tool message within its budget, and the whole texts that were cut, by id."""

    message: Message
    texts: tuple[tuple[str, str], ...]


class Forms:
    """Makes forms. Every method gives back the very same `Message` where nothing is to be won."""

    def __init__(self, settings: Settings, messages: Messages) -> None:
        self._settings = settings
        self._messages = messages
        self._kept: Recent[tuple[str, bytes, int], Message | bool] = Recent(FORMS_BYTES)
        self._spilled: Recent[tuple[bytes, int], Spilled] = Recent(SPILLED_BYTES)

    def folded(self, message: Message, *, quotable: bool = False) -> Message:
        """Tier 0: nothing lost; `quotable` text, a file's own, keeps every character that an edit might quote."""
        fold_text = functools.partial(fold, quotable=quotable)
        return self._form("fold", message, int(quotable), lambda data: map_text(data, fold_text))

    def known(self, form: str, message: Message, size: int = 0) -> bool:
        """Whether the form has been made before, and so costs nothing now."""
        return self._kept.get((form, message.facts.key, size)) is not None

    @staticmethod
    def in_rows(message: Message) -> bool:
        """Whether lines of it may be folded to rows: it is longer than it looks."""
        return FORM_END.encode() in message.raw

    def within_budget(self, message: Message, max_chars: int) -> Spilled:
        """Tier 1: the message cut to `max_chars` where it is over them, or over `spill.max_lines`."""
        key = (message.facts.key, max_chars)
        found = self._spilled.get(key)
        if found is None:
            found = self._cut(message, max_chars, self._settings.spill.max_lines)
            weight = FORM_WEIGHT + len(found.message.raw) + sum(len(text) for _, text in found.texts)
            self._spilled.put(key, found, weight)
        return found

    def snipped(self, message: Message) -> Message:
        """Tier 2: head, tail and signal lines."""
        rule = self._settings.snip

        def cut(text: str) -> str:
            plain = unfold_rows(text)
            return snip(plain, max_chars=rule.max_chars, head=rule.head, tail=rule.tail, signal=rule.signal) or text

        return self._form("snip", message, 0, lambda data: map_text(data, cut))

    def skeleton_of_result(self, message: Message, name: str, arguments: str) -> Message:
        """Tier 3, for a tool's result: one line."""
        call = hash((name, arguments))
        return self._form(
            "result", message, call, lambda data: map_text(data, functools.partial(_skeleton, name, arguments))
        )

    def skeleton_of_call(self, message: Message) -> Message:
        """Tier 3, for an assistant's calls: their long arguments elided."""
        return self._form("call", message, 0, _elided)

    def with_text(self, message: Message, text: str) -> Message:
        """The message with its text replaced."""
        return self._messages.make(_replaced(message.data, text))

    def shortened(self, message: Message, share: float) -> tuple[Message, tuple[tuple[str, str], ...]]:
        """The message with only that share of its text, head and tail, and the whole texts by spill id."""
        made = self._cut(message, max(SHORTEST, int(message.facts.size * share)), max_lines=message.facts.size + 1)
        return made.message, made.texts

    def _form(
        self, name: str, message: Message, size: int, change: Callable[[ChatMessage], ChatMessage | None]
    ) -> Message:
        key = (name, message.facts.key, size)
        found = self._kept.get(key)
        if found is None:
            data = change(message.data)
            made = message if data is None else self._messages.make(data)
            if made.facts.tokens <= WORTH_IT * message.facts.tokens:
                found = Message(made.raw, made.facts)
                self._kept.put(key, found, FORM_WEIGHT + len(made.raw))
            else:
                found = True
                self._kept.put(key, found, UNCHANGED_WEIGHT)
        return found if isinstance(found, Message) else message

    def _cut(self, message: Message, max_chars: int, max_lines: int) -> Spilled:
        texts: list[tuple[str, str]] = []

        def cut(text: str) -> str:
            plain = unfold_rows(text)
            name = spill_id(plain)
            short = cut_output(plain, max_chars=max_chars, max_lines=max_lines, where=self.where(name))
            if short is None or len(short) >= len(text):
                return text
            texts.append((name, plain))
            return short

        data = map_text(message.data, cut)
        if data is None or not texts:
            return Spilled(message, ())
        return Spilled(self._messages.make(data), tuple(texts))

    def where(self, name: str) -> str:
        """How the whole text kept under a spill id is got at: what a note at the cut says."""
        if self._settings.spill.tool:
            return f'{TOOL_NAME}(id="{name}")'
        return f"/v1/memory/spill/{name}"


def spill_id(text: str) -> str:
    """The id under which a text is kept in the spill."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:SPILL_ID_CHARS]


def _skeleton(name: str, arguments: str, text: str) -> str:
    return skeleton_result(name, arguments, unfold_rows(text))


def _elided(data: ChatMessage) -> ChatMessage | None:
    changed = dict(data)
    calls = data.get("tool_calls")
    if isinstance(calls, list):
        changed["tool_calls"] = [_with_short_arguments(call, "function") for call in calls]
    changed = _with_short_arguments(changed, "function_call")
    return None if changed == data else changed


def _with_short_arguments(holder: Any, key: str) -> Any:
    """`holder` with the arguments of the function at `key` elided, or itself where there are none to elide."""
    function = holder.get(key) if isinstance(holder, dict) else None
    arguments = function.get("arguments") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(arguments, str):
        return holder
    short = skeleton_arguments(arguments)
    return holder if short == arguments else {**holder, key: {**function, "arguments": short}}


def _replaced(data: ChatMessage, text: str) -> ChatMessage:
    content = data.get("content")
    if not isinstance(content, list):
        return {**data, "content": text}
    rest = [part for part in content if not (isinstance(part, dict) and part.get("type") == "text")]
    return {**data, "content": [{"type": "text", "text": text}, *rest]}
