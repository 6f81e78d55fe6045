"""Header hygiene: what is between two hops stays there, what is the gateway's own is neither leaked nor lost."""

from __future__ import annotations

import pytest

from tests.conftest import Launch
from tests.support.builders import assistant, user
from tests.support.chat import CHAT, auth, chat_body, fresh_key, send_chat
from tests.support.gateway_process import GatewayProcess
from tests.support.raw_http import fetch
from tests.support.upstream import Upstream, json_reply, sse_reply

HOP_BY_HOP = ("keep-alive", "te", "trailer", "proxy-connection", "proxy-authorization", "upgrade", "x-named")
OWN = ("X-Memory-User", "X-Memory-Project", "X-Session-Id", "X-Gateway-Bypass")


@pytest.mark.parametrize("target", [CHAT, "/v1/responses"])
def test_request_headers(upstream: Upstream, gateway: GatewayProcess, target: str) -> None:
    key = fresh_key()
    headers = [
        ("Connection", "keep-alive, X-Named"),
        ("X-Named", "1"),
        ("Keep-Alive", "timeout=5"),
        ("TE", "trailers"),
        ("Proxy-Connection", "keep-alive"),
        ("User-Agent", "agent/1.0"),
        ("OpenAI-Organization", "org-1"),
        ("Cookie", "a=b"),
        ("X-Twice", "1"),
        ("X-Twice", "2"),
    ]
    upstream.queue(json_reply({"ok": True}))
    own = [(name, "value") for name in OWN if name != "X-Gateway-Bypass"] + [("X-Gateway-Bypass", "memory")]
    fetch(gateway.port, "POST", target, chat_body([user("hi")]), auth(key, *headers, *own))
    call = upstream.only_call()
    assert call.header_all("host") == [f"127.0.0.1:{upstream.port}"]
    assert call.header_all("authorization") == [f"Bearer {key}"]
    assert call.header_all("content-type") == ["application/json"]
    assert call.header("user-agent") == "agent/1.0"
    assert call.header("openai-organization") == "org-1"
    assert call.header("cookie") == "a=b"
    assert ", ".join(call.header_all("x-twice")).replace(",", ", ").split(", ")[0] == "1"
    assert "2" in ",".join(call.header_all("x-twice"))
    names = {name.lower() for name, _ in call.headers}
    assert names.isdisjoint(HOP_BY_HOP)
    assert not [name for name in names if name.startswith(("x-memory-", "x-session-id", "x-gateway-"))]
    assert not [name for name in names if name.startswith(("x-forwarded", "forwarded", "via"))]


@pytest.mark.parametrize("target", [CHAT, "/v1/responses"])
@pytest.mark.parametrize("stream", [False, True])
def test_reply_headers(upstream: Upstream, gateway: GatewayProcess, target: str, stream: bool) -> None:
    reply = sse_reply(b"data: {}\n\ndata: [DONE]\n\n") if stream else json_reply({"ok": True})
    reply.headers += [
        ("Connection", "keep-alive, X-Named"),
        ("X-Named", "1"),
        ("Keep-Alive", "timeout=5"),
        ("Set-Cookie", "a=1; Path=/"),
        ("Set-Cookie", "b=2; Path=/"),
        ("X-Request-Id", "req_1"),
        ("OpenAI-Processing-Ms", "12"),
        ("Server", "scripted/1"),
        ("Date", "Mon, 01 Jan 2024 00:00:00 GMT"),
    ]
    upstream.queue(reply)
    got = fetch(gateway.port, "POST", target, chat_body([user("hi")], stream=stream), auth(fresh_key()))
    assert got.header_all("set-cookie") == ["a=1; Path=/", "b=2; Path=/"]
    assert got.header("x-request-id") == "req_1"
    assert got.header("openai-processing-ms") == "12"
    assert got.header_all("content-type") == [dict(reply.headers)["Content-Type"]]
    assert got.header_all("server") == ["scripted/1"]
    assert got.header_all("date") == ["Mon, 01 Jan 2024 00:00:00 GMT"]
    assert got.header("x-named") is None
    assert got.header("keep-alive") is None
    assert len(got.header_all("content-length")) + len(got.header_all("transfer-encoding")) == 1


def test_an_upstream_key_replaces_the_callers(upstream: Upstream, launch: Launch) -> None:
    section = {"name": "keyed", "base_url": f"{upstream.url}/v1", "api_key": "${FRONT_TEST_KEY}", "models": ["*"]}
    gateway = launch({"FRONT_TEST_KEY": "sk-upstream-own"}, upstreams=[section])
    key = fresh_key()
    send_chat(gateway.port, [user("hi")], key)
    upstream.queue(json_reply({"data": []}))
    fetch(gateway.port, "GET", "/v1/models", b"", auth(key))
    for call in upstream.calls:
        assert call.header_all("authorization") == ["Bearer sk-upstream-own"]
        assert key not in str(call.headers)


@pytest.mark.parametrize("stream", [False, True])
def test_gateway_headers(upstream: Upstream, gateway: GatewayProcess, stream: bool) -> None:
    key = fresh_key()
    opening = [user("Tell me about tides. " * 20)]
    first = send_chat(gateway.port, opening, key, stream=stream)
    later = [*opening, assistant("They come twice a day."), user("And at new moon?")]
    second = send_chat(gateway.port, later, key, stream=stream)
    other = send_chat(gateway.port, [user("Something else entirely")], key, stream=stream)
    assert len({reply.header("x-gateway-request-id") for reply in (first, second, other)}) == 3
    assert first.header("x-gateway-session") == second.header("x-gateway-session") != other.header("x-gateway-session")
    before, after = (int(first.header(f"x-gateway-tokens-{when}") or -1) for when in ("before", "after"))
    assert before == after
    # "Tell me about tides. " is 5 or 6 tokens twenty times over, whatever the tokenizer
    assert 80 <= before <= 160
    assert first.header("x-gateway-actions") is not None


def test_a_given_session_id_names_the_session(upstream: Upstream, gateway: GatewayProcess) -> None:
    key = fresh_key()
    named = [("X-Session-Id", "my-session")]
    one = send_chat(gateway.port, [user("one")], key, named)
    two = send_chat(gateway.port, [user("two")], key, named)
    assert one.header("x-gateway-session") == two.header("x-gateway-session")
