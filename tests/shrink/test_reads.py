from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.shrink.reads import Call, classify_reads, edit_paths, read_paths, superseded


@pytest.mark.parametrize(
    ("name", "arguments", "read", "edited"),
    [
        ("read_file", {"path": "src/a.py"}, "src/a.py", None),
        ("Read", {"file_path": "/srv/a.py", "offset": 3}, "/srv/a.py", None),
        ("open", {"path": "./a.py", "line_number": 9}, "a.py", None),
        ("view", {"filePath": "a//b.py"}, "a/b.py", None),
        ("str_replace_based_edit_tool", {"command": "view", "path": "a.py"}, "a.py", None),
        ("str_replace_based_edit_tool", {"command": "str_replace", "path": "a.py", "old_str": "x"}, None, "a.py"),
        ("str_replace_editor", {"command": "create", "path": "a.py", "file_text": "x"}, None, "a.py"),
        ("Write", {"file_path": "a.py", "content": "x"}, None, "a.py"),
        ("edit_file", {"target_file": "a.py", "code_edit": "x"}, None, "a.py"),
        (
            "apply_patch",
            {"input": "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** End Patch"},
            None,
            "src/a.py",
        ),
        ("bash", {"command": "cat src/a.py"}, "src/a.py", None),
        ("bash", {"command": "cd /srv && sed -n '10,40p' a.py"}, "a.py", None),
        ("shell", {"command": ["bash", "-lc", "head -n 50 a.py"]}, "a.py", None),
        ("bash", {"command": "sed -i 's/x/y/' a.py"}, None, "a.py"),
        ("bash", {"command": "cat > a.py <<'EOF'\nx\nEOF"}, None, "a.py"),
        ("bash", {"command": "git checkout -- a.py"}, None, "a.py"),
        ("bash", {"command": "git diff"}, None, None),
        ("bash", {"command": "cat a.py b.py"}, None, None),
        ("bash", {"command": "pytest -q 2>/dev/null"}, None, None),
        ("bash", {"command": "grep -rn foo src | head -20"}, None, None),
        ("read_directory", {"path": "src"}, None, None),
        ("create_issue", {"path": "x"}, None, None),
        ("search_flights", {"origin": "JFK"}, None, None),
    ],
)
def test_common_tools(name: str, arguments: dict[str, Any], read: str | None, edited: str | None) -> None:
    text = json.dumps(arguments)
    assert read_paths(name, text) == read
    assert edit_paths(name, text) == edited


def _call(index: int, name: str, path: str, result: str = "…") -> Call:
    return Call(index, name, json.dumps({"path": path}), result)


def test_a_later_read_supersedes_and_the_newest_of_an_edited_file_is_guarded() -> None:
    calls = [
        _call(0, "read_file", "a.py"),
        _call(1, "read_file", "b.py"),
        _call(2, "read_file", "a.py"),
        _call(3, "edit_file", "a.py"),
    ]
    found = classify_reads(calls)
    assert found.superseded == {0}
    assert found.guarded == {2}


def test_an_edit_that_shows_the_file_supersedes_the_read_before_it() -> None:
    shown = "[File: a.py]\n1:import os\n2:\n3:x = 1\n4:y = 2\n"
    calls = [_call(0, "read_file", "a.py"), _call(1, "edit", "a.py", shown)]
    found = classify_reads(calls)
    assert found.superseded == {0}
    assert found.guarded == {1}
    assert superseded(calls) == {0}


@settings(max_examples=150)
@given(
    st.text(max_size=20) | st.sampled_from(["bash", "read", "edit"]),
    st.text(max_size=40)
    | st.dictionaries(st.sampled_from(["path", "command", "x"]), st.text(max_size=30)).map(json.dumps),
)
def test_nothing_raises(name: str, arguments: str) -> None:
    for path in (read_paths(name, arguments), edit_paths(name, arguments)):
        assert path is None or isinstance(path, str)
