"""What the gateway refuses, in OpenAI's error shape, without a call upstream; and what it leaves to the upstream to
refuse.
"""

from __future__ import annotations

import contextlib

import orjson
import pytest

from tests.conftest import Launch
from tests.support.builders import user
from tests.support.chat import CHAT, auth, chat_body, error_of, fresh_key, send_chat
from tests.support.gateway_process import GatewayProcess, free_port
from tests.support.raw_http import RawClient, RawReply, fetch, request_head
from tests.support.upstream import Cut, Reply, Upstream, error_reply, json_reply

BAD_BODIES = {
    "empty": b"",
    "not JSON": b"hello",
    "cut JSON": b'{"model":"gpt-4o-mini","messages":[{"role":"user"',
    "trailing junk": b'{"model":"gpt-4o-mini","messages":[{"role":"user","content":"x"}]} x',
    "list": b"[]",
    "string": b'"messages"',
    "null": b"null",
    "no messages": b'{"model":"gpt-4o-mini"}',
    "messages null": b'{"model":"gpt-4o-mini","messages":null}',
    "messages string": b'{"model":"gpt-4o-mini","messages":"hi"}',
    "messages object": b'{"model":"gpt-4o-mini","messages":{"role":"user","content":"hi"}}',
    "message string": b'{"model":"gpt-4o-mini","messages":[{"role":"user","content":"a"},"hi"]}',
    "message null": b'{"model":"gpt-4o-mini","messages":[{"role":"user","content":"a"},null]}',
    "message list": b'{"model":"gpt-4o-mini","messages":[{"role":"user","content":"a"},[]]}',
    "model number": b'{"model":42,"messages":[{"role":"user","content":"hi"}]}',
    "model object": b'{"model":{},"messages":[{"role":"user","content":"hi"}]}',
    "bad UTF-8": b'{"model":"gpt-4o-mini","messages":[{"role":"user","content":"\xff\xfe"}]}',
    "cut UTF-8": b'{"model":"gpt-4o-mini","messages":[{"role":"user","content":"\xe6\x95"}]}',
    "too deep": b'{"model":"gpt-4o-mini","messages":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
}

UPSTREAM_ERRORS = [
    (400, {"error": {"message": "bad", "type": "invalid_request_error", "param": "top_p", "code": None}}),
    (401, {"error": {"message": "Incorrect API key provided: sk-…", "code": "invalid_api_key"}}),
    (403, {"error": "forbidden, and not in the usual shape"}),
    (404, {"error": {"message": "The model does not exist", "code": "model_not_found"}}),
    (422, {"detail": [{"loc": ["body"], "msg": "field required"}]}),
    (429, {"error": {"message": "Rate limit", "type": "tokens", "code": "rate_limit_exceeded"}}),
    (500, {"error": {"message": "The server had an error", "type": "server_error"}}),
]

MEGABYTE = 1024 * 1024


def assert_goes_on(gateway: GatewayProcess) -> None:
    """The next good request is answered."""
    assert send_chat(gateway.port, [user("still there?")]).status == 200


@pytest.fixture(scope="module")
def strict(launch: Launch, module_upstream: Upstream) -> GatewayProcess:
    """A small body limit, two keys, and models by pattern."""
    keys = [{"key": "sk-front-alpha", "tenant": "alpha"}, {"key": "sk-front-beta", "tenant": "beta"}]
    route = {"name": "some", "base_url": f"{module_upstream.url}/v1", "models": ["gpt-*", "exact-model"]}
    launched: GatewayProcess = launch(auth={"keys": keys}, upstreams=[route])
    return launched


@pytest.fixture(scope="module")
def small(launch: Launch) -> GatewayProcess:
    """A body limit of one megabyte."""
    return launch(server={"host": "127.0.0.1", "port": free_port(), "max_body_mb": 1})


@pytest.mark.parametrize("name", BAD_BODIES)
def test_a_body_that_cannot_be_understood(upstream: Upstream, gateway: GatewayProcess, name: str) -> None:
    reply = fetch(gateway.port, "POST", CHAT, BAD_BODIES[name], auth(fresh_key()))
    error = error_of(reply)
    assert (reply.status, error["type"]) == (400, "invalid_request_error")
    assert (reply.header("content-type") or "").startswith("application/json")
    if name.startswith("message "):
        assert "messages[1]" in f"{error['param']} {error['message']}"
    if name.startswith(("messages ", "no messages")):
        assert "messages" in f"{error['param']} {error['message']}"
    assert upstream.calls == []
    assert_goes_on(gateway)


@pytest.mark.parametrize("target", [CHAT, "/v1/files"])
def test_a_body_over_the_limit(upstream: Upstream, small: GatewayProcess, target: str) -> None:
    body = chat_body([user("x" * MEGABYTE)])
    with RawClient(small.port) as client:
        head = request_head("POST", target, [*auth(fresh_key()), ("Content-Length", str(len(body)))], small.port)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.send(head + body)
        reply = client.reply()
    assert_too_large(reply, upstream)
    assert_goes_on(small)


@pytest.mark.parametrize("target", [CHAT, "/v1/files"])
def test_a_chunked_body_over_the_limit(upstream: Upstream, small: GatewayProcess, target: str) -> None:
    with RawClient(small.port) as client:
        headers = [*auth(fresh_key()), ("Transfer-Encoding", "chunked")]
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.send(request_head("POST", target, headers, small.port))
            for _ in range(20):
                client.send(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
            client.send(b"0\r\n\r\n")
        reply = client.reply()
    assert_too_large(reply, upstream)
    assert_goes_on(small)


def assert_too_large(reply: RawReply, upstream: Upstream) -> None:
    """A refusal for size, and nothing whole at the upstream."""
    assert error_of(reply)["type"] == "invalid_request_error"
    assert reply.status == 413
    assert [call for call in upstream.calls if call.complete_at is not None] == []


def test_a_body_just_under_the_limit_passes(upstream: Upstream, small: GatewayProcess) -> None:
    body = chat_body([user("x" * (MEGABYTE - 200))])
    assert len(body) <= MEGABYTE
    assert fetch(small.port, "POST", CHAT, body, auth(fresh_key())).status == 200


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer sk-front-alph",
        "Bearer sk-front-alphaa",
        "Bearer sk-front-%",
        "Bearer sk-front-*",
        "Basic sk-front-alpha",
        "Bearer SK-FRONT-ALPHA",
        "Bearer sk-front-alpha,sk-front-beta",
    ],
)
@pytest.mark.parametrize("target", [CHAT, "/v1/models", "/v1/memory/facts"])
def test_a_wrong_key(upstream: Upstream, strict: GatewayProcess, authorization: str | None, target: str) -> None:
    headers = [("Content-Type", "application/json")]
    if authorization is not None:
        headers.append(("Authorization", authorization))
    method = "POST" if target == CHAT else "GET"
    reply = fetch(strict.port, method, target, chat_body([user("hi")]) if target == CHAT else b"", headers)
    error_of(reply)
    assert reply.status == 401
    assert upstream.calls == []


def test_a_right_key(upstream: Upstream, strict: GatewayProcess) -> None:
    for key in ("sk-front-alpha", "sk-front-beta"):
        assert send_chat(strict.port, [user("hi")], key).status == 200
    assert fetch(strict.port, "GET", "/healthz", b"", []).status == 200


@pytest.mark.parametrize("model", ["claude-unheard-of", "gpt", "my-gpt-4o", "exact-model-2"])
def test_a_model_no_upstream_serves(upstream: Upstream, strict: GatewayProcess, model: str) -> None:
    reply = fetch(
        strict.port, "POST", CHAT, orjson.dumps({"model": model, "messages": [user("x")]}), auth("sk-front-alpha")
    )
    assert (reply.status, error_of(reply)["code"]) == (404, "model_not_found")
    assert upstream.calls == []


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-", "exact-model"])
def test_a_model_by_pattern(upstream: Upstream, strict: GatewayProcess, model: str) -> None:
    body = orjson.dumps({"model": model, "messages": [user("x")]})
    assert fetch(strict.port, "POST", CHAT, body, auth("sk-front-alpha")).status == 200
    assert bytes(upstream.only_call().body) == body


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("status", "document"), UPSTREAM_ERRORS)
def test_the_upstreams_own_errors_pass_untouched(
    upstream: Upstream, gateway: GatewayProcess, status: int, document: object, stream: bool
) -> None:
    body = orjson.dumps(document, option=orjson.OPT_INDENT_2)
    with upstream.answering(lambda _: json_reply(body, status, [("X-Ratelimit-Remaining-Requests", "0")])):
        reply = send_chat(gateway.port, [user("hi")], stream=stream)
    assert (reply.status, reply.body) == (status, body)
    assert reply.header("x-ratelimit-remaining-requests") == "0"
    assert_goes_on(gateway)


def test_an_error_page_that_is_not_json_passes(upstream: Upstream, gateway: GatewayProcess) -> None:
    page = Reply(503, [("Content-Type", "text/html"), ("Retry-After", "0")], [b"<h1>Busy</h1>"])
    with upstream.answering(lambda _: page):
        reply = send_chat(gateway.port, [user("hi")])
    assert (reply.status, reply.body, reply.header("retry-after")) == (503, b"<h1>Busy</h1>", "0")


@pytest.mark.parametrize("target", [CHAT, "/v1/embeddings"])
def test_an_upstream_that_is_down(launch: Launch, target: str) -> None:
    route = {"name": "down", "base_url": f"http://127.0.0.1:{free_port()}/v1", "models": ["*"]}
    gateway = launch(upstreams=[route])
    reply = fetch(gateway.port, "POST", target, chat_body([user("hi")]), auth(fresh_key()))
    error_of(reply)
    assert reply.status == 502
    assert fetch(gateway.port, "GET", "/healthz").status == 200


@pytest.mark.parametrize(
    "reply", [Reply(before=[Cut()]), Reply(before=[b"this is no HTTP\r\n\r\n", Cut()])], ids=["hangs up", "no HTTP"]
)
@pytest.mark.parametrize("target", [CHAT, "/v1/responses"])
def test_an_upstream_that_gives_no_answer(
    upstream: Upstream, gateway: GatewayProcess, reply: Reply, target: str
) -> None:
    with upstream.answering(lambda _: reply):
        got = fetch(gateway.port, "POST", target, chat_body([user("hi")]), auth(fresh_key()))
    error_of(got)
    assert got.status == 502
    assert_goes_on(gateway)


def test_a_rate_limit_of_the_upstream_keeps_its_advice(upstream: Upstream, gateway: GatewayProcess) -> None:
    limited = error_reply(429, "Slow down.", "rate_limit_exceeded", [("Retry-After", "0")])
    with upstream.answering(lambda _: limited):
        reply = send_chat(gateway.port, [user("hi")])
    assert (reply.status, reply.header("retry-after")) == (429, "0")


@pytest.mark.parametrize("path", ["/", "/v2/chat/completions", "/chat/completions", "/v1x"])
def test_paths_outside_the_surface_reach_no_upstream(upstream: Upstream, gateway: GatewayProcess, path: str) -> None:
    reply = fetch(gateway.port, "POST", path, chat_body([user("hi")]), auth(fresh_key()))
    assert reply.status in (404, 405)
    assert upstream.calls == []
