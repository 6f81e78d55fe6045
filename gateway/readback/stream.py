"""One upstream stream of a turn in which the tool is offered: what of it the client gets, and when.

Text and reasoning pass as they come, most of them as the very bytes of the upstream. What is taken out are the
gateway's own calls and, where a round is not the last, its end. Later rounds go on under the first one's identity.
"""

from __future__ import annotations

import enum
import re
from typing import Any, Final

from gateway.body import as_object, decode, encode
from gateway.readback.calls import CallRouter
from gateway.readback.course import Course, summed
from gateway.types import ChatMessage, JsonObject
from gateway.upstream.reply import error_of
from gateway.upstream.sse import DONE, MAX_EVENT_BYTES, EventSplitter
from gateway.upstream.usage import find_usage

_BLANK_LINE: Final = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)")
_LOOK_BACK: Final = 3
"""A blank line that straddles two pieces starts at most three bytes before the second."""
_IDENTITY: Final = ("id", "created", "model")
_PARAGRAPH: Final = "\n\n"
"""Between the texts of two rounds, where neither brings white space."""
_TEXTS_KEPT: Final = ("reasoning_content",)
_LISTS_KEPT: Final = ("reasoning_details", "thinking_blocks")
"""Beside its text, what a model must get back of its own message: DeepSeek, Moonshot; OpenRouter, Anthropic."""
_GROWING: Final = ("text", "thinking", "summary", "data")
CUT_SHORT: Final = frozenset(("length", "content_filter"))
"""Finish reasons after which a call may be broken off in its middle."""


class Mode(enum.Enum):
    """What becomes of events."""

    OPEN = enum.auto()
    """They pass, without the gateway's calls."""
    HELD = enum.auto()
    """The finish has come; somebody has to decide whether the round is the last."""
    SWALLOWED = enum.auto()
    """It was not: only errors and comments pass."""


class RoundStream:
    """Bytes of one round in, bytes for the client out."""

    def __init__(self, course: Course, client_tools: frozenset[str], identity: JsonObject) -> None:
        self.mode = Mode.OPEN
        self.calls = CallRouter(client_tools)
        self.finish_reason = ""
        self.failed = False
        """The upstream reported an error."""
        self.text = ""
        """What the model said in this round."""
        self.told = ""
        """The same, as the client gets it after the rounds before."""
        self.usage: JsonObject | None = None
        self._course = course
        self._later = bool(course.rounds)
        self._identity = identity
        self._decided = False
        self._buffer = bytearray()
        self._tail: list[bytes] = []
        self._finish: JsonObject = {}
        self._kept: JsonObject = {}

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes, decoded from any content encoding."""
        search_from = max(0, len(self._buffer) - _LOOK_BACK)
        self._buffer += data
        out: list[bytes] = []
        start = 0
        while match := _BLANK_LINE.search(self._buffer, max(search_from, start)):
            out.append(self._block(bytes(self._buffer[start : match.end()])))
            start = match.end()
        del self._buffer[:start]
        if len(self._buffer) > MAX_EVENT_BYTES:
            out.append(bytes(self._buffer))
            self._buffer.clear()
        return b"".join(out)

    def close(self) -> bytes:
        """The upstream's stream has ended: the last event may lack its blank line, and the finish may be missing."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        out = self._block(rest + _PARAGRAPH.encode()) if rest.strip() else b""
        return out + self._unfinished() if self.mode is Mode.OPEN and not self._decided else out

    def _unfinished(self) -> bytes:
        """The end of a stream that had no finish."""
        left = self.calls.settle()
        self._hold()
        if not left:
            return b""
        return _event({**self._identity, "object": "chat.completion.chunk", "choices": [_choice(left)]})

    def release(self) -> bytes:
        """The round is the last one: what was held goes out, as if there had been no call of the gateway's."""
        self._decided, self.mode = True, Mode.OPEN
        out = []
        if self._finish:
            choice = self._finish["choices"][0]
            if self.calls.has_own and not self.calls.client_ids() and choice["finish_reason"] not in CUT_SHORT:
                choice["finish_reason"] = "stop"
            out.append(_event(self._finish))
        tail, self._tail = self._tail, []
        return b"".join([*out, *(self._block(block) for block in tail)])

    def swallow(self) -> bytes:
        """Another round follows: of what was held only text goes out."""
        self._decided, self.mode = True, Mode.SWALLOWED
        chunk = {key: value for key, value in self._finish.items() if key != "usage"}
        if chunk:
            chunk["choices"][0]["finish_reason"] = None
        out = [] if _is_empty(chunk) else [_event(chunk)]
        tail, self._tail = self._tail, []
        return b"".join([*out, *(self._block(block) for block in tail)])

    def message(self) -> ChatMessage:
        """The assistant message of a round whose calls are all the gateway's, as it goes back upstream."""
        calls = [own.call for own in self.calls.own()]
        return {"role": "assistant", "content": self.text or None, **self._kept, "tool_calls": calls}

    def _block(self, block: bytes) -> bytes:
        events = EventSplitter().feed(block)
        if not events:
            return block
        chunk = _object(events[0].data)
        if error_of(chunk, events[0].event) is not None:
            self.failed = True
            return block
        if self.mode is Mode.HELD:
            self._tail.append(block)
            return b""
        if events[0].data == DONE:
            return self._done(block)
        if chunk.get("choices") is None and find_usage(chunk) is None:
            return block
        usage = find_usage(chunk)
        self.usage = usage if usage else self.usage
        if self.mode is Mode.SWALLOWED:
            return b""
        return self._chunk(block, chunk)

    def _done(self, block: bytes) -> bytes:
        if self.mode is Mode.SWALLOWED:
            return b""
        out = self._unfinished() if not self._decided else b""
        if self.mode is Mode.HELD:
            self._tail.append(block)
            return out
        return out + block

    def _chunk(self, block: bytes, chunk: JsonObject) -> bytes:
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        finish = choice.get("finish_reason")
        changed = self._route(choice, last=bool(finish))
        delta = as_object(choice.get("delta"))
        self._collect(delta)
        changed = self._identify(chunk, delta) or changed
        self.told += _content(delta)
        changed = _add_usage(chunk, self._course.totals) or changed
        if isinstance(finish, str) and finish and not self._decided:
            self.finish_reason = finish
            self._finish = chunk
            if self._hold():
                return b""
        if not changed:
            return block
        return b"" if _is_empty(chunk) else _event(chunk)

    def _route(self, choice: JsonObject, *, last: bool) -> bool:
        """Take the gateway's calls out of a delta."""
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return False
        entries = delta.get("tool_calls")
        given = entries if isinstance(entries, list) else []
        kept = self.calls.route(given)
        if last:
            kept += self.calls.settle()
        if kept == given:
            return False
        if kept:
            delta["tool_calls"] = kept
        else:
            del delta["tool_calls"]
        return True

    def _identify(self, chunk: JsonObject, delta: JsonObject) -> bool:
        """Later rounds under the first one's identity, their text a paragraph of its own."""
        if not self._later:
            for name in _IDENTITY:
                if name in chunk:
                    self._identity.setdefault(name, chunk[name])
            return False
        chunk.update(self._identity)
        delta.pop("role", None)
        content, said = delta.get("content"), self._course.said
        if content and isinstance(content, str) and said and not self.told:
            parted = said[-1].isspace() or content[0].isspace()
            delta["content"] = content if parted else _PARAGRAPH + content
        return True

    def _hold(self) -> bool:
        """At a round's end: hold it where there is something to decide."""
        self._decided = not (self.calls.has_own or self._later)
        self.mode = self.mode if self._decided else Mode.HELD
        return not self._decided

    def _collect(self, delta: JsonObject) -> None:
        self.text += _content(delta)
        for name in _TEXTS_KEPT:
            if isinstance(delta.get(name), str):
                self._kept[name] = self._kept.get(name, "") + delta[name]
        for name in _LISTS_KEPT:
            if isinstance(delta.get(name), list):
                self._kept[name] = _joined(self._kept.get(name, []), delta[name])


def _content(delta: JsonObject) -> str:
    content = delta.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _object(data: bytes) -> JsonObject:
    try:
        return as_object(decode(data))
    except (ValueError, RecursionError):
        return {}


def _event(chunk: JsonObject) -> bytes:
    return b"data: " + encode(chunk) + b"\n\n"


def _choice(entries: list[JsonObject]) -> JsonObject:
    return {"index": 0, "delta": {"tool_calls": entries}, "finish_reason": None}


def _is_empty(chunk: JsonObject) -> bool:
    """Whether a chunk says nothing any more."""
    if chunk.get("usage") is not None:
        return False
    for choice in chunk.get("choices") or ():
        delta = as_object(as_object(choice).get("delta"))
        if as_object(choice).get("finish_reason") or any(value not in (None, "", []) for value in delta.values()):
            return False
    return True


def _add_usage(chunk: JsonObject, totals: JsonObject) -> bool:
    """Make a round's usage that of all rounds so far, wherever it stands in the chunk."""
    if not totals or find_usage(chunk) is None:
        return False
    choices = chunk.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    changed = False
    for holder in (chunk, chunk.get("x_groq"), first):
        if isinstance(holder, dict) and isinstance(holder.get("usage"), dict):
            holder["usage"] = summed(totals, holder["usage"])
            changed = True
    return changed


def _joined(blocks: list[Any], more: list[Any]) -> list[Any]:
    """Streamed reasoning blocks put together: text grows, a signature closes its block."""
    out = list(blocks)
    for block in more:
        last = out[-1] if out else None
        if isinstance(block, dict) and isinstance(last, dict) and _continues(last, block):
            out[-1] = {**last, **{key: _grown(key, last.get(key), value) for key, value in block.items() if value}}
        else:
            out.append(block)
    return out


def _continues(last: JsonObject, block: JsonObject) -> bool:
    return not last.get("signature") and all(block.get(name) == last.get(name) for name in ("type", "index"))


def _grown(key: str, old: Any, new: Any) -> Any:
    return old + new if key in _GROWING and isinstance(old, str) and isinstance(new, str) else new
