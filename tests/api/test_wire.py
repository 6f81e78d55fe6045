"""The ASGI side: bodies read to their limit, and a client that hangs up cancels what was done for it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway.api.wire import ClientGone, cancelled_with_client, read_body
from gateway.errors import BodyTooLarge


def receiver(*events: dict[str, Any]) -> Any:
    """An ASGI `receive` that gives these events, then waits for ever."""
    queue = list(events)

    async def receive() -> dict[str, Any]:
        if queue:
            return queue.pop(0)
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    return receive


def piece(body: bytes, more: bool) -> dict[str, Any]:
    """One event of a request's body."""
    return {"type": "http.request", "body": body, "more_body": more}


async def test_a_body_in_pieces_is_joined() -> None:
    events = [piece(b"ab", True), piece(b"", True), piece(b"c", False)]
    assert await read_body({"headers": []}, receiver(*events), 3) == b"abc"


async def test_a_body_over_the_limit_is_refused_announced_or_not() -> None:
    with pytest.raises(BodyTooLarge):
        await read_body({"headers": [(b"content-length", b"4")]}, receiver(), 3)
    with pytest.raises(BodyTooLarge):
        await read_body({"headers": []}, receiver(piece(b"ab", True), piece(b"cd", True)), 3)


async def test_a_client_that_leaves_in_its_body_is_gone() -> None:
    with pytest.raises(ClientGone):
        await read_body({"headers": []}, receiver(piece(b"ab", True), {"type": "http.disconnect"}), 9)


async def test_work_is_cancelled_when_the_client_hangs_up() -> None:
    cancelled = False
    with pytest.raises(ClientGone):
        async with cancelled_with_client(receiver({"type": "http.disconnect"})):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled = True
                raise
    assert cancelled
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_work_that_ends_is_left_alone() -> None:
    async with cancelled_with_client(receiver()):
        await asyncio.sleep(0)
    await asyncio.sleep(0.01)


async def test_a_cancellation_from_elsewhere_stays_one() -> None:
    async def work() -> None:
        async with cancelled_with_client(receiver()):
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
