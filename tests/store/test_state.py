"""Conversation state, spill and shared values, in both stores."""

from __future__ import annotations

import asyncio
import dataclasses
import time

import pytest

from gateway.store.protocol import CalibrationRow, Decision, QuotaExceeded, Store
from tests.store.builders import entry

CHAINS = [bytes([i]) * 16 for i in range(4)]


async def test_decisions_come_back_in_order(store: Store) -> None:
    made = [Decision(CHAINS[0], "snip", b"\x00\xff", 1e9 * 2), Decision(CHAINS[1], "summary", b"", 1e9 * 2 + 1)]
    await store.save_decisions({("t1", "s1"): made})
    assert await store.load_decisions("t1", "s1") == made
    assert await store.load_decisions("t1", "s2") == []
    assert await store.load_decisions("t2", "s1") == []


async def test_a_decision_is_found_from_another_session_newest_first(store: Store) -> None:
    now = time.time()
    made = [Decision(CHAINS[0], "k", b"old", now - 5), Decision(CHAINS[1], "k", b"b", now)]
    await store.save_decisions({("t1", "s1"): made})
    await store.save_decisions({("t1", "s2"): [Decision(CHAINS[0], "k", b"new", now)]})
    await store.save_decisions({("t2", "s1"): [Decision(CHAINS[0], "k", b"foreign", now + 5)]})
    found = {(d.chain, d.payload) for d in await store.find_decisions("t1", [CHAINS[0], CHAINS[1], CHAINS[2]])}
    assert found == {(CHAINS[0], b"new"), (CHAINS[1], b"b")}
    assert await store.find_decisions("t1", []) == []


async def test_a_decision_is_replaced_and_dated(store: Store) -> None:
    await store.save_decisions({("t1", "s1"): [Decision(CHAINS[0], "k", b"one")]})
    await store.save_decisions({("t1", "s1"): [Decision(CHAINS[0], "k", b"two")]})
    (decision,) = await store.load_decisions("t1", "s1")
    assert decision.payload == b"two"
    assert abs(decision.created - time.time()) < 60


async def test_decisions_are_pruned_by_age_and_number(store: Store) -> None:
    store.limits = dataclasses.replace(store.limits, max_decisions=2, max_decision_age_s=1_000.0)
    now = time.time()
    await store.save_decisions({("t2", "s"): [Decision(CHAINS[0], "k", b"", now - 2_000)]})
    await store.save_decisions({("t1", "s"): [Decision(c, "k", b"", now - 10 + i) for i, c in enumerate(CHAINS)]})
    assert [d.chain for d in await store.load_decisions("t1", "s")] == CHAINS[2:]
    assert await store.load_decisions("t2", "s") == []


async def test_more_chains_than_one_statement_holds(store: Store) -> None:
    chains = [i.to_bytes(16, "big") for i in range(1_300)]
    await store.save_decisions({("t1", "s"): [Decision(c, "k", b"x") for c in chains]})
    assert len(await store.find_decisions("t1", chains)) == 1_300


async def test_sessions_are_touched_finished_and_reopened(store: Store) -> None:
    await store.touch_session("t1", "s1", project="p", turns=3, title="First", now=100.0)
    await store.touch_session("t1", "s1", turns=2, now=200.0)
    await store.touch_session("t1", "s2", now=150.0)
    first, second = await store.sessions("t1")
    assert (first.id, first.project, first.title, first.turns, first.created, first.updated, first.finished) == (
        "s1", "p", "First", 3, 100.0, 200.0, None,
    )  # fmt: skip
    assert second.id == "s2"
    assert await store.idle_sessions(before=180.0) == [("t1", "s2")]
    assert await store.finish_session("t1", "s2", now=300.0)
    assert not await store.finish_session("t1", "s2", now=301.0)
    assert not await store.finish_session("t1", "nope")
    assert await store.idle_sessions(before=1e12) == [("t1", "s1")]
    await store.touch_session("t1", "s2", now=400.0)
    assert await store.idle_sessions(before=1e12) == [("t1", "s1"), ("t1", "s2")]
    assert await store.sessions("t2") == []


async def test_one_of_many_finishes_a_session(store: Store) -> None:
    await store.touch_session("t1", "s1")
    assert sum(await asyncio.gather(*(store.finish_session("t1", "s1") for _ in range(8)))) == 1


async def test_working_state(store: Store) -> None:
    assert await store.get_working("t1", "s") is None
    await store.set_working("t1", "s", b"\x00one")
    await store.set_working("t1", "s", b"two")
    assert await store.get_working("t1", "s") == b"two"
    assert await store.get_working("t2", "s") is None
    await store.set_working("t1", "s", None)
    assert await store.get_working("t1", "s") is None


async def test_pending_is_leased_to_one_taker(store: Store) -> None:
    first = await store.add_pending("t1", "s", b"\x00raw")
    second = await store.add_pending("t2", "s", b"more")
    taken = [p for got in await asyncio.gather(*(store.take_pending(1) for _ in range(4))) for p in got]
    assert sorted(p.id for p in taken) == sorted({first, second} & {p.id for p in taken})
    taken += await store.take_pending(5)
    assert sorted(p.id for p in taken) == [first, second]
    assert {p.tenant: p.payload for p in taken} == {"t1": b"\x00raw", "t2": b"more"}
    assert await store.take_pending(5) == []
    await store.drop_pending(first)
    assert await store.take_pending(5, lease_s=-1.0) == []


async def test_an_expired_lease_is_taken_again(store: Store) -> None:
    await store.add_pending("t1", "s", b"raw")
    (once,) = await store.take_pending(1, lease_s=-1.0)
    (again,) = await store.take_pending(1)
    assert (once.id, once.attempts, again.attempts) == (again.id, 1, 2)


async def test_pending_has_a_bound(store: Store) -> None:
    store.limits = dataclasses.replace(store.limits, max_pending=2)
    ids = [await store.add_pending("t1", "s", b"%d" % i) for i in range(4)]
    assert [p.id for p in await store.take_pending(10)] == ids[2:]


async def test_spill_keeps_the_exact_text(store: Store) -> None:
    text = "line \x1b[31mred\x1b[0m\r\n" * 500 + "\x00 数据 \ud83d"
    assert await store.put_spill("t1", "ab" * 32, text)
    assert not await store.put_spill("t1", "ab" * 32, text)
    assert await store.get_spill("t1", "ab" * 32) == text
    assert await store.get_spill("t2", "ab" * 32) is None
    (info,) = await store.list_spill("t1")
    assert info.chars == len(text) and info.stored_bytes < len(text) / 10


async def test_spill_is_pruned_by_age_and_size(store: Store) -> None:
    for i in range(5):
        await store.put_spill("t1", f"{i:064}", f"text number {i}")
    sizes = [info.stored_bytes for info in await store.list_spill("t1")]
    assert await store.prune_spill(max_bytes=sum(sizes), max_age_s=1_000) == 0
    assert await store.prune_spill(max_bytes=sum(sizes[:2]), max_age_s=1_000) == 3
    assert [info.id for info in await store.list_spill("t1")] == [f"{4:064}", f"{3:064}"]
    assert await store.prune_spill(max_bytes=1 << 30, max_age_s=-60) == 2


async def test_spill_has_a_quota(store: Store) -> None:
    store.limits = dataclasses.replace(store.limits, max_spill_bytes=10)
    with pytest.raises(QuotaExceeded):
        await store.put_spill("t1", "a", "some text that takes more than ten bytes")


async def test_shared_values(store: Store) -> None:
    await store.save_calibration([CalibrationRow("r", "m", 1.5, 3.0), CalibrationRow("r", "n", 1.0, 1.0)])
    await store.save_calibration([CalibrationRow("r", "m", 1.25, 4.0)])
    assert {(c.model, c.ratio, c.weight) for c in await store.load_calibration()} == {("m", 1.25, 4.0), ("n", 1.0, 1.0)}
    await store.save_window("r", "m", 8_192)
    await store.save_window("r", "m", 4_096)
    assert await store.load_windows() == {("r", "m"): 4_096}
    assert await store.get_spend("k", "2026-11") == 0.0
    totals = await asyncio.gather(*(store.add_spend("k", "2026-11", 0.25) for _ in range(8)))
    assert sorted(totals) == [0.25 * i for i in range(1, 9)]
    assert await store.get_spend("k", "2026-11") == 2.0
    assert await store.get_meta("x") is None
    await store.set_meta("x", b"\x00")
    assert await store.get_meta("x") == b"\x00"


async def test_the_seed_is_made_once(store: Store) -> None:
    seeds = set(await asyncio.gather(*(store.seed() for _ in range(8))))
    assert len(seeds) == 1 and len(seeds.pop()) == 16


async def test_erasing_takes_everything_of_one_tenant_only(store: Store) -> None:
    for tenant in ("t1", "t2"):
        await store.add(
            [entry("zebra words", id="x", tenant=tenant), entry("zebra", id="y", tenant=tenant, scope="session")]
        )
        await store.put_vectors(tenant, "m", {"x": b"\x00\x3c"})
        await store.save_decisions({(tenant, "s"): [Decision(CHAINS[0], "k", b"")]})
        await store.touch_session(tenant, "s")
        await store.set_working(tenant, "s", b"w")
        await store.put_spill(tenant, "a" * 64, "text")
    await store.add_pending("t1", "s", b"raw")
    assert await store.erase("t1") == 2
    assert await store.count("t1") == 0
    assert await store.candidates("t1", ["zebra"], 5) == []
    assert (await store.vectors("t1", "m")).entry_ids == []
    assert await store.load_decisions("t1", "s") == []
    assert await store.sessions("t1") == []
    assert await store.get_working("t1", "s") is None
    assert await store.get_spill("t1", "a" * 64) is None
    assert await store.take_pending(5) == []
    assert len(await store.candidates("t2", ["zebra"], 5)) == 2
    assert (await store.vectors("t2", "m")).entry_ids == ["x"]
    assert len(await store.sessions("t2")) == 1
    await store.add([entry("zebra words", id="x")])
    assert [hit.entry.id for hit in await store.candidates("t1", ["zebra"], 5)] == ["x"]
