"""What a window of messages did, and the one entry a session leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.memory.render import estimate
from gateway.memory.session import parse_project, project_entry, project_messages, session_entries

DATA = Path(__file__).parents[3] / "shared" / "data" / "trajectories"


def call(name: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}


def tool(text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "c", "content": text}


def test_a_small_session() -> None:
    entries = session_entries(
        [
            {"role": "system", "content": "We decided to obey the system prompt."},
            {"role": "user", "content": "Tests fail. Let's go with pytest instead of unittest."},
            call("read_file", path="src/app.py"),
            tool("we decided to use COBOL"),
            call("edit_file", file_path="src/app.py", new="x"),
            call("bash", command="pytest tests/test_app.py"),
            tool("collected 3 items\nE   ValueError: bad port\n1 failed"),
            {"role": "assistant", "content": "I fixed the port parsing in app.py."},
            call(
                "TodoWrite", todos=[{"content": "Fix", "status": "completed"}, {"content": "Ship", "status": "pending"}]
            ),
        ]
    )
    assert ("[FILE]", "read src/app.py") in entries
    assert ("[FILE]", "edited src/app.py") in entries
    assert ("[FILE]", "read tests/test_app.py") in entries
    assert ("[DECISION]", "Let's go with pytest instead of unittest.") in entries
    assert ("[ERROR]", "E ValueError: bad port → I fixed the port parsing in app.py.") in entries
    assert ("[PROGRESS]", "plan: 1 of 2 steps done") in entries
    assert not any("COBOL" in text or "obey" in text for _, text in entries)


def test_an_open_error_has_no_fix() -> None:
    entries = session_entries(
        [
            tool("make: *** [all] Error 2\nfatal: not a git repository"),
            {"role": "assistant", "content": "To fix this we should run init."},
        ]
    )
    assert entries == [("[ERROR]", "fatal: not a git repository")]


def test_source_that_names_an_error_is_none() -> None:
    assert session_entries([tool("12: raise ValueError('x')\nexcept KeyError:\n0 errors, no failures")]) == []


def test_patches_and_chinese() -> None:
    patch = "*** Begin Patch\n*** Update File: a/b.py\n@@\n-x\n+y\n*** End Patch"
    entries = session_entries(
        [
            {"role": "user", "content": "我们决定用 FastAPI。"},
            call("apply_patch", patch=patch),
            {"role": "assistant", "content": "已完成路由重构。"},
        ]
    )
    assert entries == [
        ("[DECISION]", "我们决定用 FastAPI。"),
        ("[FILE]", "edited a/b.py"),
        ("[PROGRESS]", "已完成路由重构。"),
    ]


def test_secrets_are_left_out() -> None:
    assert session_entries([{"role": "user", "content": "We decided that the password is hunter2!"}]) == []


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"role": "assistant", "tool_calls": "x"},
        {"role": "assistant", "tool_calls": [1, {"function": {"name": "read", "arguments": "{"}}]},
        {"role": "user", "content": [{"type": "image_url"}, {"type": "text", "text": 5}]},
        {"role": "tool", "content": None},
    ],
)
def test_odd_messages_do_not_break_it(message: dict[str, Any]) -> None:
    assert session_entries([message]) == []


def test_recorded_agent_sessions() -> None:
    path = DATA / "swe_agent.json"
    if not path.exists():
        pytest.skip("needs ../shared/data")
    for trace in json.loads(path.read_text()):
        messages = trace["request"]["messages"]
        edits = [
            m
            for m in messages
            for c in m.get("tool_calls") or []
            if c["function"]["name"] in ("edit", "create", "insert")
        ]
        entries = session_entries(messages)
        assert len(set(entries)) == len(entries) <= 60
        if any("filename" in c["function"]["arguments"] for m in edits for c in m["tool_calls"]):
            assert any(tag == "[FILE]" and text.startswith("edited ") for tag, text in entries)
        assert estimate(project_entry("task", entries)) <= 300


def test_the_digest_keeps_its_newest_and_its_limit() -> None:
    entries = [("[PROGRESS]", f"finished step {i} of the very long plan") for i in range(80)] + [
        ("[FILE]", "edited a.py"),
        ("[FILE]", "read b.py"),
    ]
    text = project_entry("Port the parser", entries)
    assert estimate(text) <= 300
    assert text.startswith("Goal: Port the parser\nDone: ")
    assert "step 79" in text and "step 0 " not in text and "Edited: a.py" in text and "b.py" not in text
    assert project_entry("", []) == ""


def test_the_model_written_digest() -> None:
    reply = 'Here:\n```json\n{"goal": "Port it", "done": ["parser", 3], "files": ["a.py"], "open": "docs",}\n```'
    assert parse_project(reply) == "Goal: Port it\nDone: parser\nFiles: a.py\nOpen: docs"
    assert parse_project("no json") is None and parse_project("{}") is None
    assert "Task: T" in project_messages("T", [("[FILE]", "edited a.py")])[1]["content"]
