"""Keys, bodies and secrets are in no log line and no file."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from tests.support.builders import user
from tests.support.chat import CHAT, auth, chat_body, send_chat
from tests.support.gateway_process import GatewayProcess, default_config
from tests.support.raw_http import fetch
from tests.support.upstream import Cut, Reply, Upstream, error_reply


def files_with(directory: Path, mark: str) -> list[str]:
    """The files below a directory that hold these bytes."""
    every = [path for path in directory.rglob("*") if path.is_file()]
    return [str(path.relative_to(directory)) for path in every if mark.encode() in path.read_bytes()]


@pytest.mark.parametrize("closed", [False, True], ids=["any key", "auth.keys"])
def test_marks_leave_no_trace(tmp_path: Path, upstream: Upstream, closed: bool) -> None:
    callers, wrong, upstreams, said = (f"sk-{uuid.uuid4().hex}" for _ in range(4))
    config = default_config(upstream.url, tmp_path / "data", memory={"enabled": True, "every_turns": 1})
    config["upstreams"][0]["api_key"] = "${FRONT_TEST_KEY}"
    # The configuration holds the caller's key by design: it stays out of the directory that is searched.
    if closed:
        config["auth"] = {"keys": [{"key": callers, "tenant": "one"}]}
    gateway = GatewayProcess(config, tmp_path / "run", {"FRONT_TEST_KEY": upstreams})
    body_mark = f"private-{uuid.uuid4().hex}"
    with gateway:
        for stream in (False, True):
            send_chat(gateway.port, [user(f"{body_mark} my API key is {said}, remember it")], callers, stream=stream)
        send_chat(gateway.port, [user("hi")], wrong)
        fetch(gateway.port, "POST", CHAT, b'{"messages": "' + body_mark.encode(), auth(callers))
        fetch(gateway.port, "GET", f"/v1/models?api_key={callers}", b"", auth(callers))
        upstream.queue(Reply(before=[Cut()]), error_reply(401, f"Incorrect API key provided: {upstreams}"))
        for _ in range(2):
            fetch(gateway.port, "POST", CHAT, chat_body([user("again")]), auth(callers))
        gateway.stop()
    assert gateway.output(), "a log without a line proves nothing"
    for mark in (callers, wrong, upstreams, said, body_mark):
        assert mark not in gateway.output()
    for mark in (callers, wrong, upstreams, said):
        assert files_with(gateway.data_dir, mark) == []
