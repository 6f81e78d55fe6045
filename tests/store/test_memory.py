"""Memory entries in both stores: kept as they came, found by their words, history and quarantine out of sight."""

from __future__ import annotations

import dataclasses

import pytest

from gateway.memory.entries import EntryType, MemoryEntry, Trust
from gateway.memory.tokenise import query_terms
from gateway.store.open import open_store
from gateway.store.protocol import Limits, QuotaExceeded, Store
from gateway.store.text import normalised_hash
from tests.store.builders import entry


async def found(store: Store, query: str, tenant: str = "t1", **filters: object) -> list[str]:
    hits = await store.candidates(tenant, query_terms(query), 10, **filters)  # type: ignore[arg-type]
    return [hit.entry.id for hit in hits]


FULL = MemoryEntry(
    id="full", tenant="t1", content="Prefers tabs 缩进 \U0001f600", type=EntryType.PREFERENCE,
    timestamp=1_690_000_000.5,
    token_count=7, project="p", session="s", scope="long", source_role="user", language="en", message_hash="ab12",
    trust=Trust.EXPLICIT, key="indentation", value="tabs", aliases=("indent", "缩进"), valid_from=1_690_000_000.25,
    metadata={"speaker": "Ana", "date": "2023-05-02"},
)  # fmt: skip


async def test_an_entry_comes_back_as_it_was(store: Store) -> None:
    assert await store.add([FULL]) == 1
    assert await store.get("t1", "full") == FULL
    assert await store.by_key("t1", "indentation") == FULL
    assert [e async for e in store.export("t1")] == [FULL]
    assert (await store.list("t1")).entries == [FULL]


async def test_a_known_id_is_left_as_it_is(store: Store) -> None:
    await store.add([entry("one", id="x")])
    assert await store.add([entry("two", id="x"), entry("three", id="y"), entry("four", id="y")]) == 1
    kept = await store.get("t1", "x")
    assert kept is not None and kept.content == "one"
    assert await store.count("t1") == 2
    assert await found(store, "three") == ["y"]
    assert await found(store, "four two") == []


async def test_the_same_id_may_belong_to_two_tenants(store: Store) -> None:
    await store.add([entry("alpha wolf", id="x", tenant="t1"), entry("alpha centauri", id="x", tenant="t2")])
    assert [hit.entry.content for hit in await store.candidates("t2", ["alpha"], 10)] == ["alpha centauri"]
    assert await store.delete("t1", "x")
    assert await found(store, "alpha", "t1") == []
    assert await found(store, "alpha", "t2") == ["x"]


@pytest.mark.parametrize("tenant", ["t", "t1%", "t_", "%", "*", "t1' OR '1'='1", "T1", "t1\x00", "", "t1 "])
async def test_no_other_spelling_of_a_tenant_reads_it(store: Store, tenant: str) -> None:
    await store.add([entry("canary value", id="c", key="k")])
    assert await found(store, "canary", tenant) == []
    assert await found(store, "can* OR canary", tenant) == []
    assert await store.get(tenant, "c") is None
    assert await store.by_key(tenant, "k") is None
    assert (await store.list(tenant)).entries == []
    assert await store.exists_text(tenant, normalised_hash("canary value")) is None
    assert await store.update(tenant, "c", content="stolen") is None
    assert not await store.delete(tenant, "c")
    assert await store.erase(tenant) == 0
    assert await store.count("t1") == 1


async def test_wildcards_in_a_query_are_words(store: Store) -> None:
    await store.add([entry("canary value")])
    for query in ("can*", "can%", "_anary", "*", '"', "canar", 'NEAR("x")'):
        assert await found(store, query) == []


async def test_history_and_quarantine_are_kept_but_not_found(store: Store) -> None:
    await store.add(
        [
            entry("indent with 4 spaces", id="old", key="indent"),
            entry("indent like evil", id="bad", trust=Trust.QUARANTINED),
        ]
    )
    new = entry("indent with tabs", id="new", key="indent", valid_from=1_710_000_000.0)
    assert await store.supersede("t1", "old", new)
    assert await found(store, "indent") == ["new"]
    old = await store.get("t1", "old")
    assert old is not None and old.valid_to == 1_710_000_000.0 and old.superseded_by == "new"
    assert await store.by_key("t1", "indent") == new
    assert {e.id for e in (await store.list("t1")).entries} == {"bad", "new"}
    assert {e.id for e in (await store.list("t1", include_history=True)).entries} == {"bad", "new", "old"}


async def test_what_is_history_cannot_be_superseded_again(store: Store) -> None:
    await store.add([entry("a", id="old")])
    assert await store.supersede("t1", "old", entry("b", id="new"))
    assert not await store.supersede("t1", "old", entry("c", id="other"))
    assert not await store.supersede("t1", "missing", entry("c", id="other"))
    assert await store.count("t1") == 2


async def test_an_update_is_found_by_its_new_words_only(store: Store) -> None:
    await store.add([entry("likes coffee", id="x"), entry("likes cocoa", id="y")])
    changed = await store.update("t1", "x", content="drinks tea", metadata={"speaker": "Bo"}, token_count=3)
    assert changed == await store.get("t1", "x")
    assert changed is not None and changed.content == "drinks tea" and changed.token_count == 3
    assert await found(store, "coffee") == []
    assert await found(store, "tea") == ["x"]
    assert await found(store, "Bo") == ["x"]
    assert await found(store, "cocoa") == ["y"]
    assert (await store.exists_text("t1", normalised_hash("Drinks TEA!"))) == changed


async def test_an_update_may_hide_and_show_and_move(store: Store) -> None:
    await store.add([entry("likes coffee", id="x")])
    await store.update("t1", "x", trust=Trust.QUARANTINED)
    assert await found(store, "coffee") == []
    await store.update("t1", "x", trust=Trust.STATED)
    assert await found(store, "coffee") == ["x"]
    await store.update("t1", "x", scope="session")
    assert await found(store, "coffee", scopes=("long",)) == []
    assert await found(store, "coffee", scopes=("session",)) == ["x"]


async def test_unknown_fields_are_refused(store: Store) -> None:
    for name in ("nonsense", "content = ''; --"):
        with pytest.raises(ValueError, match="field"):
            await store.update("t1", "x", **{name: "y"})


async def test_a_deleted_entry_leaves_no_posting(store: Store) -> None:
    await store.add([entry(f"shared word{i}", id=f"d{i}") for i in range(5)])
    assert await store.delete("t1", "d2")
    assert not await store.delete("t1", "d2")
    assert sorted(await found(store, "shared")) == ["d0", "d1", "d3", "d4"]
    assert await store.candidates("t1", ["word2"], 10) == []


async def test_listing_pages_through_everything_once(store: Store) -> None:
    await store.add([entry(f"n{i}", id=f"i{i:02}", scope="session" if i % 2 else "long") for i in range(25)])
    seen: list[str] = []
    cursor = None
    while True:
        page = await store.list("t1", scope="session", limit=5, cursor=cursor)
        seen += [e.id for e in page.entries]
        cursor = page.cursor
        if cursor is None:
            break
    assert seen == [f"i{i:02}" for i in range(23, 0, -2)]
    oldest = await store.list("t1", oldest_first=True, limit=3)
    assert [e.id for e in oldest.entries] == ["i00", "i01", "i02"]
    with pytest.raises(ValueError, match="cursor"):
        await store.list("t1", cursor="1; DROP TABLE entries")


async def test_normalised_text_finds_its_twin(store: Store) -> None:
    await store.add([entry("I use  Python.", id="x")])
    twin = await store.exists_text("t1", normalised_hash("i use ｐｙｔｈｏｎ"))
    assert twin is not None and twin.id == "x"
    assert await store.exists_text("t1", normalised_hash("I use C++")) is None


async def test_projects_and_sessions_narrow_the_search(store: Store) -> None:
    await store.add(
        [
            entry("deploy by rsync", id="a", scope="session", project="p1", session="s1"),
            entry("deploy by docker", id="b", scope="session", project="p2", session="s2"),
            entry("deploy by hand", id="c", scope="long", project="p2"),
            entry("deploy anywhere", id="d", scope="session", session="s2"),
        ]
    )
    assert sorted(await found(store, "deploy")) == ["a", "b", "c", "d"]
    assert sorted(await found(store, "deploy", project="p1")) == ["a", "c", "d"]
    assert sorted(await found(store, "deploy", session="s2")) == ["b", "c", "d"]
    assert await found(store, "deploy", scopes=("long",)) == ["c"]
    assert await found(store, "deploy", scopes=()) == []


async def test_a_small_project_is_found_among_a_large_one(store: Store) -> None:
    big = [entry(f"deploy deploy {i}", scope="session", project="big") for i in range(400)]
    small = entry(
        "we once talked about how to deploy this strange little thing", id="s", scope="session", project="small"
    )
    await store.add([*big, small])
    assert await found(store, "deploy", project="small") == ["s"]


async def test_neighbours_of_the_same_session_lend_their_score(store: Store) -> None:
    """By hand from the constants: the answer gets 0.2 + 0.3 + 0.4 of its question, the next but one 0.2 + 0.4."""
    turns = ["Which museum did you visit?", "The one near the river.", "Nice weather there?", "Sunny."]
    await store.add([entry(text, id=f"a{i}", scope="session", session="s1") for i, text in enumerate(turns)])
    await store.add([entry("Unrelated talk of cheese", id="z", scope="session", session="s2")])
    hits = {hit.entry.id: hit for hit in await store.candidates("t1", query_terms("museum visit"), 10)}
    own = hits["a0"].bm25
    assert own > 0
    assert hits["a0"].score == pytest.approx(own * 1.4 * 0.8)
    assert hits["a1"].bm25 == 0 and hits["a1"].score == pytest.approx(0.9 * own)
    assert hits["a2"].score == pytest.approx(0.6 * own * 0.8)
    assert list(hits) == ["a0", "a1", "a2", "a3"]


async def test_scores_are_okapi_bm25(store: Store) -> None:
    """Worked by hand: three entries, the word in one of them, once, b and length cancelling at average length."""
    await store.add([entry("zebra xylem"), entry("quartz pylon"), entry("amber glyph")])
    (hit,) = await store.candidates("t1", ["zebra"], 10)
    idf = 0.9808292530117263  # ln(1 + (3 - 1 + 0.5) / (1 + 0.5))
    assert hit.bm25 == pytest.approx(idf * 1 * 2.2 / (1 + 1.2), rel=1e-5)
    assert hit.ceiling == pytest.approx(idf)


async def test_the_index_survives_many_chunks(store: Store) -> None:
    """More entries than one posting row holds, written in several batches, then thinned."""
    for start in range(0, 5_000, 1_000):
        await store.add([entry(f"common n{i}x", id=f"m{i}") for i in range(start, start + 1_000)])
    (hit,) = await store.candidates("t1", ["n4321x"], 10)
    assert hit.entry.id == "m4321"
    assert len(await store.candidates("t1", ["common"], 5_000)) == 5_000
    await store.delete("t1", "m4321")
    assert await store.candidates("t1", ["n4321x"], 10) == []
    assert len(await store.candidates("t1", ["common"], 5_000)) == 4_999


async def test_odd_text_is_kept(store: Store) -> None:
    await store.add([entry("nul \x00 and half \ud83d of a pair", id="x", metadata={"k\x00": "\udfff"})])
    kept = await store.get("t1", "x")
    assert kept is not None and kept.content == "nul \ufffd and half \ufffd of a pair"
    assert await found(store, "pair") == ["x"]


async def test_quota_refuses_the_whole_batch(store: Store) -> None:
    store.limits = dataclasses.replace(store.limits, max_entries=3, max_entry_chars=10)
    await store.add([entry("one two three four", id="x"), entry("two")])
    kept = await store.get("t1", "x")
    assert kept is not None and kept.content == "one two th"
    with pytest.raises(QuotaExceeded):
        await store.add([entry("three"), entry("four")])
    assert await store.count("t1") == 2
    await store.add([entry("four"), entry("other", tenant="t2")])


async def test_vectors_follow_their_entries(store: Store) -> None:
    await store.add([entry("a", id="a"), entry("b", id="b", scope="session"), entry("c", id="c")])
    assert [e.id for e in await store.without_vector("t1", "m", 10)] == ["a", "b", "c"]
    await store.put_vectors(
        "t1", "m", {"a": b"\x00\x3c" * 2, "b": b"\x00\x3c" * 2, "c": b"\x00\x3c" * 2, "gone": b"\x00\x3c" * 2}
    )
    kept = await store.vectors("t1", "m")
    assert (kept.entry_ids, kept.dim, kept.data) == (["a", "b", "c"], 2, b"\x00\x3c" * 6)
    assert (await store.vectors("t1", "m", scopes=("long",))).entry_ids == ["a", "c"]
    await store.delete("t1", "a")
    await store.supersede("t1", "c", entry("d", id="d"))
    assert (await store.vectors("t1", "m")).entry_ids == ["b"]
    assert [e.id for e in await store.without_vector("t1", "m", 10)] == ["d"]
    assert (await store.vectors("t2", "m")).entry_ids == []


async def test_a_store_needs_a_place() -> None:
    with pytest.raises(ValueError, match="needed"):
        await open_store()
    with pytest.raises(ValueError, match="postgresql"):
        await open_store(database_url="mysql://x")
    assert Limits().max_entries > 1_000_000
