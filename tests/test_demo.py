"""The demo as people run it, and the meter and the model that its numbers come from."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tiktoken

import gateway.demo
from gateway.demo.meter import Counter, Meter, Usage
from gateway.demo.outputs import make_output
from gateway.demo.script import load_sessions, newest_key
from gateway.demo.upstream import pairs_whole, summary_of
from tests.support.builders import assistant, system, tool, tool_call, user
from tests.support.gateway_process import clean_environment

RUN_S = 90.0
"""A loaded machine, not a target."""


def run_demo(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gateway", "demo", *arguments],
        env=clean_environment(home, {"PYTHONIOENCODING": "utf-8", **environment}),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=RUN_S,
        check=False,
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A whole run's own account of itself."""
    done = run_demo(tmp_path_factory.mktemp("home"), "--json", "--fast")
    assert done.returncode == 0, done.stdout + done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_every_request_is_answered_and_none_is_too_long(whole: dict[str, Any]) -> None:
    script = json.loads((Path(gateway.demo.__file__).parent / "sessions.json").read_text(encoding="utf-8"))
    requests = sum(len(exchange["rounds"]) + 1 for session in script for exchange in session["exchanges"])
    turns = whole["turns"]
    assert len(turns) == requests
    assert {turn["status"] for turn in turns} == {200}
    assert (whole["ok"], whole["problems"], whole["failed_stages"]) == (True, [], 0)
    assert whole["gateway"]["refused"] == 0
    assert max(turn["after"] for turn in turns) <= whole["gateway"]["largest"] <= whole["window"]
    assert whole["direct"]["refused"] == sum(turn["before"] > whole["window"] for turn in turns) > 0


def test_every_stage_has_something_to_do(whole: dict[str, Any]) -> None:
    stages = {stage for turn in whole["turns"] for stage in turn["actions"]}
    assert stages >= {"fold", "repeat", "spill", "snip", "compact", "memory"}
    assert sum(whole["compactions"].values()) > 0
    assert whole["gateway"]["side_calls"] > 0


def test_the_bills_add_up(whole: dict[str, Any]) -> None:
    direct, through, turns = whole["direct"], whole["gateway"], whole["turns"]
    assert direct["prompt"] == sum(turn["before"] for turn in turns)
    assert direct["requests"] == len(turns) == through["requests"] - through["side_calls"]
    assert through["prompt"] > sum(turn["after"] for turn in turns), "summaries are part of the bill"
    for bill in (direct, through):
        price = bill["prompt"] - bill["cached"] + 0.1 * bill["cached"] + 8 * bill["completion"]
        assert bill["price"] == pytest.approx(price, abs=0.1)
    assert through["price"] < direct["price"]


def test_what_was_told_is_remembered_and_only_by_whom(whole: dict[str, Any]) -> None:
    def remembered(session: str) -> str:
        return "\n".join(line for turn in whole["turns"] if turn["session"] == session for line in turn["remembered"])

    sessions = load_sessions()
    first, again, second, second_again = (remembered(session.name) for session in sessions)
    assert "PostgreSQL 15" in again and "tabs" in again
    assert "钉钉" in second_again
    assert "PostgreSQL" not in second + second_again and "钉钉" not in first + again
    kept = {(turn["user"], line) for turn in whole["turns"] for line in turn["kept"]}
    assert len(kept) == whole["memories"]["kept"]
    assert ("林岚", "我喜欢用中文写提交信息。") in kept
    assert {user for user, line in kept if "PostgreSQL" in line} == {"dana"}


def test_as_text_for_a_log(tmp_path: Path) -> None:
    done = run_demo(tmp_path, "--turns", "5", GATEWAY_LIMITS__SOFT="no number", OPENAI_BASE_URL="http://192.0.2.1/v1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\x1b" not in done.stdout and "\r" not in done.stdout
    assert done.stderr == ""
    assert "  5 run pytest -v" in done.stdout and "\n  6 " not in done.stdout
    assert "5 requests of 1 users" in done.stdout
    assert list(tmp_path.iterdir()) == [], "nothing is left behind, least of all in the user's own data"


def test_a_log_that_knows_ascii_only(tmp_path: Path) -> None:
    done = run_demo(tmp_path, "--turns", "1", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr


def test_a_gateway_that_does_not_start(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert gateway.demo.main(["--json"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "ended before it was ready" in said.err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_stopped_half_way_it_leaves_nothing_behind(tmp_path: Path, number: signal.Signals, code: int) -> None:
    demo = subprocess.Popen(
        [sys.executable, "-m", "gateway", "demo", "--fast"],
        env=clean_environment(tmp_path, {"TMPDIR": str(tmp_path), "PYTHONIOENCODING": "utf-8"}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    assert demo.stdout is not None
    address = next(found[1] for line in demo.stdout if (found := re.search(r"http://127\.0\.0\.1:(\d+)", line)))
    next(line for line in demo.stdout if line.startswith("  3 "))
    demo.send_signal(number)
    _, said = demo.communicate(timeout=RUN_S)
    assert (demo.returncode, said) == (code, "")
    assert list(tmp_path.iterdir()) == []
    with socket.socket() as probe, pytest.raises(ConnectionRefusedError):
        probe.connect(("127.0.0.1", int(address)))


@pytest.mark.parametrize("words", [["--turns", "0"], ["--window", "100"], ["--turns", "x"], ["extra"]])
def test_wrong_arguments(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        gateway.demo.main(words)
    assert stopped.value.code == 2
    assert capsys.readouterr().err.startswith("usage: gateway demo")


def test_the_meter_counts_as_tiktoken_does_and_caches_prefixes() -> None:
    encoding = tiktoken.get_encoding("o200k_base")
    long = " ".join(f"word{number}" for number in range(1_000))
    first = [system(long), user("one")]

    def tokens(role: str, text: str) -> int:
        return len(encoding.encode(f"{role}\n{text}")) + 4

    meter = Meter(Counter())
    shared = tokens("system", long)
    assert meter.prompt(first, []) == (shared + tokens("user", "one"), 0)
    total, cached = meter.prompt([system(long), user("two")], [])
    assert total == shared + tokens("user", "two")
    assert cached % 128 == 0 and shared <= cached + 128 and cached <= total
    changed = [system("Other. " + long), user("one")]
    assert meter.prompt(changed, [])[1] == 0
    assert meter.prompt(first, [])[1] == cached, "an earlier prefix is still there"


def test_short_prompts_are_not_cached() -> None:
    meter = Meter(Counter())
    messages = [user("hello")]
    meter.prompt(messages, [])
    assert meter.prompt(messages, [])[1] == 0


def test_price() -> None:
    assert Usage(prompt=1_000, cached=800, completion=10).price == pytest.approx(200 + 80 + 80)


@pytest.mark.parametrize(
    ("messages", "whole"),
    [
        ([user("x")], True),
        ([assistant(None, tool_call("a"), tool_call("b")), tool("b", ""), tool("a", "")], True),
        ([assistant(None, tool_call("a"), tool_call("b")), tool("a", "")], False),
        ([assistant(None, tool_call("a")), user("x"), tool("a", "")], False),
        ([tool("a", "")], False),
        ([assistant(None, tool_call("a")), tool("a", ""), tool("a", "")], False),
    ],
)
def test_the_model_refuses_a_call_without_its_reply(messages: list[dict[str, Any]], whole: bool) -> None:
    assert pairs_whole(messages) is whole


def test_the_summary_is_made_of_the_conversation_in_its_language() -> None:
    english = summary_of(
        [
            user("Repair the import in src/app/load.py"),
            assistant(None, tool_call("a", "read", '{"path": "src/app/rows.py"}')),
            tool("a", "fine\nValueError: no rows\nfine"),
            user("Summarise."),
        ]
    )
    assert english.splitlines() == [
        "Goal: Repair the import in src/app/load.py",
        "Files: src/app/rows.py, src/app/load.py",
        "Errors: ValueError: no rows",
    ]
    assert summary_of([user("请修复每晚导入账本时丢失的最后一行"), user("总结")]).startswith("目标: 请修复每晚")


def test_tool_results_are_the_same_on_every_run_and_say_what_they_should() -> None:
    log = make_output(["pytest", "seed", 80, 2])
    assert log == make_output(["pytest", "seed", 80, 2]) != make_output(["pytest", "other", 80, 2])
    assert log.count("FAILED") == 2 and "2 failed, 78 passed" in log
    assert make_output("as it is") == "as it is"
    assert len(json.loads(make_output(["records", "x", 30]))) == 30


def test_each_reply_of_the_script_is_found_by_one_message() -> None:
    sessions = load_sessions()
    keys = [key for session in sessions for key in session.replies]
    assert len(keys) == len(set(keys))
    assert newest_key([user("hello")]) == "user:hello"
    assert newest_key([user("hello"), assistant("hi")]) == newest_key([]) == ""
