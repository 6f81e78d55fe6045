"""What no stage changes passes byte for byte, both ways, whatever it is."""

from __future__ import annotations

import gzip
import hashlib
import importlib
import threading
from collections.abc import Callable

import httpx
import orjson
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import Launch
from tests.support.builders import Message, check_pairs, conversations, user
from tests.support.chat import CHAT, MODEL, auth, chat_body, fresh_key, send_chat
from tests.support.chat_model import ChatModel, completion_reply
from tests.support.gateway_process import GatewayProcess
from tests.support.raw_http import RawClient, fetch, request_head
from tests.support.upstream import Reply, Upstream, json_reply

ODD_BODIES = {
    "white space and key order": b'{ "messages" : [ {"content":"hi" , "role":"user"} ],\n\t"model":"gpt-4o-mini" }\r\n',
    "escapes": rb'{"model":"gpt-4o-mini","messages":[{"role":"user","content":"\u6570\/\u0041\ud83d\ude00"}]}',
    "numbers": b'{"model":"gpt-4o-mini","messages":[{"role":"user","content":"x"}],"seed":12345678901234567890123,'
    b'"temperature":1.0e-0,"top_p":0.10}',
    "unknown fields": b'{"model":"gpt-4o-mini","messages":[{"role":"x_critic","content":null,"x":{"y":[]}},'
    b'{"role":"user","content":[{"type":"x_new","z":1.50}],"name":""}],"x_top":{"a":null}}',
    "empty contents": b'{"model":"gpt-4o-mini","messages":[{"role":"system","content":""},'
    b'{"role":"user","content":""},{"role":"assistant","content":null},{"role":"user","content":[]}]}',
}

TARGETS = [
    ("GET", "/v1/models"),
    ("DELETE", "/v1/files/file-1"),
    ("PATCH", "/v1/things/1?x=1"),
    ("PUT", "/v1/a%2Fb%20c/d?x=%2F&y=a+b&empty=&y=2"),
    ("POST", "/v1/responses"),
    ("POST", "/v1/~x;p=1/%E6%95%B0%E6%8D%AE?q=%E5%BA%93&r=a%26b"),
    ("POST", "/v1/embeddings?api-version=2024-10-21"),
    ("OPTIONS", "/v1/models"),
    ("GET", "/v1/x//y/"),
]

COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "br": importlib.import_module("brotli").compress,  # it has no type stubs
    "zstd": zstandard.ZstdCompressor().compress,
}


@pytest.fixture(scope="module")
def unfolding(launch: Launch) -> GatewayProcess:
    """A gateway that does not fold, so that below the limits nothing at all may change."""
    return launch(fold={"enabled": False})


@pytest.mark.parametrize("name", ODD_BODIES)
def test_chat_body_arrives_byte_for_byte(upstream: Upstream, gateway: GatewayProcess, name: str) -> None:
    reply = fetch(gateway.port, "POST", CHAT, ODD_BODIES[name], auth(fresh_key()))
    call = upstream.only_call()
    assert bytes(call.body) == ODD_BODIES[name]
    expected = completion_reply(call.json(), 0, "")
    assert (reply.status, reply.complete) == (expected.status, True)


@settings(max_examples=60)
@given(conversations(max_rounds=4))
def test_any_conversation_under_the_limit_is_untouched(
    module_upstream: Upstream, unfolding: GatewayProcess, messages: list[Message]
) -> None:
    module_upstream.reset()
    body = chat_body(messages)
    assert fetch(unfolding.port, "POST", CHAT, body, auth(fresh_key())).status == 200
    assert bytes(module_upstream.only_call().body) == body


@settings(max_examples=60)
@given(conversations(max_rounds=4), st.booleans())
def test_folding_touches_tool_results_only(
    module_upstream: Upstream, gateway: GatewayProcess, messages: list[Message], bypass: bool
) -> None:
    module_upstream.reset()
    body = chat_body(messages, x_kept={"a": 1})
    headers = auth(fresh_key(), *([("X-Gateway-Bypass", "all")] if bypass else []))
    assert fetch(gateway.port, "POST", CHAT, body, headers).status == 200
    call = module_upstream.only_call()
    if bypass:
        assert bytes(call.body) == body
    sent = call.json()
    assert {**sent, "messages": None} == {"model": MODEL, "x_kept": {"a": 1}, "messages": None}
    assert check_pairs(sent["messages"]) == []
    for before, after in zip(messages, sent["messages"], strict=True):
        if before["role"] == "tool":
            assert {**before, "content": None} == {**after, "content": None}
        else:
            assert before == after


@pytest.mark.parametrize(("method", "target"), TARGETS)
def test_every_other_path_passes(upstream: Upstream, gateway: GatewayProcess, method: str, target: str) -> None:
    body = b"" if method in ("GET", "OPTIONS") else b'\x00\xff {"not": json'
    upstream.queue(Reply(207, [("Content-Type", "application/x-odd; v=1"), ("X-Up", "1")], [b"\x00\xfe raw"]))
    reply = fetch(gateway.port, method, target, body, [("Authorization", "Bearer k"), ("Content-Type", "x/y")])
    call = upstream.only_call()
    assert (call.method, call.target, bytes(call.body)) == (method, target, body)
    assert (call.header("content-type"), call.header("authorization")) == ("x/y", "Bearer k")
    assert (reply.status, reply.body) == (207, b"\x00\xfe raw")
    assert (reply.header("content-type"), reply.header("x-up")) == ("application/x-odd; v=1", "1")


UTF8_IN_LATIN1 = "naïve".encode().decode("latin-1")
"""A header's UTF-8 bytes, as the raw client writes them. (Bytes that are no UTF-8 go up as if they were Latin-1.)"""


def test_a_header_value_that_is_not_ascii_passes(upstream: Upstream, gateway: GatewayProcess) -> None:
    upstream.queue(json_reply({}, 200, [("X-Up", "caf\xe9")]))
    reply = fetch(gateway.port, "GET", "/v1/models", b"", [("X-Down", UTF8_IN_LATIN1)])
    assert reply.header("x-up") == "caf\xe9"
    assert upstream.only_call().header("x-down") == UTF8_IN_LATIN1


def test_head_has_the_headers_and_no_body(upstream: Upstream, gateway: GatewayProcess) -> None:
    upstream.queue(Reply(200, [("X-Up", "1")], [b"12345"]))
    reply = httpx.head(f"{gateway.url}/v1/files/1/content", trust_env=False)
    assert upstream.only_call().method == "HEAD"
    assert (reply.status_code, reply.headers["x-up"], reply.content) == (200, "1", b"")


@pytest.mark.parametrize("target", [CHAT, "/v1/responses"])
@pytest.mark.parametrize("coding", COMPRESSORS)
def test_compressed_replies_stay_compressed(
    upstream: Upstream, gateway: GatewayProcess, coding: str, target: str
) -> None:
    plain = orjson.dumps({"choices": [{"message": {"role": "assistant", "content": "数据" * 500}}]})
    packed = COMPRESSORS[coding](plain)
    upstream.queue(json_reply(packed, 200, [("Content-Encoding", coding)]))
    headers = auth(fresh_key(), ("Accept-Encoding", coding))
    reply = fetch(gateway.port, "POST", target, chat_body([user("hi")]), headers)
    assert upstream.only_call().header("accept-encoding") == coding
    assert (reply.header("content-encoding"), reply.body) == (coding, packed)


def test_a_caller_that_takes_no_compression_gets_none(upstream: Upstream, gateway: GatewayProcess) -> None:
    send_chat(gateway.port, [user("hi")])
    assert upstream.only_call().header("accept-encoding") in (None, "identity")


def test_redirects_are_shown_and_not_followed(upstream: Upstream, gateway: GatewayProcess) -> None:
    upstream.queue(Reply(307, [("Location", f"{upstream.url}/v1/elsewhere")], [b"moved"]))
    reply = fetch(gateway.port, "GET", "/v1/here")
    assert (reply.status, reply.header("location"), reply.body) == (307, f"{upstream.url}/v1/elsewhere", b"moved")
    assert upstream.only_call().target == "/v1/here"


def test_an_upload_streams_through(upstream: Upstream, gateway: GatewayProcess) -> None:
    part = b'--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n'
    body = part + bytes(range(256)) * 12_000 + b"\r\n--b--\r\n"
    headers = [("Content-Type", "multipart/form-data; boundary=b"), ("Content-Length", str(len(body)))]
    with RawClient(gateway.port) as client:
        client.send(request_head("POST", "/v1/files", headers, gateway.port) + body[:1_000_000])
        assert upstream.wait_until(lambda: upstream.calls and len(upstream.calls[0].body) > len(part))
        client.send(body[1_000_000:])
        upstream.queue(json_reply({"id": "file-1"}))
        assert client.reply().status == 200
    call = upstream.only_call()
    assert call.header("content-type") == "multipart/form-data; boundary=b"
    assert hashlib.sha256(call.body).digest() == hashlib.sha256(body).digest()


@pytest.mark.parametrize("target", [CHAT, "/v1/audio/transcriptions"])
def test_a_chunked_upload_arrives_whole(upstream: Upstream, gateway: GatewayProcess, target: str) -> None:
    body = chat_body([user("chunk by chunk " * 5000)])
    upstream.queue(json_reply({"ok": 1}))
    with RawClient(gateway.port) as client:
        headers = [("Authorization", f"Bearer {fresh_key()}"), ("Content-Type", "application/json")]
        client.send(request_head("POST", target, [*headers, ("Transfer-Encoding", "chunked")], gateway.port))
        for start in range(0, len(body), 10_007):
            piece = body[start : start + 10_007]
            client.send(b"%x\r\n%b\r\n" % (len(piece), piece))
        client.send(b"0\r\n\r\n")
        assert client.reply().body == b'{"ok":1}'
    assert bytes(upstream.only_call().body) == body


def test_a_large_binary_reply_streams_through(upstream: Upstream, gateway: GatewayProcess) -> None:
    gate = threading.Event()
    megabyte = bytes(range(256)) * 4096
    upstream.queue(Reply(200, [("Content-Type", "audio/mpeg")], [megabyte] * 4 + [gate] + [megabyte] * 16))
    with RawClient(gateway.port) as client:
        client.request("POST", "/v1/audio/speech", b"{}")
        client.read_until(megabyte)
        gate.set()
        reply = client.reply()
    assert (reply.complete, reply.header("content-type")) == (True, "audio/mpeg")
    assert hashlib.sha256(reply.body).digest() == hashlib.sha256(megabyte * 20).digest()


def test_the_model_is_told_the_truth_about_usage(upstream: Upstream, gateway: GatewayProcess) -> None:
    model = ChatModel()
    with upstream.answering(model):
        reply = send_chat(gateway.port, [user("hello world")])
    # 3 + 1 (role) + 2 (content) for the message, 3 to prime the reply
    assert orjson.loads(reply.body)["usage"]["prompt_tokens"] == 9
