"""Whole tool outputs, read back: `GET /v1/memory/spill/{id}?lines=a-b&grep=…`.

An agent asks for the part that was cut out of its context, so the answer is plain text.
"""

from __future__ import annotations

import asyncio
import dataclasses

from gateway.api.models import SpillQuery
from gateway.api.operation import TEXT_TYPE, Answered, Asked, answer
from gateway.errors import NotFound
from gateway.spill_text import SPILL_ID, select
from gateway.store.protocol import Store


class Spill:
    """Handlers over one tenant's spilled outputs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def list(self, asked: Asked) -> Answered:
        """What is kept, newest first."""
        data = [{"object": "memory.spill", **dataclasses.asdict(i)} for i in await self._store.list_spill(asked.tenant)]
        return answer({"object": "list", "data": data})

    async def get(self, asked: Asked) -> Answered:
        """A text, or the lines of it that were asked for."""
        query: SpillQuery = asked.query
        name = asked.path["id"]
        text = await self._store.get_spill(asked.tenant, name) if SPILL_ID.fullmatch(name) else None
        if text is None:
            raise NotFound(f"No output '{name[:100]}' is kept for you; old ones are dropped after a while.")
        found = await asyncio.to_thread(select, text, query.lines, query.grep)
        headers = {"x-lines-total": str(found.lines), "x-lines-shown": str(found.shown)}
        if found.how:
            headers |= {"x-grep": found.how, "x-grep-left-out": str(found.left_out)}
        return Answered(found.text.encode("utf-8", "replace"), content_type=TEXT_TYPE, headers=headers)
