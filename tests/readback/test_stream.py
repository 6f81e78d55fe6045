"""One round of a stream: cut anywhere it gives the same; what is not the gateway's passes as it came."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.forms import TOOL_NAME
from gateway.readback.course import Course, summed
from gateway.readback.stream import Mode, RoundStream
from tests.support.upstream import split_events

RECORDED = ("openai_tools_parallel_seq0", "deepseek_reasoning", "vercel_mistral-tool-call", "openrouter_cache_usage")


def course(*, rounds: int = 0, said: str = "", **totals: Any) -> Course:
    """A course of so many rounds; the turn itself plays no part in a stream."""
    return Course(None, b"k", b"k", 0, ["{}"] * rounds, said, [], totals)  # type: ignore[arg-type]


def event(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    """One event."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + orjson.dumps({"id": "x", "created": 1, "model": "m", "choices": [choice], **more}) + b"\n\n"


def entry(index: int, name: str, arguments: str) -> dict[str, Any]:
    """A whole call in one delta."""
    function = {"name": name, "arguments": arguments}
    return {"tool_calls": [{"index": index, "id": f"id_{index}", "type": "function", "function": function}]}


USAGE = b'data: {"id":"x","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}\n\n'
DONE = b"data: [DONE]\n\n"
MIXED = [
    event({"role": "assistant", "content": ""}),
    b": keep-alive\n\n",
    event({"reasoning_content": "Hm, "}),
    event({"reasoning_content": "so."}),
    event({"content": "Let me "}),
    event({"content": "look. ✓"}),
    event(entry(0, TOOL_NAME, '{"id":"a"}')),
    event(entry(1, "run", "{}")),
    event({}, "tool_calls"),
    USAGE,
    DONE,
]


def run(data: bytes, cuts: list[int], made: RoundStream) -> bytes:
    """Feed in pieces, then the end."""
    ends = [*sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]
    out = b"".join(made.feed(data[a:b]) for a, b in zip([0, *ends], ends, strict=False))
    return out + made.close()


@pytest.mark.parametrize("name", RECORDED)
def test_recordings_pass_as_they_came(shared_data: Path, name: str) -> None:
    data = (shared_data / "sse" / f"{name}.sse").read_bytes()
    made = RoundStream(course(), frozenset(), {})
    assert run(data, [100, 777, 1500, 1501], made) == data
    assert not made.calls.has_own


@settings(max_examples=100)
@given(st.lists(st.integers(0, 5000), max_size=6), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_cuts_and_line_ends_change_nothing(cuts: list[int], line_end: bytes) -> None:
    made = RoundStream(course(), frozenset(["run"]), {})
    data = b"".join(MIXED).replace(b"\n", line_end)
    out = run(data, cuts, made)
    assert made.mode is Mode.HELD
    out += made.release()
    assert TOOL_NAME.encode() not in out
    assert made.text == "Let me look. ✓"
    assert made.calls.client_ids() == ("id_1",)
    assert [own.id for own in made.calls.own()] == ["id_0"]
    assert made.usage == {"prompt_tokens": 5, "completion_tokens": 2}
    plain = out.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    events = [piece.strip() for piece in split_events(plain) if piece.strip()]
    assert events[:6] == [piece.strip() for piece in MIXED[:6]]
    assert orjson.loads(events[6][6:])["choices"][0]["delta"] == {
        "tool_calls": [{**entry(1, "run", "{}")["tool_calls"][0], "index": 0}]
    }
    assert events[-3:] == [piece.strip() for piece in MIXED[-3:]]


def test_a_swallowed_round_keeps_its_text_and_its_usage() -> None:
    made = RoundStream(course(), frozenset(), {})
    both = event({"content": " Now.", **entry(0, TOOL_NAME, "{}")}, "tool_calls", usage={"prompt_tokens": 9})
    out = run(event({"content": "Look."}) + both, [], made) + made.swallow() + made.feed(USAGE + b": still\n\n" + DONE)
    said = [orjson.loads(piece[6:]) for piece in split_events(out) if piece.startswith(b"data")]
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in said) == "Look. Now."
    assert [chunk["choices"][0]["finish_reason"] for chunk in said] == [None, None]
    assert b": still\n\n" in out
    assert b"[DONE]" not in out
    assert b"usage" not in out
    message = made.message()
    assert message["content"] == "Look. Now."
    assert [call["id"] for call in message["tool_calls"]] == ["id_0"]
    assert made.usage == {"prompt_tokens": 5, "completion_tokens": 2}


def test_reasoning_goes_back_upstream() -> None:
    made = RoundStream(course(), frozenset(), {})
    parts = [{"type": "thinking", "thinking": text} for text in ("I ", "see.")]
    blocks = [
        event({"thinking_blocks": [part]}) for part in [*parts, {"type": "thinking", "thinking": "", "signature": "s"}]
    ]
    run(b"".join([*MIXED[:4], *blocks, event(entry(0, TOOL_NAME, "{}")), event({}, "tool_calls")]), [], made)
    message = made.message()
    assert message["reasoning_content"] == "Hm, so."
    assert message["thinking_blocks"] == [{"type": "thinking", "thinking": "I see.", "signature": "s"}]


def test_a_later_round_goes_on_under_the_first_ones_name() -> None:
    first = {"id": "first", "created": 7, "model": "m1"}
    made = RoundStream(course(rounds=2, said="Look.", prompt_tokens=100, completion_tokens=1), frozenset(), first)
    body = [
        event({"role": "assistant", "content": ""}),
        event({"content": "Done"}),
        event({"content": "."}),
        event({}, "stop"),
    ]
    out = run(b"".join([*body, USAGE, DONE]), [], made) + made.release()
    chunks = [orjson.loads(piece[6:]) for piece in split_events(out)[:-1]]
    assert all({name: chunk[name] for name in first} == first for chunk in chunks)
    assert [chunk["choices"][0]["delta"] for chunk in chunks[:-1]] == [{"content": "\n\nDone"}, {"content": "."}, {}]
    assert chunks[-1]["usage"] == {"prompt_tokens": 105, "completion_tokens": 3}
    assert (made.text, made.told) == ("Done.", "\n\nDone.")
    assert out.endswith(DONE)


@pytest.mark.parametrize("end", [b"", DONE])
def test_a_stream_without_a_finish(end: bytes) -> None:
    made = RoundStream(course(), frozenset(), {})
    out = run(event({"content": "Hm."}) + event(entry(0, TOOL_NAME, "{}")) + end, [], made)
    assert made.mode is Mode.HELD
    assert out + made.swallow() == event({"content": "Hm."})
    undecided = RoundStream(course(), frozenset(), {})
    out = run(event(entry(0, "read_", "")), [], undecided)
    assert orjson.loads(out[6:])["choices"][0]["delta"]["tool_calls"][0]["function"]["name"] == "read_"


def test_an_error_passes_in_every_mode() -> None:
    error = b'data: {"error":{"message":"overloaded"}}\n\n'
    for settled in (False, True):
        made = RoundStream(course(), frozenset(), {})
        out = run(event(entry(0, TOOL_NAME, "{}")) + event({}, "tool_calls"), [], made)
        out += made.swallow() if settled else b""
        assert made.feed(error) == error
        assert made.failed


def test_usages_add_up() -> None:
    one = {"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}, "cost": 0.5, "tier": "a", "x": None}
    two = {
        "prompt_tokens": 4,
        "prompt_tokens_details": {"cached_tokens": 1, "audio": 1},
        "cost": 0.25,
        "tier": "b",
        "y": 1,
    }
    assert summed(one, two) == {
        "prompt_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 3, "audio": 1},
        "cost": 0.75,
        "tier": "b",
        "x": None,
        "y": 1,
    }
