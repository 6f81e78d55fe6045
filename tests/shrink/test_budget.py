from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.shrink.budget import cut_output
from tests.shrink import logs
from tests.shrink.data import ci_logs


def test_what_fits_is_left() -> None:
    assert cut_output("a\nb", max_chars=100, max_lines=2) is None


@pytest.mark.parametrize("name", logs.NAMES)
@pytest.mark.parametrize("max_chars", [40_000, 12_800])
def test_every_labelled_line_of_every_tool_stays_whole(name: str, max_chars: int) -> None:
    log = logs.log(name)
    cut = cut_output(log.text, max_chars=max_chars, max_lines=1_000)
    assert cut is not None
    assert len(cut) <= max_chars
    lines = cut.split("\n")
    assert len(lines) <= 1_000
    assert [label for label in log.labels if label not in lines] == []


def test_recorded_ci_logs_keep_their_errors() -> None:
    kept = total = 0
    for _, text, labels in ci_logs():
        cut = cut_output(text, max_chars=40_000, max_lines=1_000, where="GET /v1/memory/spill/abc")
        assert cut is not None
        assert len(cut) <= 40_000
        assert len(cut.split("\n")) <= 1_000
        assert "whole output: GET /v1/memory/spill/abc]" in cut
        kept += sum(label in cut for label in labels)
        total += len(labels)
    assert total == 62
    assert kept >= 59  # the contract's figure; head and tail alone keep 2


def test_line_numbers_name_the_lines_of_the_whole() -> None:
    log = logs.log("gradle")
    whole = log.text.split("\n")
    cut = cut_output(log.text)
    assert cut is not None
    lines = cut.split("\n")
    named = [(at, int(line[1:-1])) for at, line in enumerate(lines) if line[:1] == "[" and line[1:-1].isdigit()]
    assert len(named) >= 2
    for at, number in named:
        assert lines[at + 1] == whole[number - 1]
    end = next(at for at, line in enumerate(lines) if line.endswith(" to the end]"))
    assert whole[int(lines[end][1:].split()[0]) - 1 :] == lines[end + 1 :]


def test_head_and_tail_stay() -> None:
    text = "\n".join(f"line {n} of a quiet output" for n in range(5_000))
    cut = cut_output(text, max_chars=8_000, max_lines=1_000)
    assert cut is not None
    assert cut.startswith("\n".join(f"line {n} of a quiet output" for n in range(50)))
    assert cut.endswith("line 4999 of a quiet output")
    assert len(cut) > 7_000  # what no signal needs goes to the tail


def test_one_endless_line_is_cut() -> None:
    cut = cut_output("x" * 1_000_000 + " the end", max_chars=10_000, max_lines=100)
    assert cut is not None
    assert 5_000 < len(cut) <= 10_000
    assert cut.endswith("the end")


def test_json_stays_json() -> None:
    value = {"items": [{"id": n, "text": "word " * 30} for n in range(3_000)], "total": 3_000}
    cut = cut_output(json.dumps(value), max_chars=20_000, max_lines=1_000, where="spill abc")
    assert cut is not None and len(cut) <= 20_000
    parsed = json.loads(cut)
    assert parsed["total"] == 3_000
    assert parsed["items"][0] == value["items"][0]  # type: ignore[index]
    assert parsed["items"][-1] == value["items"][-1]  # type: ignore[index]
    assert "of 3,000 items" in cut
    assert "spill abc" in cut


def test_kept_spans_stay_verbatim() -> None:
    span = "<keep>\nthe plan: \n  1. do this\n</keep>"
    text = "noise\n" * 4_000 + span + "\n" + "noise\n" * 4_000
    cut = cut_output(text, max_chars=5_000, max_lines=500)
    assert cut is not None
    assert span in cut
    assert cut_output(cut, max_chars=5_000, max_lines=500) is None


_lines = st.sampled_from(
    ["", "ok", "error: x", "FAILED a", "x" * 900, "失败:超时", "<keep>", "</keep>", "{", "😀" * 40, "\r", "warn"]
)


@settings(max_examples=150)
@given(
    st.lists(_lines | st.text(max_size=30), max_size=200), st.integers(600, 4_000), st.integers(20, 150), st.booleans()
)
def test_limits_hold_and_the_cut_settles(lines: list[str], max_chars: int, max_lines: int, named: bool) -> None:
    text = "\n".join(lines)
    cut = cut_output(text, max_chars=max_chars, max_lines=max_lines, where="there" if named else None)
    if cut is None:
        assert (len(text) <= max_chars and text.count("\n") < max_lines) or "<keep>" in text
        return
    assert len(cut) < len(text)
    if "<keep>" not in text:
        assert len(cut) <= max_chars
        assert cut.count("\n") < max_lines
        assert cut_output(cut, max_chars=max_chars, max_lines=max_lines) is None


@pytest.mark.parametrize(
    "text", ["\n" * 300_000, "error\n" * 200_000, "[" * 200_000, "<keep>" * 50_000, '{"a":' * 90_000], ids=range(5)
)
def test_hostile_input(text: str) -> None:
    cut = cut_output(text)
    assert cut is None or len(cut) < len(text)
