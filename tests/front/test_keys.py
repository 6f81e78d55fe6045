"""A configured key's limits hold on everything that is passed through, as on chats."""

from __future__ import annotations

import orjson
import pytest

from tests.conftest import Launch
from tests.support.builders import user
from tests.support.chat import auth, error_of, send_chat
from tests.support.gateway_process import GatewayProcess
from tests.support.raw_http import RawReply, fetch
from tests.support.upstream import Call, Reply, Upstream, json_reply

EMBEDDINGS = "/v1/embeddings"


def echo(call: Call) -> Reply:
    """How many bytes came."""
    return json_reply({"target": call.target, "bytes": len(call.body)})


@pytest.fixture(scope="module")
def keyed(launch: Launch) -> GatewayProcess:
    keys = [
        {"key": "sk-small", "models": ["small-*"]},
        {"key": "sk-slow", "rpm": 2},
        {"key": "sk-free"},
    ]
    return launch(auth={"keys": keys})


def post(gateway: GatewayProcess, key: str, document: object, path: str = EMBEDDINGS, kind: str = "") -> RawReply:
    body = document if isinstance(document, bytes) else orjson.dumps(document)
    headers = [("Authorization", f"Bearer {key}"), ("Content-Type", kind or "application/json")]
    return fetch(gateway.port, "POST", path, body, headers)


def test_a_key_is_held_to_its_models(keyed: GatewayProcess, upstream: Upstream) -> None:
    upstream.handler = echo
    allowed = {"model": "small-embed", "input": "x" * 2_000_000}
    assert post(keyed, "sk-small", allowed).status == 200
    assert bytes(upstream.calls[0].body) == orjson.dumps(allowed)
    assert post(keyed, "sk-small", {"model": "small-1", "input": "x"}, "/v1/responses").status == 200
    assert post(keyed, "sk-small", {"voice": "none"}, "/v1/audio/speech").status == 200
    assert fetch(keyed.port, "GET", "/v1/models", b"", auth("sk-small")).status == 200
    before = len(upstream.calls)
    for model, kind in (
        ("large", ""),
        ("large", "text/plain"),
        ("", ""),
        ("SMALL-1", "application/json; charset=utf8"),
    ):
        padded = {"input": "x" * 1_500_000, "model": model}
        refused = post(keyed, "sk-small", padded, kind=kind)
        assert refused.status == 403
        assert error_of(refused)["param"] == "model"
    assert len(upstream.calls) == before


def test_forms_are_passed_on_unread(keyed: GatewayProcess, upstream: Upstream) -> None:
    upstream.handler = echo
    form = b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\n' + b"\0" * 100_000 + b"\r\n--x--\r\n"
    reply = post(keyed, "sk-small", form, "/v1/files", "multipart/form-data; boundary=x")
    assert reply.status == 200
    assert bytes(upstream.calls[0].body) == form


def test_a_key_is_held_to_its_rate_over_all_paths(keyed: GatewayProcess, upstream: Upstream) -> None:
    upstream.handler = echo
    assert send_chat(keyed.port, [user("hello")], "sk-slow").status == 200
    assert post(keyed, "sk-slow", {"model": "m", "input": "x"}).status == 200
    refused = post(keyed, "sk-slow", {"model": "m", "input": "x"})
    assert refused.status == 429
    assert int(refused.header("retry-after") or 0) > 0
    assert send_chat(keyed.port, [user("hello")], "sk-slow").status == 429
    assert len(upstream.calls) == 2


def test_a_key_without_limits_passes(keyed: GatewayProcess, upstream: Upstream) -> None:
    upstream.handler = echo
    for body in (b"", b"not json", b'{"model": 5}'):
        assert post(keyed, "sk-free", body).status == 200
