"""Streams: every recording identical, each event on its way as soon as it is there, a lost caller noticed at once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.support.builders import user
from tests.support.chat import CHAT, auth, chat_body, fresh_key, send_chat
from tests.support.gateway_process import GatewayProcess
from tests.support.raw_http import RawClient
from tests.support.upstream import Call, Cut, Hang, Reply, Step, Upstream, json_reply, sse_reply

GONE_S = 10.0
"""The upstream call hangs for ever, so it ends only if the gateway ends it; this is patience, not a target."""

RECORDINGS = sorted((Path(__file__).resolve().parents[3] / "shared" / "data" / "sse").glob("*.sse"))
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"%d"},"finish_reason":null}]}\n\n'


def test_there_are_recordings() -> None:
    if not RECORDINGS:
        pytest.skip("no recorded streams beside the repository (../shared/data/sse)")
    assert len(RECORDINGS) > 40


@pytest.mark.parametrize("chunk", [None, 7, 4096], ids=["events", "7 bytes", "4096 bytes"])
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_recordings_pass_identical(upstream: Upstream, gateway: GatewayProcess, path: Path, chunk: int | None) -> None:
    recorded = path.read_bytes()
    upstream.queue(sse_reply(recorded, chunk=chunk))
    reply = send_chat(gateway.port, [user("Replay.")], stream=True)
    assert reply.body == recorded
    assert (reply.status, reply.complete) == (200, True)
    assert reply.header("content-type") == "text/event-stream; charset=utf-8"


@pytest.mark.parametrize("ending", [b"\r\n\r\n", b"\n\n", b"\r\r"], ids=["CRLF", "LF", "CR"])
def test_line_endings_of_every_kind_pass(upstream: Upstream, gateway: GatewayProcess, ending: bytes) -> None:
    body = ending.join([b": hello", EVENT.strip() % 1, b"event: x" + ending[: len(ending) // 2] + b"data: 2", b""])
    upstream.queue(sse_reply([body[:9], body[9:40], body[40:]]))
    assert send_chat(gateway.port, [user("hi")], stream=True).body == body


@pytest.mark.parametrize("target", [CHAT, "/v1/responses"])
def test_each_event_comes_before_the_next_is_sent(upstream: Upstream, gateway: GatewayProcess, target: str) -> None:
    gates = [threading.Event() for _ in range(4)]
    steps: list[Step] = []
    for number, gate in enumerate(gates):
        steps += [EVENT % number, gate]
    upstream.queue(sse_reply([*steps, b"data: [DONE]\n\n"]))
    with RawClient(gateway.port) as client:
        client.request("POST", target, chat_body([user("hi")], stream=True), auth(fresh_key()))
        for number, gate in enumerate(gates):
            seen = client.read_until(EVENT % number)
            assert seen == b"".join(EVENT % earlier for earlier in range(number + 1))
            gate.set()
        assert client.reply().body.endswith(b"data: [DONE]\n\n")


def test_an_event_in_two_halves_is_not_held_back(upstream: Upstream, gateway: GatewayProcess) -> None:
    gate = threading.Event()
    event = EVENT % 2
    upstream.queue(sse_reply([EVENT % 1, event[:20], gate, event[20:]]))
    with RawClient(gateway.port) as client:
        client.request("POST", CHAT, chat_body([user("hi")], stream=True), auth(fresh_key()))
        client.read_until(EVENT % 1 + event[:20])
        gate.set()
        assert client.reply().body == EVENT % 1 + event


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("target", [CHAT, "/v1/responses"])
def test_a_caller_lost_before_the_first_byte(
    upstream: Upstream, gateway: GatewayProcess, target: str, stream: bool
) -> None:
    upstream.queue(Reply(before=[Hang()]))
    with RawClient(gateway.port) as client:
        client.request("POST", target, chat_body([user("hi")], stream=stream), auth(fresh_key()))
        assert upstream.wait_until(lambda: upstream.calls and upstream.calls[0].complete_at)
        assert upstream.calls[0].disconnected_at is None
    assert upstream.wait_until(lambda: upstream.calls[0].disconnected_at, GONE_S)


@pytest.mark.parametrize("target", [CHAT, "/v1/responses"])
def test_a_caller_lost_in_mid_stream(upstream: Upstream, gateway: GatewayProcess, target: str) -> None:
    upstream.queue(sse_reply([EVENT % 1, Hang()]))
    with RawClient(gateway.port) as client:
        client.request("POST", target, chat_body([user("hi")], stream=True), auth(fresh_key()))
        client.read_until(EVENT % 1)
        assert upstream.calls[0].disconnected_at is None
    assert upstream.wait_until(lambda: upstream.calls[0].disconnected_at, GONE_S)


def test_a_caller_lost_in_a_large_reply(upstream: Upstream, gateway: GatewayProcess) -> None:
    upstream.queue(Reply(200, [("Content-Type", "audio/mpeg")], [b"\0" * 1_000_000] * 64))
    with RawClient(gateway.port) as client:
        client.request("GET", "/v1/files/1/content")
        client.read_until(b"\0")
    assert upstream.wait_until(lambda: upstream.calls[0].disconnected_at, GONE_S)


def test_a_stream_the_upstream_cuts_is_seen_as_cut(upstream: Upstream, gateway: GatewayProcess) -> None:
    upstream.queue(sse_reply([EVENT % 1, Cut()]))
    reply = send_chat(gateway.port, [user("hi")], stream=True)
    assert reply.body.startswith(EVENT % 1)
    assert not reply.complete or b"error" in reply.body, "a stream cut short must not look like one that ended well"
    assert send_chat(gateway.port, [user("again")]).status == 200


def test_a_plain_reply_to_a_streamed_request_passes(upstream: Upstream, gateway: GatewayProcess) -> None:
    upstream.queue(json_reply({"choices": [], "odd": True}))
    assert send_chat(gateway.port, [user("hi")], stream=True).body == b'{"choices":[],"odd":true}'


def test_an_empty_stream_passes(upstream: Upstream, gateway: GatewayProcess) -> None:
    upstream.queue(sse_reply([]))
    reply = send_chat(gateway.port, [user("hi")], stream=True)
    assert (reply.status, reply.body, reply.complete) == (200, b"", True)


def test_many_streams_at_once_do_not_mix(upstream: Upstream, gateway: GatewayProcess) -> None:
    gate = threading.Event()
    bodies: dict[int, bytes] = {}

    def one(number: int) -> None:
        bodies[number] = send_chat(gateway.port, [user(str(number))], stream=True).body

    def echo(call: Call) -> Reply:
        number = int(call.json()["messages"][-1]["content"])
        return sse_reply([EVENT % number, gate, EVENT % (number + 1000)])

    with upstream.answering(echo):
        threads = [threading.Thread(target=one, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        assert upstream.wait_until(lambda: len(upstream.calls) == 16)
        gate.set()
        for thread in threads:
            thread.join()
    assert bodies == {number: EVENT % number + EVENT % (number + 1000) for number in range(16)}
