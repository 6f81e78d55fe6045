"""SIGTERM: streams in flight end well, the scribe writes what it has, a restart finds it."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from tests.support.builders import system, user
from tests.support.chat import CHAT, auth, chat_body, eventually, fresh_key, send_chat
from tests.support.gateway_process import GatewayProcess, default_config
from tests.support.raw_http import RawClient
from tests.support.upstream import Upstream, json_reply, sse_reply

CLEAN = (0, -signal.SIGTERM, 128 + signal.SIGTERM)
"""Exit statuses of a process that ended because it was asked to."""
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"%d"}}]}\n\n'


@pytest.fixture
def mortal(tmp_path: Path, upstream: Upstream) -> GatewayProcess:
    """A gateway for one test to end, not yet started."""
    return GatewayProcess(default_config(upstream.url, tmp_path / "data"), tmp_path)


@pytest.mark.parametrize("stream", [False, True])
def test_requests_in_flight_are_finished(upstream: Upstream, mortal: GatewayProcess, stream: bool) -> None:
    gate = threading.Event()
    reply = sse_reply([EVENT % 1, gate, EVENT % 2]) if stream else json_reply({"done": True})
    reply.before = () if stream else [gate]
    upstream.queue(reply)
    with mortal, RawClient(mortal.port) as client:
        client.request("POST", CHAT, chat_body([user("hi")], stream=stream), auth(fresh_key()))
        if stream:
            client.read_until(EVENT % 1)
        assert upstream.wait_until(lambda: upstream.calls and upstream.calls[0].complete_at)
        assert mortal.process is not None
        mortal.process.send_signal(signal.SIGTERM)
        assert eventually(lambda: refuses_connections(mortal), every=0.02), "still listening after SIGTERM"
        assert upstream.calls[0].disconnected_at is None
        gate.set()
        got = client.reply()
        assert (got.status, got.complete) == (200, True)
        assert got.body == (EVENT % 1 + EVENT % 2 if stream else b'{"done":true}')
        assert mortal.wait() in CLEAN


def refuses_connections(gateway: GatewayProcess) -> bool:
    """Whether nobody listens on its port any more."""
    try:
        RawClient(gateway.port).socket.close()
    except OSError:
        return True
    return False


def test_the_scribe_is_drained(upstream: Upstream, mortal: GatewayProcess) -> None:
    key = fresh_key()
    with mortal:
        assert send_chat(mortal.port, [user("I prefer the Dvorak keyboard layout for typing.")], key).status == 200
        assert mortal.stop() in CLEAN
    with mortal:
        upstream.reset()
        send_chat(mortal.port, [system("Be brief."), user("Which keyboard layout do I prefer for typing?")], key)
        sent = upstream.only_call().json()["messages"]
    assert sent[0]["content"].startswith("Be brief.")
    assert "Dvorak" in sent[0]["content"]


def test_an_idle_gateway_ends_at_once_and_starts_again(mortal: GatewayProcess) -> None:
    for _ in range(2):
        with mortal:
            assert mortal.stop() in CLEAN
    assert "Traceback" not in mortal.output()
