"""The splitter against the event stream format, cut at every possible place."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.upstream.sse import Event, EventSplitter


def events_of(*pieces: bytes, limit: int | None = None) -> list[Event]:
    splitter = EventSplitter() if limit is None else EventSplitter(limit)
    found: list[Event] = []
    for piece in pieces:
        found += splitter.feed(piece)
    return found + splitter.finish()


# Stream -> what the HTML standard's algorithm dispatches (leniencies are marked).
CASES: list[tuple[bytes, list[tuple[bytes, str | None]]]] = [
    (b"data: a\n\ndata: b\n\n", [(b"a", None), (b"b", None)]),
    (b"data:a\n\n", [(b"a", None)]),
    (b"data:  a\n\n", [(b" a", None)]),
    (b"data: a\r\n\r\ndata: b\r\n\r\n", [(b"a", None), (b"b", None)]),
    (b"data: a\r\rdata: b\r\r", [(b"a", None), (b"b", None)]),
    (b"data: a\n\r\ndata: b\r\n\n", [(b"a", None), (b"b", None)]),
    (b"data: YHOO\ndata: +2\ndata: 10\n\n", [(b"YHOO\n+2\n10", None)]),
    (b": keep-alive\n\ndata: a\n\n", [(b"a", None)]),
    (b": note\ndata: a\nid: 7\nretry: 10\n\n", [(b"a", None)]),
    (b"event: error\ndata: a\n\ndata: b\n\n", [(b"a", "error"), (b"b", None)]),
    (b"event: ping\n\ndata: b\n\n", [(b"b", None)]),
    (b"\xef\xbb\xbfdata: a\n\n", [(b"a", None)]),
    (b"data: \xef\xbb\xbfa\n\n", [(b"\xef\xbb\xbfa", None)]),
    (b"data: [DONE]\n\n", [(b"[DONE]", None)]),
    (b"data\n\ndata: a\n\n", [(b"a", None)]),
    (b"data:\n\ndata: a\n\n", [(b"a", None)]),
    (b"\n\n\ndata: a\n\n\n\n", [(b"a", None)]),
    (b"data: a", [(b"a", None)]),  # lenient: no blank line at the end
    (b"data: a\n", [(b"a", None)]),  # lenient
    (b" data: a\n\n", [(b"a", None)]),  # lenient: indented
    (b"", []),
    ("data: \u4f60\u597d \U0001f604\n\n".encode(), [("\u4f60\u597d \U0001f604".encode(), None)]),
]


@pytest.mark.parametrize(("stream", "expected"), CASES)
def test_cases_in_any_pieces(stream: bytes, expected: list[tuple[bytes, str | None]]) -> None:
    whole = [Event(*pair) for pair in expected]
    assert events_of(stream) == whole
    assert events_of(*(bytes([byte]) for byte in stream)) == whole
    for cut in range(len(stream)):
        assert events_of(stream[:cut], stream[cut:]) == whole


def test_an_event_is_given_as_soon_as_its_blank_line_is_there() -> None:
    splitter = EventSplitter()
    assert splitter.feed(b"data: a\n") == []
    assert splitter.feed(b"\n") == [Event(b"a", None)]
    assert splitter.feed(b"data: b\r\n\r") == [Event(b"b", None)]
    assert splitter.feed(b"\ndata: c\n\n") == [Event(b"c", None)]


def test_an_event_over_the_limit_is_skipped_and_the_next_is_read() -> None:
    big = b"data: " + b"x" * 50 + b"\n\n"
    lines = b"data: " + b"x" * 20 + b"\ndata: " + b"y" * 20 + b"\n\n"
    for stream in (big, lines):
        assert events_of(stream + b"data: a\n\n", limit=30) == [Event(b"a", None)]
        one_by_one = [bytes([byte]) for byte in stream + b"data: a\n\n"]
        assert events_of(*one_by_one, limit=30) == [Event(b"a", None)]
    splitter = EventSplitter(30)
    for _ in range(1000):
        splitter.feed(b"x" * 10)
    assert sum(map(len, splitter._pieces)) <= 40


@settings(max_examples=150)
@given(
    payloads=st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1)),
    ends=st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=1, max_size=5),
    cuts=st.lists(st.integers(1, 40), min_size=1, max_size=6),
)
def test_what_was_framed_comes_back(payloads: list[str], ends: list[str], cuts: list[int]) -> None:
    stream = b""
    for index, payload in enumerate(payloads):
        end = ends[index % len(ends)]
        # A lone CR before a line that begins with LF would read as one line end.
        stream += f"data: {payload}{end}{end}".encode()
    pieces: list[bytes] = []
    at = 0
    while at < len(stream):
        size = cuts[len(pieces) % len(cuts)]
        pieces.append(stream[at : at + size])
        at += size
    assert [event.data for event in events_of(*pieces)] == [payload.encode() for payload in payloads]
