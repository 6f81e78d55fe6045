"""The full-text index: posting lists per tenant and scope, kept as packed arrays and scored with numpy.
Why not FTS5 or tsvector: their posting lists are global, so one tenant's query pays for every other's rows and its term
rarity is everyone's; their rank knows nothing of the turn before; and a very common word costs them one step per row.
Here a *space* is one tenant's scope, its entries have consecutive *slots*, and a posting list is cut in chunks of
`CHUNK` slots, one row each, to which writing appends. A query reads only its own space's rows and scores a hundred
thousand postings in a millisecond. The same rows and the same code serve SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHUNK = 2048
"""Slots in one posting row: at most 8 KiB, so that appending one entry rewrites little and a query fetches few rows."""
TF_UNIT = 10
"""Weighted term frequency is kept in tenths, one byte."""
MAX_BYTE = 255

K1 = 1.2
B = 0.5
"""Okapi BM25. Memories are short: length says little, so b is below the usual 0.75 (tuned on half of LoCoMo's
dialogues)."""
NEIGHBOUR_DAMPING = (0.5, 0.25)
"""What the entry one and two places away in the same session adds."""
POSTING_BUDGET = 400_000
"""Postings read for one query: rarest terms first, the commonest left out beyond it. About 10 ms; reached past 100 K
entries only."""


def term_id(term: str) -> int:
    """A signed 64-bit hash: smaller than the text, and an erased tenant's words can't be read from a freed page."""
    import xxhash

    value = xxhash.xxh3_64_intdigest(term.encode("utf-8", "replace"))
    return value - (1 << 64) if value >= 1 << 63 else value


@dataclass(frozen=True, slots=True)
class Doc:
    """One entry as the index sees it."""

    terms: dict[int, int]
    """Term id -> weighted frequency in `TF_UNIT`s, 1..255."""
    length: int
    """Sum of the weights, rounded, 1..255."""

    def packed(self) -> bytes:
        """For the entry's row: what has to be taken out again when it goes. Length (u8), then term (i64) and frequency
        (u8) each."""
        return bytes((self.length,)) + b"".join(
            term.to_bytes(8, "little", signed=True) + bytes((tf,)) for term, tf in self.terms.items()
        )

    @staticmethod
    def unpack(data: bytes) -> tuple[int, list[int]]:
        """The length and the term ids in `packed`."""
        return data[0], [int.from_bytes(data[i : i + 8], "little", signed=True) for i in range(1, len(data), 9)]


def make_doc(fields: Iterable[tuple[str, float]]) -> Doc:
    """Index form of an entry's texts, each with its weight."""
    from gateway.memory.tokenise import weighted_terms

    summed: dict[str, float] = {}
    length = 0.0
    for text, weight in fields:
        for term, amount in weighted_terms(text).items():
            summed[term] = summed.get(term, 0.0) + amount * weight
            length += amount * weight
    terms = {term_id(term): min(MAX_BYTE, max(1, round(amount * TF_UNIT))) for term, amount in summed.items()}
    return Doc(terms, min(MAX_BYTE, max(1, round(length))))


def posting(slot: int, tf: int, length: int) -> bytes:
    """One record: offset in the chunk (u16), frequency (u8), the entry's length (u8)."""
    return (slot % CHUNK).to_bytes(2, "little") + bytes((tf, length))


def without(data: bytes, slot: int) -> bytes:
    """The list without that slot's record."""
    gone = (slot % CHUNK).to_bytes(2, "little")
    return b"".join(data[i : i + 4] for i in range(0, len(data), 4) if data[i : i + 2] != gone)


@dataclass(slots=True)
class Scores:
    """One space's answer to one query."""

    own: NDArray[np.float32]
    """BM25 by slot."""
    share: NDArray[np.float32]
    """Share of the query's weighted rarity by slot, 0..1."""
    ceiling: float

    def best(self, limit: int) -> NDArray[np.int64]:
        """Slots by own plus neighbours' scores, best first, only those with any."""
        import numpy as np

        total = self.own + self.around()
        found = np.flatnonzero(total > 0)
        if len(found) > limit:
            found = found[np.argpartition(-total[found], limit)[:limit]]
        return found[np.argsort(-total[found], kind="stable")]

    def around(self) -> NDArray[np.float32]:
        """Damped scores of the places before and after, whatever their session."""
        import numpy as np

        total = np.zeros_like(self.own)
        for distance, damping in enumerate(NEIGHBOUR_DAMPING, 1):
            total[distance:] += damping * self.own[:-distance]
            total[:-distance] += damping * self.own[distance:]
        return total


def idf(docs: int, df: int) -> float:
    """BM25's rarity, never negative: ln(1 + (N - df + 0.5) / (df + 0.5))."""
    import math

    return math.log(1.0 + (docs - df + 0.5) / (df + 0.5))


def within_budget(frequencies: Mapping[int, int]) -> list[int]:
    """Term ids to read: rarest first, as far as the posting budget goes; at least one."""
    chosen: list[int] = []
    spent = 0
    for term, df in sorted(frequencies.items(), key=lambda item: (item[1], item[0])):
        if chosen and spent + df > POSTING_BUDGET:
            break
        chosen.append(term)
        spent += df
    return chosen


def score(
    postings: Sequence[Sequence[Any]],
    weights: Mapping[int, float],
    rarity: Mapping[int, float],
    slots: int,
    average_length: float,
) -> Scores:
    """BM25 of every slot of a space.
    postings: rows (term, chunk, data). weights: the query's, by term. rarity: `idf` by term of the whole query, also of
    terms not read."""
    import numpy as np

    record = np.dtype([("offset", "<u2"), ("tf", "u1"), ("length", "u1")])
    own = np.zeros(slots + max(len(NEIGHBOUR_DAMPING), 1), dtype=np.float32)
    share = np.zeros_like(own)
    whole = sum(weights[term] * rarity[term] for term in rarity) or 1.0
    # float32 lookup tables: a record's length has 256 values, so the division happens 256 times and not per posting
    norm = (K1 * (1 - B + B * np.arange(MAX_BYTE + 1, dtype=np.float32) / average_length)).astype(np.float32)
    for term, chunk, data in postings:
        found = np.frombuffer(data, dtype=record)
        where = found["offset"].astype(np.int64) + chunk * CHUNK
        tf = found["tf"].astype(np.float32) / TF_UNIT
        weight = np.float32(weights[term] * rarity[term])
        own[where] += weight * tf * np.float32(K1 + 1) / (tf + norm[found["length"]])
        share[where] += weight / np.float32(whole)
    return Scores(own[:slots], np.minimum(share[:slots], 1.0), float(whole))
