"""WorkingMemory: what the agent is doing now, so that a compaction or a new session does not lose the thread.

Agents keep plans themselves, through todo and plan tools; the newest such call is read as it passes. Where an agent
has none, the same state is set by API.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import orjson

from gateway.memory.render import estimate, neutralise

Status = Literal["pending", "in_progress", "done"]

MAX_STEPS = 100
MAX_STEP_CHARS = 300
MAX_NOTES = 50

_DONE = (
    "completed",
    "complete",
    "done",
    "finished",
    "checked",
    "closed",
    "success",
    "true",
    "x",
    "cancelled",
    "skipped",
)
_DOING = ("in_progress", "in-progress", "in progress", "inprogress", "active", "doing", "started", "current", "running")
_STATUS: dict[str, Status] = {
    **dict.fromkeys((*_DONE, "succeeded", "canceled"), "done"),
    **dict.fromkeys((*_DOING, "wip"), "in_progress"),
}
"""Statuses seen in the plan tools of common agents; anything else is still pending."""

_LISTS = ("todos", "plan", "steps", "tasks", "items", "todo_list", "todolist", "task_list", "subtasks", "checklist")
_TEXTS = ("content", "step", "text", "title", "description", "task", "name", "subject", "activeForm", "label")
_MARKS = {"done": "[x] ", "in_progress": "[>] ", "pending": "[ ] "}


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a plan."""

    text: str
    status: Status = "pending"


def is_plan_tool(name: str) -> bool:
    """Whether a tool's name is that of a plan or todo tool: `TodoWrite`, `update_plan`, `mcp__x__write_todos`…"""
    folded = name.lower().replace("-", "_")
    return (
        "todo" in folded
        or "plan" in folded.split("_")
        or folded in ("task", "tasks", "updateplan", "plan")
        or folded.endswith(("task_list", "tasklist", "checklist"))
    )


def read_plan(tool_name: str, arguments: str | Mapping[str, Any]) -> list[Step] | None:
    """The steps that a call of a plan tool sets, or None where it is not one or sets none (a read, a merge of
    nothing, broken JSON).

    `arguments`: the call's JSON text, or the object. An empty list is a plan that was cleared.
    """
    if not is_plan_tool(tool_name):
        return None
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments, strict=False)
        except (ValueError, RecursionError):
            return None
    if isinstance(arguments, list):
        return _steps(arguments)
    if not isinstance(arguments, Mapping):
        return None
    for name in _LISTS:
        value = arguments.get(name)
        if isinstance(value, str):
            return _from_text(value)
        if isinstance(value, list):
            return _steps(value)
    return None


def _steps(items: Iterable[object]) -> list[Step]:
    found: list[Step] = []
    for item in items:
        if isinstance(item, str):
            found.extend(_from_text(item))
        elif isinstance(item, Mapping):
            text = next((v for name in _TEXTS if isinstance(v := item.get(name), str) and v.strip()), "")
            status = item.get("status", item.get("state", item.get("done", item.get("completed", ""))))
            if text:
                found.append(Step(_clip(text), _STATUS.get(str(status).strip().lower(), "pending")))
    return found[:MAX_STEPS]


def _from_text(text: str) -> list[Step]:
    """Steps written as a Markdown checklist or plain lines."""
    found: list[Step] = []
    for raw in text.splitlines():
        line = raw.strip().lstrip("-*•").strip()
        status: Status = "pending"
        if len(line) > 3 and line[0] == "[" and line[2] == "]":
            status = "done" if line[1] in "xX✓" else "in_progress" if line[1] in ">~-/" else "pending"
            line = line[3:].strip()
        if line:
            found.append(Step(_clip(line), status))
    return found[:MAX_STEPS]


def _clip(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_STEP_CHARS else line[: MAX_STEP_CHARS - 1] + "…"


@dataclass(slots=True)
class WorkingMemory:
    """The state of one task. `variables` are short named values, `notes` free lines, newest last."""

    task: str = ""
    steps: list[Step] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.task or self.steps or self.variables or self.notes)

    def note(self, text: str) -> None:
        """Add a note; past `MAX_NOTES` the oldest goes."""
        self.notes.append(_clip(text))
        del self.notes[:-MAX_NOTES]

    def dumps(self) -> bytes:
        """As JSON, the same for the same state."""
        return orjson.dumps(asdict(self), option=orjson.OPT_SORT_KEYS)

    @classmethod
    def loads(cls, data: bytes | str) -> WorkingMemory:
        """From `dumps`, or from what an API client sent: unknown fields are ignored. ValueError where it is not
        such an object.
        """
        raw = orjson.loads(data)
        if not isinstance(raw, dict):
            raise ValueError("working memory is a JSON object")
        task, steps, variables, notes = (
            raw.get("task", ""),
            raw.get("steps", []),
            raw.get("variables", {}),
            raw.get("notes", []),
        )
        if not (
            isinstance(task, str)
            and isinstance(steps, list)
            and isinstance(variables, dict)
            and isinstance(notes, list)
        ):
            raise ValueError("`task` is a string, `steps` and `notes` are lists, `variables` is an object")
        return cls(
            task, _steps(steps), {str(k): _plain(v) for k, v in variables.items()}, [str(n) for n in notes][-MAX_NOTES:]
        )

    def render(self, max_tokens: int = 400, count: Callable[[str], int] = estimate) -> str:
        """Lines for the injected block, "" where there is nothing: task, plan, variables, notes.

        Over `max_tokens` the oldest notes go first, then variables, then steps already done, then the last pending
        ones.
        """
        head = [f"Task: {neutralise(self.task)}"] if self.task.strip() else []
        steps = [(s.status, _MARKS[s.status] + neutralise(s.text)) for s in self.steps]
        rest = [f"{neutralise(k)} = {neutralise(v)}" for k, v in sorted(self.variables.items())]
        notes = [f"Note: {neutralise(n)}" for n in self.notes]
        while True:
            lines = [*head, *(text for _, text in steps), *rest, *notes]
            if not lines or count("\n".join(lines)) <= max_tokens:
                return "\n".join(lines)
            if notes:
                notes.pop(0)
            elif rest:
                rest.pop()
            elif steps:
                done = next((i for i, (status, _) in enumerate(steps) if status == "done"), len(steps) - 1)
                steps.pop(done)
            else:
                head = []


def _plain(value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
