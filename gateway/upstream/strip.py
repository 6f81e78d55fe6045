"""Take back out of a stream the one chunk that the gateway itself asked for.

To learn the true prompt size the gateway sets `stream_options.include_usage` where the client did not. The upstream
then closes with a chunk of usage and no choices, which such a client never asked for and some can't read. This filter
removes that chunk; every other byte passes as it came, comments and line ends included.
"""

from __future__ import annotations

import re
from typing import Final

import orjson

from gateway.upstream.sse import MAX_EVENT_BYTES, EventSplitter

_NO_CHOICES: Final = re.compile(rb'"choices"\s*:\s*\[\s*\]')
_BLANK_LINE: Final = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)")
_LINE_ENDS: Final = b"\r\n"
_LOOK_BACK: Final = 3
"""A blank line that straddles two pieces starts at most three bytes (CR LF CR) before the second."""


class UsageChunkFilter:
    """Incremental filter of an event stream.

    A whole event is never held back. The bytes of an event under way wait for its end, since until then it may be
    the usage chunk; one that grows past `MAX_EVENT_BYTES` is no usage chunk and flows on.
    """

    __slots__ = ("_held", "_last_dropped", "_limit", "_split_at_cr", "dropped")

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._held = bytearray()
        self._limit = max_event_bytes
        self._last_dropped = False
        self._split_at_cr = False
        self.dropped = 0
        """How many usage chunks were removed."""

    def feed(self, chunk: bytes) -> bytes:
        """The bytes to send on now; may be empty."""
        if not chunk:
            return b""
        if not self._held and not self._split_at_cr and chunk.endswith(b"\n\n") and not _NO_CHOICES.search(chunk):
            self._last_dropped = False
            return chunk
        return self._slow(chunk)

    def finish(self) -> bytes:
        """What is still held when the stream ends, less a usage chunk that lacked its blank line."""
        rest = bytes(self._held)
        self._held.clear()
        return b"" if rest and self._drops(rest) else rest

    def _slow(self, chunk: bytes) -> bytes:
        out: list[bytes] = []
        if self._split_at_cr:
            # The LF of a CR LF whose CR closed the event before: it goes where that event went.
            self._split_at_cr = False
            if chunk[:1] == b"\n":
                if not self._last_dropped:
                    out.append(b"\n")
                chunk = chunk[1:]
        search_from = max(0, len(self._held) - _LOOK_BACK)
        self._held += chunk
        start = 0
        while match := _BLANK_LINE.search(self._held, max(search_from, start)):
            event = bytes(self._held[start : match.end()])
            start = match.end()
            self._last_dropped = self._drops(event)
            # Stray blank lines before the chunk are not ours to take.
            out.append(event[: len(event) - len(event.lstrip(_LINE_ENDS))] if self._last_dropped else event)
            self._split_at_cr = start == len(self._held) and event.endswith(b"\r")
        del self._held[:start]
        if len(self._held) > self._limit:
            # All but the bytes that may begin a blank line.
            out.append(bytes(self._held[:-_LOOK_BACK]))
            del self._held[:-_LOOK_BACK]
        return b"".join(out)

    def _drops(self, event: bytes) -> bool:
        if not _NO_CHOICES.search(event) or not _is_usage_only(event):
            return False
        self.dropped += 1
        return True


def _is_usage_only(block: bytes) -> bool:
    """Whether the one event in `block` is a chunk with `choices: []` and a usage object, and no error."""
    splitter = EventSplitter()
    events = splitter.feed(block.strip(_LINE_ENDS) + b"\n\n")
    if len(events) != 1:
        return False
    try:
        chunk = orjson.loads(events[0].data)
    except orjson.JSONDecodeError:
        return False
    if not isinstance(chunk, dict) or chunk.get("error"):
        return False
    return chunk.get("choices") == [] and isinstance(chunk.get("usage"), dict)
