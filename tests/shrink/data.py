"""Recorded tool results, read from the shared data beside the repository; absent data skips the test."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).parents[2].parent / "shared" / "data"


def need(relative: str) -> Path:
    """The path of a shared file or folder; skips the test where it isn't there."""
    path = SHARED / relative
    if not path.exists():
        pytest.skip(f"shared data absent: {relative}")
    return path


def tool_results(name: str) -> list[list[tuple[str, str, str]]]:
    """For each conversation of a trajectory file the (function, arguments, result) of its tool calls, in order."""
    conversations = []
    for trace in json.loads(need(f"trajectories/{name}.json").read_text()):
        calls: dict[str, dict[str, Any]] = {}
        results = []
        for message in trace["request"]["messages"]:
            for call in message.get("tool_calls") or []:
                calls[call["id"]] = call["function"]
            if message["role"] == "tool":
                function = calls[message["tool_call_id"]]
                results.append((function["name"], function["arguments"], message["content"]))
        conversations.append(results)
    return conversations


def ci_logs() -> list[tuple[str, str, list[str]]]:
    """(name, text, labelled error lines) of each recorded CI log."""
    found = []
    for labels in sorted(need("tool_outputs/ci_logs").glob("*.errors.json")):
        log = labels.with_name(labels.name.replace(".errors.json", ".log.gz"))
        text = gzip.decompress(log.read_bytes()).decode("utf-8", "replace")
        found.append((log.name, text, [error["line"] for error in json.loads(labels.read_text())["errors"]]))
    return found


def json_documents() -> list[tuple[str, str]]:
    """(name, text) of each recorded JSON document."""
    return [(path.name, path.read_text()) for path in sorted(need("tool_outputs/json_api").glob("*.json"))]
