"""Upstreams that are wrong in each of the ways that people meet, as real servers on loopback."""

from __future__ import annotations

import socket
import threading
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from gateway.check_upstream import Finding, check_embeddings, check_upstream, explain_failure
from gateway.settings import AuthKey, AuthSettings, EmbeddingsSettings, UpstreamSettings
from tests.support.gateway_process import free_port
from tests.support.json_server import MODELS, Answers, json_server

OPEN = AuthSettings()


def upstream(url: str, **fields: Any) -> UpstreamSettings:
    return UpstreamSettings.model_validate({"name": "u", "base_url": url, **fields})


async def only(settings: UpstreamSettings, auth: AuthSettings = OPEN) -> Finding:
    (finding,) = await check_upstream(settings, auth)
    assert finding.subject == "upstreams.u"
    return finding


async def test_a_good_upstream_gets_its_own_key() -> None:
    with json_server(MODELS) as (url, heard):
        finding = await only(upstream(url, api_key="sk-1"))
    assert finding.level == "ok" and "2 models" in finding.text
    assert heard == [("GET", "/v1/models", "Bearer sk-1")]


async def test_a_misspelt_model_is_named() -> None:
    with json_server(MODELS) as (url, _):
        findings = await check_upstream(upstream(url, models=["gpt-4p", "gpt-5", "o1-*"]), OPEN)
    assert [finding.level for finding in findings] == ["ok", "warning"]
    assert "'gpt-4p' is not in its list" in findings[1].text and "did you mean 'gpt-4o'" in findings[1].text


@pytest.mark.parametrize(
    ("status", "headers", "level", "word"),
    [
        (401, {}, "problem", "refuses the key"),
        (403, {}, "problem", "403"),
        (404, {}, "problem", "usually ends in /v1"),
        (429, {}, "warning", "rate"),
        (500, {}, "problem", "status 500"),
        (301, {"location": "https://elsewhere.example/v1"}, "problem", "https://elsewhere.example/v1"),
    ],
)
async def test_a_status_is_put_into_words(status: int, headers: dict[str, str], level: str, word: str) -> None:
    with json_server({"GET /v1/models": (status, headers, {})}) as (url, _):
        finding = await only(upstream(url, api_key="canary"))
    assert finding.level == level and word in finding.text
    assert "canary" not in finding.text


async def test_wanting_a_key_is_right_where_callers_bring_theirs() -> None:
    with json_server({"GET /v1/models": (401, {}, {})}) as (url, _):
        assert (await only(upstream(url))).level == "ok"


async def test_the_gateways_own_keys_are_no_upstreams_keys() -> None:
    auth = AuthSettings(keys=[AuthKey(key=SecretStr("k"))])
    with json_server(MODELS) as (url, _):
        findings = await check_upstream(upstream(url), auth)
    assert [finding.level for finding in findings] == ["ok", "warning"]
    assert "auth.keys" in findings[1].text


async def test_a_server_without_a_list_is_asked_another_way() -> None:
    with json_server({"POST /v1/chat/completions": (400, {}, {"error": {"message": "no messages"}})}) as (url, _):
        finding = await only(upstream(url))
    assert finding.level == "ok" and "no list of models" in finding.text


@pytest.mark.parametrize("body", [b"<html>hello</html>", {"data": "x"}, [], {"data": [{}]}])
async def test_a_list_of_another_shape_is_a_warning(body: Any) -> None:
    with json_server({"GET /v1/models": (200, {}, body)}) as (url, _):
        finding = await only(upstream(url))
    assert finding.level == "warning"


async def test_nobody_listening() -> None:
    finding = await only(upstream(f"http://127.0.0.1:{free_port()}"))
    assert finding.level == "problem" and "refused" in finding.text


async def test_tls_asked_of_a_plain_server() -> None:
    with json_server(MODELS) as (url, _):
        finding = await only(upstream(url.replace("http:", "https:")))
    assert finding.level == "problem" and "TLS" in finding.text


async def test_something_that_is_not_http() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def greet() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"220 mail.example ESMTP\r\n")

        thread = threading.Thread(target=greet)
        thread.start()
        finding = await only(upstream(f"http://127.0.0.1:{listening.getsockname()[1]}"))
        thread.join()
    assert finding.level == "problem" and "not an HTTP server" in finding.text


async def test_a_silent_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.check_upstream.TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        finding = await only(upstream(f"http://127.0.0.1:{listening.getsockname()[1]}"))
    assert finding.level == "problem" and "silent" in finding.text


def test_an_unknown_host_is_told_from_a_dead_one() -> None:
    """As httpx wraps it; a real lookup would leave this machine."""
    error = httpx.ConnectError("All connection attempts failed")
    error.__cause__ = OSError("wrapped")
    error.__cause__.__context__ = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    assert "DNS" in explain_failure(error)


async def test_providers_are_litellms() -> None:
    known = UpstreamSettings(name="u", provider="anthropic", api_key=SecretStr("k"))
    assert (await only(known)).level == "ok"
    wrong = await only(UpstreamSettings(name="u", provider="antropic", api_key=SecretStr("k")))
    assert wrong.level == "warning" and "did you mean 'anthropic'" in wrong.text


async def test_embeddings_are_tried() -> None:
    endpoint: Answers = {"POST /v1/embeddings": (200, {}, {"data": [{"index": 0, "embedding": [0.1, 0.2, 0.3]}]})}
    with json_server(endpoint) as (url, heard):
        found = await check_embeddings(EmbeddingsSettings(base_url=url, model="m", api_key=SecretStr("e")))
    assert found.level == "ok" and "vectors of 3" in found.text
    assert heard == [("POST", "/v1/embeddings", "Bearer e")]
    with json_server({}) as (url, _):
        assert (await check_embeddings(EmbeddingsSettings(base_url=url, model="m"))).level == "problem"
    with json_server({"POST /v1/embeddings": (200, {}, {"data": []})}) as (url, _):
        assert (await check_embeddings(EmbeddingsSettings(base_url=url, model="m"))).level == "problem"
