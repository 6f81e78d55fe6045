"""The conversations to replay: recorded agent traces, long sessions chained from them, and a session full of logs."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Messages = list[dict[str, Any]]

TRACE, LONG, LOGS = "trace", "long", "logs"


@dataclass(frozen=True, slots=True)
class Conversation:
    """A recorded conversation. `labels` gives, by index of a tool message, the error lines known to be in it."""

    name: str
    kind: str
    messages: Messages
    labels: dict[int, list[str]] = field(default_factory=dict)

    def turns(self) -> Iterator[tuple[Messages, dict[str, Any]]]:
        """Each assistant turn: the request's messages, all that came before it, and the recorded reply."""
        for index, message in enumerate(self.messages):
            if message["role"] == "assistant":
                yield self.messages[:index], message

    def new_labels(self, messages: Messages) -> list[str]:
        """The labelled lines of the messages that no request before this one of `turns` had."""
        first = len(messages) - 1
        while first > 0 and messages[first]["role"] != "assistant":
            first -= 1
        return [line for index in range(first, len(messages)) for line in self.labels.get(index, [])]


def load_all(data: Path) -> list[Conversation]:
    """Every conversation of the bench, from a folder laid out as the shared test data.

    Raises `FileNotFoundError` where the trajectories are not there.
    """
    tau = _traces(data / "trajectories" / "tau_bench_airline.json")
    swe = _traces(data / "trajectories" / "swe_agent.json")
    conversations = [
        Conversation(f"{family}-{number:02d}", TRACE, messages)
        for family, traces in (("tau", tau), ("swe", swe))
        for number, messages in enumerate(traces, start=1)
    ]
    conversations += [
        Conversation("tau-all", LONG, chain(tau)),
        Conversation("tau-6", LONG, chain(tau[:6])),
        Conversation("swe-all", LONG, chain(swe)),
        Conversation("swe-6", LONG, chain(swe[2:8])),
        build_log_session(chain(swe[2:8]), tool_outputs(data / "tool_outputs")),
    ]
    return conversations


def chain(traces: list[Messages]) -> Messages:
    """One long session: the first trace's system message, then the rest of each, tool-call ids unique throughout."""
    system = [message for message in traces[0] if message["role"] == "system"][:1]
    chained = list(system)
    taken: set[str] = set()
    for trace in traces:
        chained += _unique_ids([message for message in trace if message["role"] != "system"], taken)
    return chained


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """A recorded output of a tool, and the error lines that were labelled in it."""

    name: str
    text: str
    errors: list[str]


def tool_outputs(folder: Path) -> list[ToolOutput]:
    """Every recorded output under `folder`, in the order of their paths."""
    outputs = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.name.endswith(".errors.json") or path.name.startswith("LICENSE"):
            continue
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        labels = path.with_name(path.name.removesuffix(".log.gz") + ".errors.json")
        errors = [error["line"] for error in json.loads(labels.read_text())["errors"]] if labels.is_file() else []
        outputs.append(ToolOutput(str(path.relative_to(folder)), raw.decode("utf-8", "replace"), errors))
    return outputs


def build_log_session(base: Messages, outputs: list[ToolOutput]) -> Conversation:
    """`base` with its tool results replaced, evenly spread over the session, by `outputs` in their order."""
    messages = copy.deepcopy(base)
    last_turn = max(index for index, message in enumerate(messages) if message["role"] == "assistant")
    places = [i for i, message in enumerate(messages) if message["role"] == "tool" and i < last_turn]
    outputs = outputs[: len(places)]
    labels: dict[int, list[str]] = {}
    for number, output in enumerate(outputs):
        place = places[number * len(places) // len(outputs)]
        messages[place]["content"] = output.text
        if output.errors:
            labels[place] = output.errors
    return Conversation("build-log", LOGS, messages, labels)


def _traces(path: Path) -> list[Messages]:
    return [trace["request"]["messages"] for trace in json.loads(path.read_text(encoding="utf-8"))]


def _unique_ids(messages: Messages, taken: set[str]) -> Messages:
    """A copy where no call id is in `taken` or used twice; `taken` grows by the ids given out.

    An id that is free stays as recorded, so that the session weighs what its traces weigh. A reply belongs to the
    newest call of its id before it.
    """
    renamed: dict[str, str] = {}
    out = copy.deepcopy(messages)
    for message in out:
        for call in message.get("tool_calls") or []:
            recorded, unique, number = call["id"], call["id"], 1
            while unique in taken:
                number += 1
                unique = f"{recorded}_{number}"
            taken.add(unique)
            renamed[recorded] = call["id"] = unique
        if message.get("tool_call_id") in renamed:
            message["tool_call_id"] = renamed[message["tool_call_id"]]
    return out
