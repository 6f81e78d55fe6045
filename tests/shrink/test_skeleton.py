# ruff: noqa: E501  (a case a line reads as a table)

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.shrink.skeleton import skeleton_arguments, skeleton_result
from tests.shrink import logs


def test_long_values_are_elided_and_short_ones_stay() -> None:
    text = "x" * 1_234
    short = skeleton_arguments(json.dumps({"path": "a.py", "content": text, "lines": [1, 2], "opts": {"old": text}}))
    assert json.loads(short) == {
        "path": "a.py",
        "content": "<1,234 chars>",
        "lines": [1, 2],
        "opts": {"old": "<1,234 chars>"},
    }


def test_broken_arguments_become_json() -> None:
    assert isinstance(json.loads(skeleton_arguments('{"path": "a')), dict)
    assert skeleton_arguments("") == "{}"


@pytest.mark.parametrize(
    ("name", "arguments", "result", "line"),
    [
        ("read_file", {"path": "u.py"}, "import os\n\n\ndef parse(x):\n    return x\n\n\nclass Load:\n    pass\n", "9 lines, defines parse, Load"),
        ("Read", {"file_path": "a.go"}, "package a\n\nfunc Open() {}\n\nfunc (s *Store) Close() {}\n", "5 lines, defines Open, Close"),
        ("view", {"path": "a.ts"}, "1:export class Cart {\n2:}\n3:export const total = (a) => a\n", "3 lines, defines Cart, total"),
        ("read", {"path": "m.rs"}, "pub fn one() {}\npub(crate) struct Two;\nimpl Two {}\n" + "// x\n" * 9, "12 lines, defines one, Two"),
        ("grep", {"pattern": "x"}, "a.py:1:x = 1\na.py:9:x = 2\nb.py:3:x = 3\n", "3 matches in 2 files: a.py, b.py"),
        ("bash", {"command": "ls"}, "", "empty"),
        ("bash", {"command": "ls"}, " \n", "empty"),
        ("api", {}, '{"a": 1, "b": [1, 2, 3], "c": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}', "JSON object: keys a, b, c"),
        ("api", {}, json.dumps([{"id": n, "kind": "x"} for n in range(20)]), "list of 20 objects with id, kind"),
        ("bash", {"command": "make"}, "gcc a.c\n" * 9 + "a.c:3:1: error: expected ';'\nexit code: 2\n", "exit 2: a.c:3:1: error: expected ';'"),
        ("web", {}, "A page about birds.\nThey fly.\n" * 3, "6 lines: A page about birds."),
        ("网页", {}, "关于鸟类的页面\n它们会飞\n" * 5, "10 lines: 关于鸟类的页面"),
    ],
)  # fmt: skip
def test_results_in_a_line(name: str, arguments: dict[str, str], result: str, line: str) -> None:
    assert skeleton_result(name, json.dumps(arguments), result) == line


def test_failures_are_told_by_their_first_strongest_line() -> None:
    log = logs.log("cargo")
    line = skeleton_result("bash", '{"command": "cargo test"}', log.text)
    assert "error[E0308]: mismatched types" in line


def test_kept_spans_stay() -> None:
    line = skeleton_result("todo", "{}", "x\n" * 500 + "<keep>a\n b</keep>" + "y\n" * 500)
    assert line.endswith("<keep>a\n b</keep>")


_json: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.sampled_from(["", "x" * 200, "中" * 130, "<keep>k</keep>" * 20])
    | st.text(max_size=9)
    | st.integers(),
    lambda inner: st.lists(inner, max_size=13) | st.dictionaries(st.text(max_size=5), inner, max_size=13),
    max_leaves=12,
)


@settings(max_examples=150)
@given(st.dictionaries(st.text(max_size=6), _json, max_size=6))
def test_arguments_stay_json_with_their_keys(value: dict[str, Any]) -> None:
    text = json.dumps(value)
    short = skeleton_arguments(text)
    assert json.loads(short).keys() == value.keys()
    assert len(short) <= len(text)
    assert skeleton_arguments(short) == short


@settings(max_examples=150)
@given(st.text(max_size=20), st.text(max_size=40), st.text(max_size=600) | _json.map(json.dumps))
def test_any_result_gets_a_short_line(name: str, arguments: str, result: str) -> None:
    line = skeleton_result(name, arguments, result)
    assert len(line) <= 200 or "<keep>" in result
    assert skeleton_result(name, arguments, line) is not None
