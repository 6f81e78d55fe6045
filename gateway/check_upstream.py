"""Tries an upstream and says in words what is wrong with it.

Costs nothing: it asks for the list of models, and where a server has none, sends a request with no messages, which an
OpenAI-compatible server refuses before it reaches a model. Like the gateway itself it follows no redirect and uses no
proxy from the environment, so that it sees what the gateway will see.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import httpx

from gateway.settings import AuthSettings, EmbeddingsSettings, UpstreamSettings
from gateway.settings_errors import nearest

TIMEOUT_S = 5.0
"""Seconds to connect, and to answer: a list of models is quick, and a person waits."""
Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True)
class Finding:
    """One thing looked at: how it stands, what it is in the configuration, and what was found."""

    level: Level
    subject: str
    text: str


def is_glob(name: str) -> bool:
    """Whether a model's name is a pattern, so that no list can be asked for it."""
    return any(sign in name for sign in "*?[")


async def check_upstream(upstream: UpstreamSettings, auth: AuthSettings) -> list[Finding]:
    """What an upstream answers, and whether its keys fit the gateway's own."""
    subject = f"upstreams.{upstream.name}"
    findings = list(_keys(subject, upstream, auth))
    if upstream.provider is not None:
        findings += _provider(subject, upstream.provider)
    if upstream.base_url is None:
        return findings
    try:
        async with _client(upstream) as client:
            if upstream.provider is not None:
                await client.get(upstream.base_url)
                found = [Finding("ok", subject, f"{upstream.base_url} can be reached")]
            else:
                found = await _ask(client, subject, upstream, upstream.base_url)
    except (httpx.HTTPError, OSError) as error:
        found = [Finding("problem", subject, f"{upstream.base_url}: {explain_failure(error)}")]
    return [*found, *findings]


async def check_embeddings(endpoint: EmbeddingsSettings) -> Finding:
    """Whether the endpoint turns a word into numbers."""
    subject = "memory.embeddings"
    url = f"{endpoint.base_url}/embeddings"
    key = endpoint.api_key.get_secret_value() if endpoint.api_key else None
    try:
        async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False) as client:
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            reply = await client.post(url, json={"model": endpoint.model, "input": ["check"]}, headers=headers)
            size = len(reply.json()["data"][0]["embedding"]) if reply.is_success else 0
    except (httpx.HTTPError, OSError) as error:
        return Finding("problem", subject, f"{url}: {explain_failure(error)}")
    except (ValueError, LookupError, TypeError):
        return Finding("problem", subject, f"{url} answers, but not with embeddings in OpenAI's shape")
    if not reply.is_success:
        return Finding("problem", subject, f"{url}: {_status(reply)}")
    return Finding("ok", subject, f"{endpoint.model} at {endpoint.base_url} gives vectors of {size}")


def explain_failure(error: BaseException) -> str:
    """Why no HTTP answer came, from the first cause in the chain that says it."""
    for cause in _causes(error):
        if isinstance(cause, socket.gaierror):
            return "the host's name is not known (DNS): is it spelled right?"
        if isinstance(cause, ConnectionRefusedError):
            return "the connection is refused: is the server running, on this port?"
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its TLS certificate is not trusted ({cause.verify_message}); ca_file can name the one to trust"
        if isinstance(cause, ssl.SSLError):
            return "the TLS handshake failed: is it http:// rather than https://?"
        if isinstance(cause, httpx.TimeoutException):
            return f"silent for {TIMEOUT_S:g} s"
        if isinstance(cause, httpx.RemoteProtocolError):
            return "what answers there is not an HTTP server: is it https:// rather than http://?"
    return str(error) or type(error).__name__


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        cause = waiting.pop(0)
        if cause is None or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        waiting += [cause.__cause__, cause.__context__]
        if isinstance(cause, BaseExceptionGroup):
            waiting += cause.exceptions


def _client(upstream: UpstreamSettings) -> httpx.AsyncClient:
    headers = dict(upstream.headers)
    if upstream.api_key is not None:
        headers["Authorization"] = f"Bearer {upstream.api_key.get_secret_value()}"
    trust = ssl.create_default_context(cafile=str(upstream.ca_file)) if upstream.ca_file else True
    return httpx.AsyncClient(headers=headers, timeout=TIMEOUT_S, verify=trust, trust_env=False)


async def _ask(client: httpx.AsyncClient, subject: str, upstream: UpstreamSettings, base_url: str) -> list[Finding]:
    reply = await client.get(f"{base_url}/models")
    if reply.is_success:
        return _models(subject, upstream, base_url, reply)
    if reply.status_code in (401, 403) and upstream.api_key is None:
        return [Finding("ok", subject, f"{base_url} answers and wants a key: the caller's is passed on")]
    if reply.status_code in (404, 405):
        chat = await client.post(f"{base_url}/chat/completions", json={})
        if chat.status_code not in (404, 405):
            return [Finding("ok", subject, f"{base_url} answers; it has no list of models")]
    level: Level = "warning" if reply.status_code == 429 else "problem"
    return [Finding(level, subject, f"{base_url}: {_status(reply)}")]


def _models(subject: str, upstream: UpstreamSettings, base_url: str, reply: httpx.Response) -> list[Finding]:
    try:
        listed = sorted({str(model["id"]) for model in reply.json()["data"]})
    except (ValueError, LookupError, TypeError):
        return [Finding("warning", subject, f"{base_url} answers, but its list of models is not in OpenAI's shape")]
    findings = [Finding("ok", subject, f"{base_url} answers, {len(listed)} models")]
    for name in upstream.models:
        if not is_glob(name) and name not in listed:
            near = nearest(name, listed)
            hint = f"; did you mean '{near}'?" if near else ""
            findings.append(Finding("warning", subject, f"'{name}' is not in its list of models{hint}"))
    return findings


def _status(reply: httpx.Response) -> str:
    status = reply.status_code
    if reply.is_redirect:
        return f"redirects to {reply.headers.get('location')}, and redirects are not followed: name the final address"
    meanings = {
        401: "refuses the key (401)",
        403: "the key may not do this (403)",
        404: "no API there (404): a base_url usually ends in /v1",
        405: "no API there (405): a base_url usually ends in /v1",
        429: "is limiting the rate just now (429)",
    }
    return meanings.get(status, f"answers with status {status}")


def _keys(subject: str, upstream: UpstreamSettings, auth: AuthSettings) -> Iterator[Finding]:
    if auth.keys and upstream.api_key is None and upstream.provider is None:
        text = "has no api_key, so it would get the callers' keys for this gateway (auth.keys), and refuse them"
        yield Finding("warning", subject, text)


def _provider(subject: str, provider: str) -> list[Finding]:
    spec = find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        return [Finding("problem", subject, "has a provider, but litellm is not installed")]
    folder = Path(next(iter(spec.submodule_search_locations))) / "llms"
    known = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("_"))
    if provider in known:
        return [Finding("ok", subject, f"provider {provider}, through litellm")]
    near = nearest(provider, known)
    hint = f"; did you mean '{near}'?" if near else ""
    return [Finding("warning", subject, f"litellm has no module for provider '{provider}'{hint}")]
