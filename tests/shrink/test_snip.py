from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.shrink.snip import snip
from tests.shrink import logs
from tests.shrink.data import ci_logs, json_documents


def test_short_texts_are_left() -> None:
    assert snip("x" * 3_000) is None


@pytest.mark.parametrize("name", logs.NAMES)
def test_first_and_last_error_of_every_tool_survive(name: str) -> None:
    log = logs.log(name)
    short = snip(log.text)
    assert short is not None
    assert len(short) <= 3_900
    lines = short.split("\n")
    assert log.labels[0] in lines
    assert log.labels[-1] in lines


def test_recorded_ci_logs_keep_the_first_error_and_most_keep_the_last() -> None:
    last = 0
    for name, text, labels in ci_logs():
        short = snip(text)
        assert short is not None
        assert labels[0] in short, name
        last += labels[-1] in short
    assert last >= 4  # one log's labels stop at its fortieth of 151 failures, in the middle


def test_head_and_tail_end_at_lines() -> None:
    text = "\n".join(f"line {n:05d}" for n in range(2_000))
    short = snip(text)
    assert short is not None
    head, tail = short.split("\n[… ")
    assert head == text[: len(head)] and text[len(head)] == "\n" and 1_300 < len(head) <= 1_500
    rest = tail.split("]\n", 1)[1]
    assert text.endswith(rest) and 800 < len(rest) <= 1_000 and rest.startswith("line ")


def test_no_character_is_split() -> None:
    family = "👨‍👩‍👧‍👦"
    short = snip(family * 1_000)
    assert short is not None
    head, tail = short.split("\n[… ")
    assert head == family * (len(head) // len(family))
    rest = tail.split("]\n", 1)[1]
    assert rest == family * (len(rest) // len(family))


def test_diffs_keep_their_hunk_heads() -> None:
    hunks = [f"@@ -{n},3 +{n},4 @@ def function_{n}():\n" + " same line of code\n" * 40 for n in range(1, 1_000, 250)]
    short = snip("diff --git a/x.py b/x.py\n" + " same\n" * 300 + "".join(hunks) + " same\n" * 300)
    assert short is not None
    assert "@@ -1,3 +1,4 @@ def function_1():" in short
    assert "@@ -751,3 +751,4 @@ def function_751():" in short


def test_json_stays_json_and_keeps_both_ends() -> None:
    value = [{"id": n, "note": f"note {n} " * 9, "deep": {"a": {"b": {"c": [n] * 50}}}} for n in range(400)]
    text = json.dumps(value)
    short = snip(text)
    assert short is not None and len(short) <= 3_000
    parsed = json.loads(short)
    assert parsed[0]["id"] == 0 and parsed[-1]["id"] == 399
    assert any(isinstance(item, str) and "of 400 items" in item for item in parsed)
    assert snip(short) is None


def test_recorded_json_documents_stay_json() -> None:
    for name, text in json_documents():
        short = snip(text)
        assert short is not None, name
        assert len(short) <= 3_000, name
        assert isinstance(json.loads(short), dict | list), name


def test_kept_spans_stay_verbatim() -> None:
    span = "<keep>exactly\n\tthis</keep>"
    for place in (0, 1_450, 5_000, 9_000, 9_980):
        text = "." * place + span + "." * (10_000 - place)
        text = "\n".join(text[at : at + 10_000] for at in range(0, len(text), 10_000))
        if span not in text:
            continue
        short = snip(text)
        assert short is None or span in short


_text = st.lists(
    st.sampled_from(["\n", "\r\n", "error: x\n", "a" * 50, "é", "👍🏽", "<keep>k</keep>", "FAIL\n"]), max_size=400
).map("".join)


@settings(max_examples=150)
@given(_text)
def test_shorter_and_settled(text: str) -> None:
    short = snip(text, max_chars=600, head=300, tail=200, signal=200)
    if short is None:
        return
    assert len(short) < len(text)
    assert snip(short, max_chars=600, head=300, tail=200, signal=200) is None
    assert short.count("<keep>k</keep>") == text.count("<keep>k</keep>")


_values: st.SearchStrategy[Any] = st.recursive(
    st.integers() | st.sampled_from(["", "x" * 300, "中" * 150, "é"]),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=5), inner, max_size=8),
)


@settings(max_examples=100)
@given(st.lists(_values, min_size=1, max_size=10))
def test_any_json_stays_valid(value: list[Any]) -> None:
    text = json.dumps(value)
    short = snip(text, max_chars=400)
    if short is not None and short[:1] == "[" and not short.startswith("[…"):
        assert len(short) < len(text)
        assert len(short) > 400 or json.loads(short) is not None
