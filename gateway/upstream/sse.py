"""Split a stream of server-sent events that arrives in arbitrary pieces.

The client gets the upstream's bytes untouched; this module only serves the copy that is read on the side. It follows
the event stream format of the WHATWG HTML standard (§9.2.6) and is more lenient than it where vendors are: a field may
be indented, the last event may lack its blank line. Memory is bounded: an event over `MAX_EVENT_BYTES` is skipped.
"""

from __future__ import annotations

from typing import Final, NamedTuple

MAX_EVENT_BYTES: Final = 16 * 1024 * 1024
"""The largest event read on the side; an inline image of a few megabytes still fits."""

DONE: Final = b"[DONE]"
"""The data of OpenAI's closing event."""

PING: Final = b": ping\n\n"
PING_EVERY_S: Final = 15.0
"""A stream whose request is still being worked on gets a comment this often, so that no proxy in between gives up."""

_BOM: Final = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event: its `data` lines joined by a line feed, and its `event` name where it has one."""

    data: bytes
    event: str | None


class EventSplitter:
    """Incremental splitter: bytes in, whole events out.

    Pieces may end anywhere, inside a line end or a UTF-8 sequence. Comments, `id` and `retry` are skipped, and events
    without data. Nothing raises.
    """

    __slots__ = ("_after_cr", "_data", "_event", "_held", "_kept", "_limit", "_pieces", "_skipping", "_started")

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._limit = max_event_bytes
        self._pieces: list[bytes] = []  # the line that has not ended yet
        self._data: list[bytes] = []
        self._event: str | None = None
        self._held = 0  # bytes in `_pieces`
        self._kept = 0  # bytes in `_data`
        self._skipping = False
        self._after_cr = False
        self._started = False

    def feed(self, chunk: bytes) -> list[Event]:
        """The events completed by `chunk`."""
        if not chunk:
            return []
        if self._after_cr or b"\r" in chunk:
            chunk = self._normalise(chunk)
        lines = chunk.split(b"\n")
        if len(lines) == 1:
            self._hold(chunk)
            return []
        last = lines.pop()
        if self._pieces:
            self._pieces.append(lines[0])
            lines[0] = self._joined()
        events: list[Event] = []
        for line in lines:
            self._line(line, events)
        if last:
            self._hold(last)
        return events

    def finish(self) -> list[Event]:
        """The last event of a stream that ended without a blank line."""
        events: list[Event] = []
        if self._pieces:
            self._line(self._joined(), events)
        self._line(b"", events)
        return events

    def _normalise(self, chunk: bytes) -> bytes:
        """Every line end as LF; a CR at the end of a piece counts at once and swallows the LF that may follow."""
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _joined(self) -> bytes:
        line = b"".join(self._pieces)
        self._pieces.clear()
        self._held = 0
        return line

    def _hold(self, piece: bytes) -> None:
        if not piece:
            return
        self._pieces.append(piece)
        self._held += len(piece)
        if self._skipping or self._held + self._kept > self._limit:
            self._skip()

    def _skip(self) -> None:
        self._skipping = True
        self._data.clear()
        self._kept = 0
        if self._pieces:
            # One byte stands for the line under way, so that its end is not taken for a blank line.
            self._pieces = [b":"]
            self._held = 1

    def _line(self, line: bytes, events: list[Event]) -> None:
        if not self._started:
            self._started = True
            line = line.removeprefix(_BOM)
        if not line:
            if self._data:
                data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                if data:
                    events.append(Event(data, self._event))
                self._data = []
            self._event = None
            self._kept = 0
            self._skipping = False
        elif not self._skipping:
            self._field(line)

    def _field(self, line: bytes) -> None:
        if line[0] == 0x20 or line[0] == 0x09:
            line = line.lstrip()
        if line.startswith(b"data:"):
            value = line[6:] if line[5:6] == b" " else line[5:]
            self._data.append(value)
            self._kept += len(value)
            if self._kept > self._limit:
                self._skip()
        elif line.startswith(b"event:"):
            self._event = line[6:].decode("utf-8", "replace").strip() or None
