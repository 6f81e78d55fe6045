"""Which embedder the configuration gives; a missing extra is told of once and costs nothing but meaning."""

from __future__ import annotations

import importlib.util

import pytest
import structlog
from structlog.testing import capture_logs

from gateway.memory.embedding import ENDPOINT, LOCAL_MODULE, embedder_of
from gateway.memory.vectors import HttpEmbedder, LocalEmbedder
from gateway.settings import EmbeddingsSettings
from gateway.upstream.pool import Upstreams


async def test_none_is_wanted() -> None:
    upstreams = Upstreams([])
    assert embedder_of(None, upstreams) is None
    await upstreams.close()


async def test_a_missing_extra_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    structlog.reset_defaults()
    upstreams = Upstreams([])
    with capture_logs() as told:
        assert embedder_of("local", upstreams) is None
    assert len(told) == 1
    assert "breakwater-gateway[embeddings]" in told[0]["install"]
    await upstreams.close()


async def test_the_local_model_tells_meanings_apart() -> None:
    """The package's own figures: database and DB 0.70, unrelated words 0.2 (docs/memory-bench.md)."""
    if importlib.util.find_spec(LOCAL_MODULE) is None:
        pytest.skip("the embeddings extra is not installed")
    upstreams = Upstreams([])
    embedder = embedder_of("local", upstreams)
    assert isinstance(embedder, LocalEmbedder)
    database, short, cat = await embedder.embed(["database", "DB", "a cat on the roof"])

    def cosine(a: list[float], b: list[float]) -> float:
        norm = sum(x * x for x in a) ** 0.5 * sum(x * x for x in b) ** 0.5
        return float(sum(x * y for x, y in zip(a, b, strict=True)) / norm)

    assert cosine(database, short) > 0.5 > cosine(database, cat)
    await upstreams.close()


async def test_an_endpoint_is_asked_under_its_own_name() -> None:
    wanted = EmbeddingsSettings.model_validate({"base_url": "http://127.0.0.1:9", "model": "m"})
    upstreams = Upstreams([])
    embedder = embedder_of(wanted, upstreams)
    assert isinstance(embedder, HttpEmbedder)
    assert embedder.name == "m"
    assert ENDPOINT in upstreams._plain
    await upstreams.close()
