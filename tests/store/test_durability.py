"""What must hold when things go wrong: kill -9, several processes on one store, a locked file, an erased tenant's
bytes."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.errors import Unavailable
from gateway.memory.entries import Trust
from gateway.store.open import open_store
from gateway.store.protocol import Decision, Store
from gateway.store.sqlite import READ_TIMEOUT_S, SqliteStore
from tests.store.builders import entry
from tests.store.postgres_server import PostgresServer

ROOT = Path(__file__).parents[2]


def start_writer(place: str, name: str, number: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.store.writer_process", place, name, str(number)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


async def postings_of(store: Store, term: str) -> int:
    return len(await store.candidates("t1", [term], 10_000))


@pytest.mark.parametrize("lines_before_kill", [1, 7, 40])
async def test_kill_9_loses_at_most_the_entry_being_written(tmp_path: Path, lines_before_kill: int) -> None:
    writer = start_writer(str(tmp_path), "w", 100_000)
    assert writer.stdout is not None
    for _ in range(lines_before_kill):
        writer.stdout.readline()
    writer.kill()
    said = lines_before_kill + len(writer.stdout.read().splitlines())
    writer.wait()
    writer.stdout.close()
    store = await open_store(data_dir=tmp_path)
    kept = await store.count("t1")
    assert said <= kept <= said + 1
    assert await postings_of(store, "zebra") == kept
    await store.add([entry("zebra after", id="after")])
    assert await postings_of(store, "zebra") == kept + 1
    await store.close()


async def run_together(place: str, processes: int, number: int) -> None:
    running = [start_writer(place, f"p{i}", number) for i in range(processes)]
    for process in running:
        await asyncio.to_thread(process.communicate, timeout=100)
    assert [process.returncode for process in running] == [0] * processes


async def check_all_kept(store: Store, total: int) -> None:
    assert await store.count("t1") == total
    assert await store.get_spend("key", "2026-11") == total
    assert await postings_of(store, "zebra") == total
    assert await postings_of(store, "item7") == total / 40
    await store.close()


async def test_two_processes_on_one_file_keep_every_write(tmp_path: Path) -> None:
    await run_together(str(tmp_path), 2, 40)
    await check_all_kept(await open_store(data_dir=tmp_path), 80)


async def test_three_processes_on_one_postgres_keep_every_write(postgres_server: PostgresServer) -> None:
    url = postgres_server.new_database()
    await run_together(url, 3, 40)
    await check_all_kept(await open_store(database_url=url), 120)


async def test_many_writes_at_once_are_all_kept(store: Store) -> None:
    await asyncio.gather(*(store.add([entry(f"burst item {i}", id=f"b{i}")]) for i in range(200)))
    assert await store.count("t1") == 200
    assert await postings_of(store, "burst") == 200


async def test_one_failing_write_does_not_take_its_group_along(tmp_path: Path) -> None:
    store = await open_store(data_dir=tmp_path)
    bad = entry("bad", id="bad")
    bad.timestamp = None  # type: ignore[assignment]
    results = await asyncio.gather(
        *(store.add([bad if i == 5 else entry("good", id=f"g{i}")]) for i in range(10)), return_exceptions=True
    )
    assert isinstance(results[5], Unavailable)
    assert results[:5] + results[6:] == [1] * 9
    assert await store.count("t1") == 9
    assert await postings_of(store, "good") == 9
    await store.close()


async def test_a_locked_file_does_not_stop_recall_and_a_dead_one_is_bounded(tmp_path: Path) -> None:
    store = await open_store(data_dir=tmp_path)
    await store.add([entry("zebra")])
    other = sqlite3.connect(tmp_path / "breakwater.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    assert len(await asyncio.wait_for(store.candidates("t1", ["zebra"], 5), 2.0)) == 1
    writing = asyncio.ensure_future(store.add([entry("later", id="later")]))
    assert len(await asyncio.wait_for(store.candidates("t1", ["zebra"], 5), 2.0)) == 1
    other.execute("COMMIT")
    other.close()
    assert await writing == 1
    await store.close()
    assert READ_TIMEOUT_S < 2.0
    with pytest.raises(Unavailable, match="closed"):
        await store.count("t1")
    with pytest.raises(Unavailable, match="closed"):
        await store.add([entry("x")])


async def test_a_cancelled_caller_leaves_the_store_usable(store: Store) -> None:
    tasks = [asyncio.ensure_future(store.add([entry("zebra", id=f"c{i}")])) for i in range(20)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert await store.add([entry("zebra", id="last")]) == 1
    kept = await store.count("t1")
    assert 11 <= kept <= 21
    assert await postings_of(store, "zebra") == kept


def bytes_of(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in directory.iterdir() if not path.name.endswith("-shm"))


async def fill_with_secrets(store: Store, tenant: str) -> None:
    for i in range(60):
        text = f"SECRETMARK number {i} " + "padding " * 40
        await store.add(
            [entry(text, id=f"SECRETMARK-{i}", tenant=tenant, session="SECRETMARK", metadata={"a": "SECRETMARK"})]
        )
    await store.update(tenant, "SECRETMARK-3", content="SECRETMARK changed", trust=Trust.EXPLICIT)
    await store.delete(tenant, "SECRETMARK-4")
    await store.supersede(
        tenant, "SECRETMARK-5", entry("SECRETMARK newer", id="SECRETMARK-n", tenant=tenant, key="SECRETMARK")
    )
    await store.save_decisions({(tenant, "SECRETMARK"): [Decision(b"SECRETMARK123456", "SECRETMARK", b"SECRETMARK")]})
    await store.touch_session(tenant, "SECRETMARK", title="SECRETMARK")
    await store.set_working(tenant, "SECRETMARK", b"SECRETMARK" * 500)
    await store.add_pending(tenant, "SECRETMARK", b"SECRETMARK" * 500)
    await store.put_spill(tenant, "SECRETMARK", "SECRETMARK")


async def test_an_erased_tenant_leaves_no_byte_in_file_or_log(tmp_path: Path) -> None:
    store = await open_store(data_dir=tmp_path)
    await store.add([entry("zebra", id="i", tenant="other")])
    await fill_with_secrets(store, "SECRETTENANT")
    assert b"SECRETMARK" in bytes_of(tmp_path)
    assert await store.erase("SECRETTENANT") == 60
    assert b"SECRET" not in bytes_of(tmp_path)
    assert await store.count("other") == 1
    assert len(await store.candidates("other", ["zebra"], 5)) == 1
    await store.close()
    assert b"SECRET" not in bytes_of(tmp_path)


async def test_erasing_works_beside_a_second_process_and_without_a_rewrite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.store.sqlite.VACUUM_MAX_BYTES", 0)
    store = await open_store(data_dir=tmp_path)
    beside = await open_store(data_dir=tmp_path)
    await fill_with_secrets(store, "SECRETTENANT")
    assert await beside.count("SECRETTENANT") == 60
    await store.erase("SECRETTENANT")
    assert await beside.count("SECRETTENANT") == 0
    assert b"SECRET" not in bytes_of(tmp_path)
    await beside.close()
    await store.close()


async def test_opening_is_quick_enough_for_the_start(tmp_path: Path) -> None:
    """The store imports neither numpy nor jieba until something is indexed or searched."""
    code = (
        "import sys, pathlib\n"
        "from gateway.store.sqlite import SqliteStore\n"
        "SqliteStore(pathlib.Path(sys.argv[1]))\n"
        "print(sorted({'numpy', 'jieba', 'rjieba', 'psycopg', 'zstandard'} & set(sys.modules)))\n"
    )
    result = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code, str(tmp_path / "db")], cwd=ROOT, capture_output=True, text=True
    )
    assert result.stdout.strip() == "[]", result.stderr


async def test_closing_writes_what_is_queued(tmp_path: Path) -> None:
    store = await open_store(data_dir=tmp_path)
    assert isinstance(store, SqliteStore)
    writes = [asyncio.ensure_future(store.touch_session("t1", f"s{i}")) for i in range(50)]
    await asyncio.sleep(0)
    await store.close()
    await store.close()
    await asyncio.gather(*writes)
    again = await open_store(data_dir=tmp_path)
    assert len(await again.sessions("t1")) == 50
    await again.close()


async def test_reads_do_not_wait_for_a_long_write(tmp_path: Path) -> None:
    store = await open_store(data_dir=tmp_path)
    await store.add([entry("zebra")])
    big = asyncio.ensure_future(store.add([entry(f"zebra {i} " + "word " * 50) for i in range(5_000)]))
    await asyncio.sleep(0.05)
    while not big.done():
        assert len(await store.candidates("t1", ["zebra"], 1)) == 1
        await asyncio.sleep(0)  # so few entries are searched without leaving the loop
    assert await big == 5_000
    await store.close()
