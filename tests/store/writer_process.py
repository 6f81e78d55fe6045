"""A process that writes entries one after the other and says so after each: to be killed, or to run beside others."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from gateway.memory.entries import EntryType, MemoryEntry
from gateway.store.open import open_store


async def main(place: str, name: str, number: int) -> None:
    """Write `number` entries called `name-0` … to the store at `place`, a directory or a URL."""
    store = await (open_store(database_url=place) if "://" in place else open_store(data_dir=Path(place)))
    for i in range(number):
        text = f"zebra words of {name} and item{i}"
        await store.add([MemoryEntry(f"{name}-{i}", "t1", text, EntryType.FACT, 1.7e9)])
        await store.add_spend("key", "2026-11", 1.0)
        print(i, flush=True)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
