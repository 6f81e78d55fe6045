"""Background work: bounded, referenced, drained, and counted where it is dropped."""

from __future__ import annotations

import asyncio
import gc

import pytest

from gateway.tasks import Tasks


async def test_work_survives_the_garbage_collector_and_is_let_go_when_done() -> None:
    done: list[int] = []
    tasks = Tasks()

    async def work(number: int) -> None:
        await asyncio.sleep(0.01)
        done.append(number)

    for number in range(20):
        tasks.spawn("work", work(number))
    gc.collect()
    assert len(tasks) == 20
    await tasks.drain()
    assert sorted(done) == list(range(20))
    assert len(tasks) == 0


async def test_past_the_bound_work_is_dropped_and_counted() -> None:
    dropped: list[str] = []
    tasks = Tasks(dropped.append, limit=2)
    hold = asyncio.Event()

    async def wait() -> str:
        await hold.wait()
        return "done"

    kept = [tasks.spawn("a", wait()), tasks.spawn("b", wait())]
    assert tasks.spawn("c", wait()) is None
    assert dropped == ["c"]
    hold.set()
    assert [await task for task in kept if task is not None] == ["done", "done"]
    assert tasks.spawn("d", wait()) is not None
    await tasks.drain()


async def test_draining_waits_for_what_work_spawns_then_refuses_more() -> None:
    dropped: list[str] = []
    tasks = Tasks(dropped.append)
    done: list[str] = []

    async def child() -> None:
        await asyncio.sleep(0)
        done.append("child")

    async def parent() -> None:
        await asyncio.sleep(0)
        tasks.spawn("child", child())
        done.append("parent")

    tasks.spawn("parent", parent())
    await tasks.drain()
    assert done == ["parent", "child"]
    assert tasks.spawn("late", child()) is None
    assert dropped == ["late"]


async def test_what_never_ends_is_cancelled_and_counted() -> None:
    dropped: list[str] = []
    tasks = Tasks(dropped.append)

    async def forever() -> None:
        await asyncio.Event().wait()

    task = tasks.spawn("forever", forever())
    await tasks.drain(0.02)
    assert task is not None
    assert task.cancelled()
    assert dropped == ["forever"]
    assert len(tasks) == 0


@pytest.mark.filterwarnings("error")
async def test_a_failure_is_logged_and_stays_there() -> None:
    tasks = Tasks()

    async def fail() -> None:
        raise ValueError("boom")

    task = tasks.spawn("fail", fail())
    await tasks.drain()
    assert task is not None
    assert isinstance(task.exception(), ValueError)
    del task
    gc.collect()
