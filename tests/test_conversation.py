"""Decisions about a conversation: kept, shared by what is before a fork, read again when another gateway made some."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversation import LOAD_AGAIN_S, Conversation, Conversations, Cut, Level, Pin, Record
from gateway.errors import Unavailable
from gateway.store.protocol import Decision
from gateway.store.sqlite import SqliteStore
from gateway.tasks import Tasks

texts = st.text(max_size=30)
indices = st.lists(st.integers(0, 500), max_size=4).map(tuple)
records = st.builds(
    Record,
    st.sampled_from(Level),
    st.none() | texts,
    st.none() | st.builds(Cut, texts, indices, indices, st.booleans()),
    st.none() | st.builds(Pin, texts, st.lists(texts, max_size=3).map(tuple), st.booleans()),
)


def chain(number: int) -> bytes:
    """A 16-byte name."""
    return number.to_bytes(16, "big")


@given(records)
def test_a_record_survives_the_store(record: Record) -> None:
    raw = record.to_bytes()
    json.loads(raw)
    assert Record.from_bytes(raw) == record


class Shared:
    """Two gateways' conversations on one SQLite file."""

    def __init__(self, directory: Path) -> None:
        self.store = SqliteStore(directory / "shared.db")
        self.tasks = Tasks()
        self.one = Conversations(self.store, self.tasks)
        self.two = Conversations(self.store, self.tasks)

    async def written(self) -> None:
        """Wait until every decision is in the store."""
        while len(self.tasks):  # noqa: ASYNC110 - `Tasks` tells nobody when it is idle
            await asyncio.sleep(0.001)

    async def close(self) -> None:
        """Close the store."""
        await self.tasks.drain()
        await self.store.close()


async def test_what_another_gateway_decided_is_read_before_the_next_turn(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    chains = [chain(n) for n in range(20)]
    replies = list(range(1, 20, 2))
    try:
        # Turn one goes to both gateways' first, turns two and three to the second only.
        here = await shared.one.get("t", "s", chains[:1], [])
        there = await shared.two.get("t", "s", chains[:3], replies[:1])
        shared.two.decide(there, {chains[2]: Record(Level.SKELETON)})
        await shared.written()
        assert here.record(chains[2]) == Record()
        again = await shared.one.get("t", "s", chains[:5], replies[:2])
        assert again is here
        assert here.record(chains[2]).level is Level.SKELETON
    finally:
        await shared.close()


async def test_the_next_turn_of_a_conversation_at_hand_does_not_ask_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = Shared(tmp_path)
    asked: list[str] = []
    load = shared.store.load_decisions

    async def counted(tenant: str, session: str) -> list[Decision]:
        asked.append(session)
        return await load(tenant, session)

    monkeypatch.setattr(shared.store, "load_decisions", counted)
    try:
        chains = [chain(n) for n in range(41)]
        for end in range(1, 41, 2):
            await shared.one.get("t", "s", chains[:end], list(range(1, end, 2)))
            await shared.one.get("t", "s", chains[:end], list(range(1, end, 2)))
        assert asked == []
        await shared.two.get("t", "s", chains, list(range(1, 41, 2)))
        assert asked == ["s"]
    finally:
        await shared.close()


async def test_a_store_that_is_away_or_hangs_fails_no_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = Shared(tmp_path)

    async def away(tenant: str, session: str) -> list[Decision]:
        raise Unavailable("locked")

    async def hang(tenant: str, session: str) -> list[Decision]:
        await asyncio.sleep(3600)
        raise AssertionError("unreachable")

    try:
        for session, broken in (("away", away), ("hang", hang)):
            monkeypatch.setattr("gateway.conversation.LOAD_S", 0.05)
            monkeypatch.setattr(shared.store, "load_decisions", broken)
            found = await asyncio.wait_for(shared.one.get("t", session, [chain(1), chain(2)], [1]), 5)
            assert found.records == {}
            shared.one.decide(found, {chain(1): Record(Level.SNIPPED)})
            same = await shared.one.get("t", session, [chain(1), chain(2)], [1])
            assert same.record(chain(1)).level is Level.SNIPPED
    finally:
        await shared.close()


async def test_decisions_made_while_the_store_was_away_stand_beside_those_it_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = Shared(tmp_path)

    async def away(tenant: str, session: str) -> list[Decision]:
        raise Unavailable("locked")

    try:
        before = await shared.two.get("t", "s", [chain(1)], [])
        shared.two.decide(before, {chain(1): Record(Level.SKELETON), chain(2): Record(Level.SNIPPED)})
        await shared.written()
        with monkeypatch.context() as broken:
            broken.setattr(shared.store, "load_decisions", away)
            found = await shared.one.get("t", "s", [chain(1), chain(2)], [1])
            found.records[chain(2)] = Record(Level.SKELETON)
        assert found.failed_load_at is not None
        await shared.one.get("t", "s", [chain(1), chain(2)], [1])
        assert found.record(chain(1)) == Record()  # the store is not asked again at once
        found.failed_load_at -= LOAD_AGAIN_S + 1
        await shared.one.get("t", "s", [chain(1), chain(2)], [1])
        assert found.record(chain(1)).level is Level.SKELETON
        assert found.record(chain(2)).level is Level.SKELETON  # a level never goes back
    finally:
        await shared.close()


async def test_tenants_and_sessions_are_apart_and_can_be_forgotten(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    try:
        mine, other, theirs = [
            await shared.one.get(tenant, session, [chain(1)], []) for tenant, session in ("as", "at", "bs")
        ]
        for found in (mine, other, theirs):
            shared.one.decide(found, {chain(1): Record(Level.SNIPPED)})
        await shared.written()
        assert len({id(mine), id(other), id(theirs)}) == 3
        shared.one.forget("a", ["s"])
        assert await shared.one.get("a", "s", [chain(1)], []) is not mine
        assert await shared.one.get("a", "t", [chain(1)], []) is other
        shared.one.forget("a")
        assert await shared.one.get("a", "t", [chain(1)], []) is not other
        assert await shared.one.get("b", "s", [chain(1)], []) is theirs
        assert (await shared.two.get("c", "s", [chain(1), chain(2)], [1])).records == {}
    finally:
        await shared.close()


async def test_no_more_conversations_are_kept_than_allowed(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    try:
        few = Conversations(shared.store, shared.tasks, limit=3)
        first = await few.get("t", "0", [chain(0)], [])
        few.decide(first, {chain(0): Record(Level.SKELETON)})
        for number in range(1, 10):
            await few.get("t", str(number), [chain(number)], [])
        await shared.written()
        assert len(few._kept) == 3
        back = await few.get("t", "0", [chain(0), chain(1), chain(2)], [1])
        assert back is not first
        assert back.record(chain(0)).level is Level.SKELETON
    finally:
        await shared.close()


def test_a_turn_was_missed_where_two_replies_are_new() -> None:
    conversation = Conversation("t", "s")
    chains = [chain(n) for n in range(6)]
    assert not conversation.missed(chains[:1], [])
    conversation.tips.append(chains[0])
    assert not conversation.missed(chains[:3], [1])
    assert conversation.missed(chains[:5], [1, 3])
    conversation.tips.append(chains[2])
    assert not conversation.missed(chains[:5], [1, 3])
    assert not conversation.missed(chains[:3], [1])  # the same request again
    assert conversation.missed([chain(100 + n) for n in range(5)], [1, 3])  # an edited history


async def test_heavy_conversations_are_forgotten_before_light_ones_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten conversations with a megabyte of decisions each, in room for four; the store has them all."""
    monkeypatch.setattr("gateway.conversation.KEPT_BYTES", 4_500_000)
    shared = Shared(tmp_path)
    try:
        kept = shared.one
        for number in range(10):
            conversation = await kept.get("t", f"s{number}", [chain(number)], [])
            for part in range(10):
                kept.decide(conversation, {chain(100 * number + part): Record(text="x" * 100_000)})
        await shared.written()
        held = [number for number in range(10) if ("t", f"s{number}") in kept._kept]
        assert held == [6, 7, 8, 9]
        again = await shared.two.get("t", "s0", [chain(0), chain(1)], [1])
        assert again.record(chain(3)).text == "x" * 100_000
    finally:
        await shared.close()
