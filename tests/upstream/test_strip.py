"""The usage filter removes exactly one kind of chunk and leaves every other byte alone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.upstream.strip import UsageChunkFilter

RECORDINGS = Path(__file__).parents[2].parent / "shared" / "data" / "sse"

USAGE = b'{"id":"c","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}'
TEXT = b'{"id":"c","choices":[{"index":0,"delta":{"content":"hi"}}],"usage":null}'

KEPT = [
    b"data: " + TEXT + b"\n\n",
    b": keep-alive\n\n",
    b'data: {"choices":[],"prompt_filter_results":[{"prompt_index":0}]}\n\n',
    b'data: {"choices":[],"usage":null}\r\n\r\n',
    b'data: {"choices":[],"usage":{"prompt_tokens":1},"error":{"message":"broken"}}\n\n',
    b'data: {"choices":[{"delta":{"content":"\\"choices\\":[] and \\"usage\\":{}"}}],"usage":{"prompt_tokens":1}}\n\n',
    b'data: not json "choices":[] "usage":{}\n\n',
    b"event: x\rdata: 1\r\r",
    b": two blank lines\n\n\n",
    b"data: [DONE]\n\n",
]
DROPPED = [
    b"data: " + USAGE + b"\n\n",
    b"data: " + USAGE + b"\r\n\r\n",
    b'data:{ "choices" : [ ] , "usage" : {"prompt_tokens": 3} }\n\n',
    b"data: " + USAGE + b"\r\r",
]


def filtered(pieces: Iterable[bytes]) -> bytes:
    keep = UsageChunkFilter()
    return b"".join([keep.feed(piece) for piece in pieces] + [keep.finish()])


def cut_up(stream: bytes, sizes: list[int]) -> list[bytes]:
    pieces: list[bytes] = []
    at = 0
    while at < len(stream):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(stream[at : at + size])
        at += size
    return pieces


@settings(max_examples=200)
@given(
    blocks=st.lists(st.one_of(st.sampled_from(KEPT), st.sampled_from(DROPPED)), max_size=12),
    sizes=st.lists(st.integers(1, 90), min_size=1, max_size=6),
)
def test_only_usage_chunks_go(blocks: list[bytes], sizes: list[int]) -> None:
    expected = b"".join(block for block in blocks if block not in DROPPED)
    assert filtered(cut_up(b"".join(blocks), sizes)) == expected


def test_whole_events_are_never_held_back() -> None:
    keep = UsageChunkFilter()
    first = b"data: " + TEXT + b"\n\n"
    assert keep.feed(first) == first
    assert keep.feed(first + first[:20]) == first
    assert keep.feed(first[20:]) == first
    assert keep.feed(b": ping\n\n") == b": ping\n\n"
    assert keep.feed(b"data: " + USAGE + b"\n\ndata: [DONE]\n\n") == b"data: [DONE]\n\n"
    assert keep.finish() == b""
    assert keep.dropped == 1


def test_an_unfinished_last_event() -> None:
    assert filtered([b"data: " + USAGE]) == b""
    assert filtered([b"data: " + USAGE[:-5]]) == b"data: " + USAGE[:-5]
    assert filtered([b"data: " + TEXT + b"\n"]) == b"data: " + TEXT + b"\n"


def test_a_huge_event_flows_on() -> None:
    keep = UsageChunkFilter(max_event_bytes=100)
    event = b"data: " + b"x" * 500
    sent = keep.feed(event)
    assert len(sent) >= 400
    stream = event + b"\n\n" + b"data: [DONE]\n\n"
    assert sent + keep.feed(b"\n\n") + keep.feed(b"data: [DONE]\n\n") + keep.finish() == stream


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_recordings_lose_their_usage_chunk_and_nothing_else(size: int) -> None:
    if not RECORDINGS.is_dir():
        pytest.skip("no ../shared/data/sse beside the repository")
    seen = 0
    for path in sorted(RECORDINGS.glob("*.sse")):
        stream = path.read_bytes()
        blocks = stream.split(b"\n\n")
        expected = [b for b in blocks if not (b'"choices":[]' in b and b'"usage":{' in b)]
        seen += len(blocks) - len(expected)
        assert filtered(cut_up(stream, [size])) == b"\n\n".join(expected), path.name
    assert seen >= 20
