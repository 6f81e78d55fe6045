"""Memory found by meaning: an embeddings endpoint, scripted, behind a real gateway."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import Launch
from tests.support.builders import system, user
from tests.support.chat import CHAT, auth, chat_body, eventually, fresh_key
from tests.support.gateway_process import GatewayProcess
from tests.support.raw_http import fetch
from tests.support.upstream import Call, Reply, Upstream, error_reply, json_reply

FACT = "Our production database is PostgreSQL 15."
OTHER = "I am allergic to peanuts."
QUESTION = "Quelle est la couche de persistance ?"
"""Shares no word with the fact."""
SECRET = "sk-embeddings-own-key"
STORES = ("PostgreSQL", "persistance")


def vector(text: str) -> list[float]:
    """Two meanings: stores of data, and all else."""
    return [1.0, 0.0] if any(word in text for word in STORES) else [0.0, 1.0]


def embed(call: Call) -> Reply:
    """OpenAI's `/v1/embeddings`."""
    if not call.target.endswith("/v1/embeddings"):
        return error_reply(404, call.target)
    texts = call.json()["input"]
    rows = [{"object": "embedding", "index": index, "embedding": vector(text)} for index, text in enumerate(texts)]
    return json_reply({"object": "list", "data": rows, "model": "scripted"})


@pytest.fixture(scope="module")
def embedder() -> Iterator[Upstream]:
    with Upstream(embed) as server:
        yield server


@pytest.fixture(scope="module")
def remembering(launch: Launch, embedder: Upstream) -> GatewayProcess:
    endpoint = {"base_url": f"{embedder.url}/v1", "model": "scripted", "api_key": SECRET}
    return launch(memory={"enabled": True, "embeddings": endpoint})


def told(gateway: GatewayProcess, upstream: Upstream, key: str, text: str, session: int) -> str:
    """One user message in a session of its own; the system text that the upstream got."""
    messages = [system(f"Session {session}."), user(text)]
    seen = len(upstream.calls)
    assert fetch(gateway.port, "POST", CHAT, chat_body(messages), auth(key)).status == 200
    return str(upstream.calls[seen].json()["messages"][0]["content"])


def test_a_fact_is_found_by_its_meaning(remembering: GatewayProcess, upstream: Upstream, embedder: Upstream) -> None:
    key, sessions = fresh_key(), iter(range(1_000))
    for fact in (FACT, OTHER):
        told(remembering, upstream, key, fact, next(sessions))
    assert eventually(lambda: "PostgreSQL" in told(remembering, upstream, key, QUESTION, next(sessions)), every=0.2)
    assert "peanuts" not in told(remembering, upstream, key, QUESTION, next(sessions))
    assert "PostgreSQL" not in told(remembering, upstream, fresh_key(), QUESTION, next(sessions))
    assert {call.header("authorization") for call in embedder.calls} == {f"Bearer {SECRET}"}
    written = {text for call in embedder.calls for text in call.json()["input"]}
    assert {FACT, OTHER, QUESTION} <= written


def test_an_endpoint_that_is_down_leaves_the_words(launch: Launch, upstream: Upstream) -> None:
    with Upstream(lambda _: error_reply(500, "down")) as broken:
        endpoint = {"base_url": f"{broken.url}/v1", "model": "scripted"}
        gateway = launch(memory={"enabled": True, "embeddings": endpoint})
        key, sessions = fresh_key(), iter(range(1_000))
        told(gateway, upstream, key, FACT, next(sessions))
        question = "What is our production database?"
        assert eventually(lambda: "PostgreSQL" in told(gateway, upstream, key, question, next(sessions)), every=0.2)
        asked = len(broken.calls)
        assert asked > 0
        for _ in range(5):
            told(gateway, upstream, key, question, next(sessions))
        assert len(broken.calls) == asked  # it rests after a failure
