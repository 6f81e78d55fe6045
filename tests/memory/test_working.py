"""WorkingMemory: plans read from agents' own tools, kept as JSON, rendered within a limit."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.memory.render import estimate
from gateway.memory.working import Step, WorkingMemory, read_plan

PLAN = [Step("Write parser", "done"), Step("Test it", "in_progress"), Step("Ship", "pending")]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (
            "TodoWrite",
            {
                "todos": [
                    {"content": "Write parser", "status": "completed", "activeForm": "Writing"},
                    {"content": "Test it", "status": "in_progress"},
                    {"content": "Ship", "status": "pending"},
                ]
            },
        ),
        (
            "todowrite",
            {
                "todos": [
                    {"id": "1", "content": "Write parser", "status": "completed", "priority": "high"},
                    {"content": "Test it", "status": "in_progress"},
                    {"content": "Ship", "status": "pending"},
                ]
            },
        ),
        (
            "update_plan",
            {
                "explanation": "x",
                "plan": [
                    {"step": "Write parser", "status": "completed"},
                    {"step": "Test it", "status": "in_progress"},
                    {"step": "Ship", "status": "pending"},
                ],
            },
        ),
        (
            "todo_write",
            {
                "merge": False,
                "todos": [
                    {"title": "Write parser", "done": True},
                    {"title": "Test it", "status": "doing"},
                    {"title": "Ship"},
                ],
            },
        ),
        ("mcp__x__write_todos", {"items": "- [x] Write parser\n- [-] Test it\n- [ ] Ship"}),
    ],
)
def test_plan_tools(tool: str, arguments: dict[str, object]) -> None:
    assert read_plan(tool, arguments) == PLAN
    assert read_plan(tool, json.dumps(arguments)) == PLAN


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_file", '{"todos": []}'),
        ("TodoWrite", "{broken"),
        ("TodoRead", "{}"),
        ("update_plan", "[]x"),
        ("explain", '{"plan": [1]}'),
    ],
)
def test_not_a_plan(tool: str, arguments: str) -> None:
    assert read_plan(tool, arguments) is None


def test_an_empty_list_clears_the_plan() -> None:
    assert read_plan("TodoWrite", '{"todos": []}') == []


def test_round_trip_and_rendering() -> None:
    memory = WorkingMemory("Release 2.0", PLAN, {"branch": "rel", "port": "8080"}, ["CI is slow"])
    assert WorkingMemory.loads(memory.dumps()) == memory
    assert memory.render() == (
        "Task: Release 2.0\n[x] Write parser\n[>] Test it\n[ ] Ship\nbranch = rel\nport = 8080\nNote: CI is slow"
    )
    assert WorkingMemory().render() == "" and not WorkingMemory()


def test_the_plan_outlives_the_notes() -> None:
    memory = WorkingMemory("T", PLAN, {"a": "b" * 200}, ["n" * 200])
    text = memory.render(max_tokens=20)
    assert estimate(text) <= 20
    assert "Test it" in text and "nnn" not in text and "bbb" not in text


@pytest.mark.parametrize("data", [b"[]", b"nonsense", b'{"task": 1}', b'{"steps": {}}'])
def test_what_is_no_state_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        WorkingMemory.loads(data)


def test_notes_are_bounded() -> None:
    memory = WorkingMemory()
    for i in range(200):
        memory.note(f"note {i}")
    assert len(memory.notes) == 50 and memory.notes[-1] == "note 199"


@given(st.lists(st.text(max_size=60), max_size=20), st.integers(0, 200))
@settings(max_examples=100, deadline=None)
def test_rendering_stays_within_its_limit(texts: list[str], limit: int) -> None:
    memory = WorkingMemory(texts[0] if texts else "", [Step(t) for t in texts], {t: t for t in texts}, texts)
    assert estimate(memory.render(limit)) <= limit
