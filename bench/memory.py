"""How well memory finds, and how fast: recall on LoCoMo against four baselines in the same run, and latency by size.

    python bench/memory.py            # everything but the million entries: a few minutes
    python bench/memory.py --quick    # two dialogues, up to 10 K entries
    python bench/memory.py --million  # with the million
Recall is the share of a question's evidence turns among the top k; no model takes part. Every turn of a dialogue is one
entry, with the speaker, the date and the session in its metadata; the baselines see the same text."""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from gateway.memory import tokenise  # noqa: E402
from gateway.memory.entries import EntryType, MemoryEntry  # noqa: E402
from gateway.memory.retrieve import Retriever  # noqa: E402
from gateway.memory.vectors import LocalEmbedder, VectorIndex  # noqa: E402
from gateway.store.open import open_store  # noqa: E402
from gateway.store.protocol import Store  # noqa: E402

DATA = ROOT.parent / "shared" / "data"
NOW = 1_700_000_000.0
"""After every dialogue, so that decay is at its floor for all: LoCoMo asks long afterwards."""
TUNING = 5
"""Dialogues 0, 2, 4, 6, 8 chose the constants of gateway.store.index; 1, 3, 5, 7, 9 are held out."""
CHARS_PER_TOKEN = 4

Search = Callable[[str], Awaitable[list[int]]]


@dataclass
class Question:
    """One question and the turns that answer it."""

    text: str
    evidence: frozenset[int]


@dataclass
class Dialogue:
    """Turns as entries, and its questions."""

    name: str
    entries: list[MemoryEntry]
    questions: list[Question]

    def plain(self, index: int) -> str:
        """What the baselines index of a turn: date, speaker, text."""
        entry = self.entries[index]
        return f"{entry.metadata['date']} {entry.metadata['speaker']}: {entry.content}"


@dataclass
class Tally:
    """Running averages over questions."""

    at5: float = 0.0
    at10: float = 0.0
    reciprocal: float = 0.0
    tokens: float = 0.0
    seconds: list[float] = field(default_factory=list)

    def add(self, found: Sequence[int], question: Question, dialogue: Dialogue, seconds: float) -> None:
        """One answer."""
        evidence = question.evidence
        self.at5 += len(evidence & set(found[:5])) / len(evidence)
        self.at10 += len(evidence & set(found[:10])) / len(evidence)
        self.reciprocal += next((1 / place for place, i in enumerate(found[:10], 1) if i in evidence), 0.0)
        self.tokens += sum(len(dialogue.plain(i)) for i in found[:10]) / CHARS_PER_TOKEN
        self.seconds.append(seconds)

    def row(self) -> tuple[float, float, float, float, float, float]:
        """recall@5, recall@10, MRR, tokens of the top 10, p50 and p99 in ms."""
        n = len(self.seconds)
        return (
            self.at5 / n,
            self.at10 / n,
            self.reciprocal / n,
            self.tokens / n,
            percentile(self.seconds, 50) * 1e3,
            percentile(self.seconds, 99) * 1e3,
        )


def percentile(values: Sequence[float], share: float) -> float:
    """Nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, math.ceil(share / 100 * len(ordered)) - 1))]


def load_locomo(limit: int | None) -> list[Dialogue]:
    """The dialogues, questions with resolvable evidence only."""
    dialogues = []
    for sample in json.loads((DATA / "memory" / "locomo10_compact.json").read_text())[:limit]:
        entries = [turn_entry(sample["sample_id"], turn) for turn in sample["turns"]]
        places = {turn["dia_id"]: i for i, turn in enumerate(sample["turns"])}
        questions = []
        for qa in sample["qa"]:
            evidence = frozenset(places[dia] for dia in qa["evidence"] if dia in places)
            if evidence:
                questions.append(Question(qa["question"], evidence))
        dialogues.append(Dialogue(sample["sample_id"], entries, questions))
    return dialogues


def turn_entry(tenant: str, turn: dict[str, Any]) -> MemoryEntry:
    """A turn as the gateway would keep it."""
    caption = turn.get("image_caption")
    content = f"{turn['text']} [{caption}]" if caption else turn["text"]
    return MemoryEntry(
        id=turn["dia_id"],
        tenant=tenant,
        content=content,
        type=EntryType.CONVERSATION,
        timestamp=NOW - 30 * 86_400,
        session=f"s{turn['session']}",
        scope="session",
        metadata={"speaker": turn["speaker"], "date": turn["date"]},
    )


# -- what is compared ------------------------------------------------------------------------------------------------
def share_of_tokens(dialogue: Dialogue) -> Search:
    """The plain scheme: share of the query's tokens that the entry holds × decay × 1.2; decay is the same for all
    here."""
    texts = [set(tokenise.terms(dialogue.plain(i))) for i in range(len(dialogue.entries))]

    async def search(query: str) -> list[int]:
        asked = set(tokenise.terms(query))
        scores = [len(asked & text) / max(1, len(asked)) * 0.5 * 1.2 for text in texts]
        return top(scores)

    return search


def contains(dialogue: Dialogue) -> Search:
    """How many of the query's words occur anywhere in the text."""
    texts = [dialogue.plain(i).lower() for i in range(len(dialogue.entries))]

    async def search(query: str) -> list[int]:
        words = {word.strip("?.,!'\"") for word in query.lower().split()} - {""}
        return top([sum(word in text for word in words) for text in texts])

    return search


def bm25(dialogue: Dialogue, stemmed: bool = False) -> Search:
    """bm25s with its defaults (Lucene's variant), its English stop words; or over this package's own terms."""
    import bm25s

    def split(texts: list[str]) -> Any:
        if stemmed:
            return [tokenise.terms(text) for text in texts]
        return bm25s.tokenize(texts, stopwords="en", show_progress=False, return_ids=False)

    index = bm25s.BM25()
    index.index(split([dialogue.plain(i) for i in range(len(dialogue.entries))]), show_progress=False)

    async def search(query: str) -> list[int]:
        asked = split([query])
        if not asked[0]:
            return []
        found, _ = index.retrieve(asked, k=10, show_progress=False)
        return [int(i) for i in found[0]]

    return search


def top(scores: Sequence[float]) -> list[int]:
    """Ten best, earlier turns first among equals."""
    return sorted(range(len(scores)), key=lambda i: -scores[i])[:10]


def by_retriever(retriever: Retriever, dialogue: Dialogue) -> Search:
    """This package, through its store."""
    places = {entry.id: i for i, entry in enumerate(dialogue.entries)}

    async def search(query: str) -> list[int]:
        hits = await retriever.retrieve(dialogue.name, query, 10, now=NOW)
        return [places[hit.entry.id] for hit in hits]

    return search


def by_vectors(index: VectorIndex, store: Store, dialogue: Dialogue) -> Search:
    """The embedding model alone."""
    places = {entry.id: i for i, entry in enumerate(dialogue.entries)}

    async def search(query: str) -> list[int]:
        near = await index.nearest(store, dialogue.name, query, 10, ("session",))
        return [places[item.id] for item in near]

    return search


async def measure(dialogues: Sequence[Dialogue], make: Callable[[Dialogue], Search]) -> Tally:
    """All questions of the dialogues."""
    tally = Tally()
    for dialogue in dialogues:
        search = make(dialogue)
        for question in dialogue.questions:
            start = time.perf_counter()
            found = await search(question.text)
            tally.add(found, question, dialogue, time.perf_counter() - start)
    return tally


async def recall_table(dialogues: Sequence[Dialogue], embeddings: bool) -> None:
    """LoCoMo, every method on the same questions in the same run."""
    print(f"## LoCoMo: {len(dialogues)} dialogues, {sum(len(d.entries) for d in dialogues)} turns, "
          f"{sum(len(d.questions) for d in dialogues)} questions\n")  # fmt: skip
    print("| method | recall@5 | recall@10 | MRR | tokens of 10 | p50 ms | p99 ms |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as place:
        store = await open_store(data_dir=Path(place))
        for dialogue in dialogues:
            await store.add(dialogue.entries)
        retriever = Retriever(store)
        rows: dict[str, Tally] = {}
        methods: dict[str, Callable[[Dialogue], Search]] = {
            "share of query tokens × decay × 1.2": share_of_tokens,
            "contains": contains,
            "BM25 (bm25s)": bm25,
            "BM25 (bm25s) over our terms": lambda dialogue: bm25(dialogue, stemmed=True),
            "**gateway**": lambda dialogue: by_retriever(retriever, dialogue),
        }
        if embeddings:
            index = VectorIndex(LocalEmbedder(), timeout_s=60.0)
            for dialogue in dialogues:
                while await index.catch_up(store, dialogue.name):
                    pass
            fused = Retriever(store, index)
            methods["embeddings alone (local)"] = lambda dialogue: by_vectors(index, store, dialogue)
            methods["**gateway + embeddings**"] = lambda dialogue: by_retriever(fused, dialogue)
        for name, make in methods.items():
            rows[name] = await measure(dialogues, make)
            show(name, rows[name])
        if len(dialogues) == 2 * TUNING:
            for name, part in (("held-out half", dialogues[1::2]), ("tuning half", dialogues[::2])):
                show(f"gateway, {name}", await measure(part, methods["**gateway**"]))
                show(f"BM25, {name}", await measure(part, bm25))
        await store.close()
    ratio = rows["**gateway**"].row()[1] / rows["BM25 (bm25s)"].row()[1]
    print(f"\ngateway / BM25 at 10: {ratio:.3f}")


def show(name: str, tally: Tally) -> None:
    """One row of the table."""
    at5, at10, reciprocal, tokens, p50, p99 = tally.row()
    print(f"| {name} | {at5:.3f} | {at10:.3f} | {reciprocal:.3f} | {tokens:.0f} | {p50:.2f} | {p99:.2f} |", flush=True)


# -- speed -----------------------------------------------------------------------------------------------------------
def sentences() -> tuple[list[str], list[str]]:
    """Real turns and questions, both languages, to make large stores of."""
    texts: list[str] = []
    asked: list[str] = []
    for dialogue in load_locomo(None):
        texts += [entry.content for entry in dialogue.entries]
        asked += [question.text for question in dialogue.questions]
    for language in ("cn", "en"):
        for user in json.loads((DATA / "memory" / f"memorybank_{language}.json").read_text()).values():
            texts += [turn[side] for day in user["history"].values() for turn in day for side in ("query", "response")]
        for line in (DATA / "memory" / f"memorybank_probing_questions_{language}.jsonl").read_text().splitlines():
            asked += [question for questions in json.loads(line).values() for question in questions]
    return texts, asked


def many(
    tenant: str, number: int, texts: Sequence[str], rng: random.Random, first: int = 0
) -> Iterator[list[MemoryEntry]]:
    """Batches of entries: two halves of real turns each, so that words keep their frequencies and few texts repeat."""
    for start in range(first, first + number, 2_000):
        batch = []
        for i in range(start, min(start + 2_000, first + number)):
            content = f"{rng.choice(texts)} {rng.choice(texts)}"
            scope = "session" if i % 2 else "long"
            batch.append(
                MemoryEntry(f"{i}", tenant, content, EntryType.FACT, NOW - i, session=f"s{i // 40}", scope=scope)
            )
        yield batch


async def speed_table(sizes: Sequence[int], tenants: int) -> None:
    """Latency of `retrieve` and `build_context` as one tenant grows, then with others beside it."""
    texts, asked = sentences()
    rng = random.Random(7)
    queries = rng.sample(asked, min(400, len(asked)))
    print(f"\n## Speed: one tenant, {len(queries)} questions in both languages\n")
    print("| entries | other tenants | file MB | writes/s | retrieve p50 ms | p99 ms | build_context p50 ms | p99 ms |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as place:
        store = await open_store(data_dir=Path(place))
        written = 0
        for size in sizes:
            start = time.perf_counter()
            for batch in many("big", size - written, texts, rng, written):
                await store.add(batch)
            rate = (size - written) / (time.perf_counter() - start)
            written = size
            await speed_row(store, place, size, 0, rate, queries)
        others = 0.0
        start = time.perf_counter()
        for number in range(tenants):
            for batch in many(f"other{number}", 100, texts, rng):
                await store.add(batch)
        others = tenants * 100 / (time.perf_counter() - start)
        await speed_row(store, place, written, tenants, others, queries)
        await store.close()


async def speed_row(store: Store, place: str, size: int, tenants: int, rate: float, queries: Sequence[str]) -> None:
    """One row: each query once to warm, then timed."""
    retriever = Retriever(store)
    lookups: tuple[Callable[[str], Awaitable[object]], ...] = (
        lambda query: retriever.retrieve("big", query, 10, now=NOW),
        lambda query: retriever.build_context("big", query, now=NOW),
    )
    cells = []
    for look in lookups:
        for query in queries[:50]:
            await look(query)
        seconds = []
        for query in queries:
            start = time.perf_counter()
            await look(query)
            seconds.append(time.perf_counter() - start)
        cells += [f"{percentile(seconds, 50) * 1e3:.2f}", f"{percentile(seconds, 99) * 1e3:.2f}"]
    megabytes = await asyncio.to_thread(lambda: sum(path.stat().st_size for path in Path(place).iterdir()) / 1e6)
    print(f"| {size:,} | {tenants:,} | {megabytes:.0f} | {rate:,.0f} | {' | '.join(cells)} |", flush=True)


async def examples(language: str, number: int) -> None:
    """MemoryBank has no evidence labels: a few answers to read."""
    print(f"\n## MemoryBank ({language}): the first hit of some questions\n")
    bank = json.loads((DATA / "memory" / f"memorybank_{language}.json").read_text())
    lines = (DATA / "memory" / f"memorybank_probing_questions_{language}.jsonl").read_text().splitlines()
    asked = {user: questions for line in lines for user, questions in json.loads(line).items()}
    with tempfile.TemporaryDirectory() as place:
        store = await open_store(data_dir=Path(place))
        for user, kept in bank.items():
            await store.add(list(bank_entries(user, kept["history"])))
        retriever = Retriever(store)
        for user, questions in list(asked.items())[:number]:
            for hit in await retriever.retrieve(user, questions[0], 1, now=NOW):
                print(f"- {questions[0]} → {hit.entry.metadata['date']}: {hit.entry.content}")
        await store.close()


def bank_entries(user: str, history: dict[str, list[dict[str, str]]]) -> Iterator[MemoryEntry]:
    """One entry per exchange, as the memory of a companion would keep it."""
    for date, turns in history.items():
        for i, turn in enumerate(turns):
            content = f"{turn['query']}\n{turn['response']}"
            yield MemoryEntry(
                f"{date}-{i}", user, content, EntryType.CONVERSATION, NOW, session=date, scope="session",
                metadata={"date": date},
            )  # fmt: skip


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two dialogues, up to 10 K entries, 100 other tenants")
    parser.add_argument("--million", action="store_true", help="also a tenant of a million entries (minutes, 2 GB)")
    parser.add_argument("--no-embeddings", action="store_true", help="leave the embedding model out")
    parser.add_argument("--only", choices=("recall", "speed", "examples"), help="one part")
    options = parser.parse_args()
    tokenise.warm()
    if options.only in (None, "recall"):
        await recall_table(load_locomo(2 if options.quick else None), not options.no_embeddings)
    if options.only in (None, "speed"):
        sizes = [1_000, 10_000] + ([] if options.quick else [100_000]) + ([1_000_000] if options.million else [])
        await speed_table(sizes, 100 if options.quick else 1_000)
    if options.only in (None, "examples"):
        for language in ("cn", "en"):
            await examples(language, 5)


if __name__ == "__main__":
    asyncio.run(main())
