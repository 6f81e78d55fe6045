"""The one way to do something in the background: owned, bounded, drained at shutdown, counted where dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

log = structlog.get_logger(__name__)

PENDING_MOST = 2_000
"""Tasks waiting or running at once; past that, new work is skipped and counted, and no request ever waits for it."""
DRAIN_S = 15.0
"""How long shutdown waits for what is still running."""


class Tasks:
    """Keeps a strong reference to each background task until it is done."""

    def __init__(self, on_drop: Callable[[str], None] | None = None, limit: int = PENDING_MOST) -> None:
        self._running: set[asyncio.Task[Any]] = set()
        self._on_drop = on_drop or (lambda _: None)
        self._limit = limit
        self._closed = False

    def spawn(self, name: str, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any] | None:
        """Run `work` in the background; drop it, and return None, where too much is running or the gateway closes."""
        if self._closed or len(self._running) >= self._limit:
            work.close()
            self._on_drop(name)
            log.warning("background work dropped", task=name)
            return None
        task = asyncio.create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._done)
        return task

    def __len__(self) -> int:
        return len(self._running)

    async def drain(self, timeout_s: float = DRAIN_S) -> None:
        """Wait for all work, then cancel what is left. Work that is running may still spawn more until the end."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while self._running and (left := deadline - asyncio.get_running_loop().time()) > 0:
            await asyncio.wait(set(self._running), timeout=left, return_when=asyncio.FIRST_COMPLETED)
        self._closed = True
        rest = set(self._running)
        for task in rest:
            self._on_drop(task.get_name())
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("background work failed", task=task.get_name(), error=f"{type(error).__name__}: {error}")
