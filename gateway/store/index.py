"""The full-text index: posting lists per tenant and scope, kept as packed arrays and scored with numpy.

Why not FTS5 or tsvector: their posting lists are global, so one tenant's query pays for every other's rows and its term
rarity is everyone's; their rank knows nothing of the turn before; and a very common word costs them one step per row.
Here a *space* is one tenant's scope, its entries have consecutive *slots*, and a posting list is cut in chunks of
`CHUNK` slots, one row each, to which writing appends. A query reads only its own space's rows and scores a hundred
thousand postings in a millisecond. The same rows and the same code serve SQLite and PostgreSQL.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from xxhash import xxh3_64_intdigest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHUNK = 2048
"""Slots in one posting row: at most 8 KiB, so that appending one entry rewrites little and a query fetches few rows."""
TF_UNIT = 10
"""Weighted term frequency is kept in tenths, one byte."""
MAX_BYTE = 255

K1 = 1.2
B = 0.3
"""Okapi BM25. Memories are short, so length says little: b is below the usual 0.75."""

PREVIOUS, NEXT = 0.2, 0.3
SECOND_PREVIOUS, SECOND_NEXT = 0.2, 0.14
"""What an entry gets of the scores one and two places away in its session."""
ANSWER = 0.3
"""More of the place before, where that one is a question: this entry is its answer."""
WINDOW = 6
WINDOW_BEST = 0.4
"""Share of the best score within that many places: the session was talking about it."""
QUESTION = 0.8
"""A question holds its topic's words and not the fact, so it counts less than a statement."""
# K1 to QUESTION were chosen on five of LoCoMo's ten dialogues and confirmed on the other five (docs/memory-bench.md).

CENTRES = 200
"""Best entries whose surroundings are looked at."""
MARK_TERM = 0
"""The posting list that isn't one: per slot, a session tag and flags."""
IS_QUESTION = 1

POSTING_BUDGET = 400_000
"""Postings read for one query: rarest terms first, the commonest left out beyond it. About 10 ms; reached past 100 K
entries only."""


@lru_cache(maxsize=16_384)
def term_id(term: str) -> int:
    """A signed 64-bit hash: smaller than the text, and an erased tenant's words can't be read from a freed page."""
    value = xxh3_64_intdigest(term.encode("utf-8", "replace"))
    return value - (1 << 64) if value >= 1 << 63 else value


@dataclass(frozen=True, slots=True)
class Doc:
    """One entry as the index sees it."""

    terms: dict[int, int]
    """Term id -> weighted frequency in `TF_UNIT`s, 1..255."""
    length: int
    """Sum of the weights, rounded, 1..255."""
    mark: bytes
    """Its slot's record in `MARK_TERM`'s list."""

    def packed(self) -> bytes:
        """For the entry's row: what has to be taken out again when it goes. Length (u8), then term (i64) and frequency
        (u8) each."""
        pairs = [value for pair in self.terms.items() for value in pair]
        return struct.pack(f"<B{'qB' * len(self.terms)}", self.length, *pairs)

    @staticmethod
    def unpack(data: bytes) -> tuple[int, list[int]]:
        """The length and the term ids in `packed`."""
        return data[0], [term for term, _ in struct.iter_unpack("<qB", data[1:])]


def make_doc(fields: Iterable[tuple[str, float]], session: str, content: str) -> Doc:
    """Index form of an entry: its texts, each with its weight, and what its neighbours need to know of it."""
    from gateway.memory.tokenise import weighted_terms

    summed: dict[str, float] = {}
    length = 0.0
    for text, weight in fields:
        for term, amount in weighted_terms(text).items():
            summed[term] = summed.get(term, 0.0) + amount * weight
            length += amount * weight
    terms = {term_id(term): min(MAX_BYTE, max(1, round(amount * TF_UNIT))) for term, amount in summed.items()}
    return Doc(terms, min(MAX_BYTE, max(1, round(length))), make_mark(session, content))


def posting(slot: int, tf: int, length: int) -> bytes:
    """One record: offset in the chunk (u16), frequency (u8), the entry's length (u8)."""
    return (slot % CHUNK).to_bytes(2, "little") + bytes((tf, length))


def without(data: bytes, slot: int) -> bytes:
    """The list without that slot's record."""
    gone = (slot % CHUNK).to_bytes(2, "little")
    return b"".join(data[i : i + 4] for i in range(0, len(data), 4) if data[i : i + 2] != gone)


def make_mark(session: str, text: str) -> bytes:
    """A slot's record in `MARK_TERM`'s list: session tag (u16; 0: none), flags (u8), nothing (u8)."""
    tag = (term_id(session) % 65_535) + 1 if session else 0
    return tag.to_bytes(2, "little") + bytes(
        (IS_QUESTION if text.rstrip().endswith(("?", "\uff1f", "\u061f")) else 0, 0)
    )


def with_mark(data: bytes, slot: int, record: bytes) -> bytes:
    """The marks of a chunk with one slot's replaced."""
    at = slot % CHUNK * 4
    return data[:at] + record + data[at + 4 :]


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


@dataclass(frozen=True, slots=True)
class Own:
    """BM25 by slot, with `WINDOW` empty places at either end, and what an ideal entry would get."""

    bm25: NDArray[np.float32]
    ceiling: float

    def centres(self, limit: int) -> NDArray[np.int64]:
        """Array positions of the best, in no order: `CENTRES` of them, or `limit` where that is more."""
        import numpy as np

        size = max(CENTRES, limit)
        found = np.flatnonzero(self.bm25 > 0)
        if len(found) > size:
            found = found[np.argpartition(self.bm25[found], -size)[-size:]]
        return found


@lru_cache(maxsize=8)
def _contributions(average_length: float) -> NDArray[np.float32]:
    """BM25's saturated frequency by (tf, length) as one 16-bit number: a record is scored by one look-up."""
    import numpy as np

    number = np.arange(1 << 16, dtype=np.float32)
    tf = np.floor(number % 256) / TF_UNIT  # little-endian: the first byte, the frequency, is the low one
    length = np.floor(number / 256)
    table = (K1 + 1) * tf / (tf + K1 * (1 - B + B * length / average_length))
    return table.astype(np.float32)


def score(
    postings: Mapping[int, Sequence[tuple[int, bytes]]],
    weights: Mapping[int, float],
    rarity: Mapping[int, float],
    slots: int,
    average_length: float,
) -> Own:
    """BM25 of every slot of a space.

    postings: (chunk, data) rows by term. weights: the query's, by term. rarity: `idf` by term of the whole query, also
    of terms not read. average_length: in the units of `Doc.length`, at least 1.
    """
    import numpy as np

    table = _contributions(round(average_length, 1))
    bm25 = np.zeros(slots + 2 * WINDOW, dtype=np.float32)
    for term, rows in postings.items():
        pairs = np.frombuffer(b"".join(data for _, data in rows), dtype="<u2").reshape(-1, 2)
        bases = np.array([chunk * CHUNK + WINDOW for chunk, _ in rows])
        where = np.repeat(bases, [len(data) // 4 for _, data in rows]) + pairs[:, 0]
        bm25[where] += table[pairs[:, 1]] * np.float32(weights[term] * rarity[term])
    return Own(bm25, float(sum(weights[term] * rarity[term] for term in rarity)) or 1.0)


@dataclass(frozen=True, slots=True)
class Ranked:
    """Slots, best first, with their final scores."""

    slots: NDArray[np.int64]
    scores: NDArray[np.float32]


def surroundings(own: Own, centres: NDArray[np.int64]) -> NDArray[np.int64]:
    """Array positions of the centres and of all within `WINDOW` of them, ascending."""
    import numpy as np

    near = np.zeros(len(own.bm25) + 2 * WINDOW, dtype=bool)
    for distance in range(2 * WINDOW + 1):
        near[centres + distance] = True
    return np.flatnonzero(near[WINDOW:-WINDOW])


def chunks_of(positions: NDArray[np.int64], slots: int) -> list[int]:
    """The chunks whose marks `rank` needs."""
    import numpy as np

    inside = positions[(positions >= WINDOW) & (positions < slots + WINDOW)] - WINDOW
    chunks: list[int] = np.flatnonzero(np.bincount(inside // CHUNK)).tolist()
    return chunks


@lru_cache(maxsize=1)
def _damping() -> NDArray[np.float32]:
    """What each place from `WINDOW` before to `WINDOW` after adds."""
    import numpy as np

    damping = np.zeros(2 * WINDOW + 1, dtype=np.float32)
    damping[WINDOW - 2 : WINDOW + 3] = (SECOND_PREVIOUS, PREVIOUS, 1.0, NEXT, SECOND_NEXT)
    return damping


def rank(own: Own, positions: NDArray[np.int64], marks: Sequence[Sequence[Any]], limit: int) -> Ranked:
    """The best `limit` of `positions` (from `surroundings`), later ones first among equals: an entry's own, and its
    share of those around it in its session.

    marks: rows (chunk, data) of `MARK_TERM`.
    """
    import numpy as np

    size = len(own.bm25)
    tags = np.zeros(size + 2 * WINDOW, dtype=np.uint16)  # positions are within one window of the array's own margins
    asks = np.zeros_like(tags, dtype=bool)
    bm25 = np.zeros(size + 2 * WINDOW, dtype=np.float32)
    bm25[WINDOW:-WINDOW] = own.bm25
    record = np.dtype([("tag", "<u2"), ("flags", "u1"), ("spare", "u1")])
    for chunk, data in marks:
        found = np.frombuffer(data, dtype=record)
        first = chunk * CHUNK + 2 * WINDOW
        tags[first : first + len(found)] = found["tag"]
        asks[first : first + len(found)] = (found["flags"] & IS_QUESTION) > 0
    at = positions + WINDOW
    around = at[:, None] + np.arange(-WINDOW, WINDOW + 1)[None, :]
    near = bm25[around]
    near *= (tags[around] == tags[at][:, None]) & (tags[at] != 0)[:, None]
    near[:, WINDOW] = bm25[at]
    total = near @ _damping() + np.float32(ANSWER) * near[:, WINDOW - 1] * asks[at - 1]
    total += np.float32(WINDOW_BEST) * near.max(axis=1)
    total[asks[at]] *= np.float32(QUESTION)
    order = np.flatnonzero(total > 0)
    if len(order) > limit:
        order = order[np.argpartition(-total[order], limit)[:limit]]
    order = order[np.lexsort((-order, -total[order]))]
    return Ranked(positions[order] - WINDOW, total[order])
