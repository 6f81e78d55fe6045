"""What a person does by hand: keys follow the content, and of two current values for a key one gives way."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.errors import Forbidden
from gateway.memory.edit import Editor
from gateway.memory.entries import EntryType, MemoryEntry, Trust
from gateway.memory.filters import Judge
from gateway.store.open import open_store
from gateway.store.protocol import Store

JUDGE = Judge()
NOW = 1_800_000_000.0


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """A new store."""
    opened = await open_store(tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
def editor(store: Store) -> Editor:
    """An editor over it."""
    return Editor(store, JUDGE)


async def preference(editor: Editor, key: str, value: str, project: str = "") -> MemoryEntry:
    """Set it; the entry."""
    written = await editor.set_preference("me", key, value, project=project, now=NOW)
    assert written.entry is not None
    return written.entry


@pytest.mark.parametrize("key", ["favourite_pet", "indentation", "宠物"])
@pytest.mark.parametrize("project", ["", "atlas"])
async def test_a_corrected_preference_keeps_its_key(store: Store, editor: Editor, key: str, project: str) -> None:
    entry = await preference(editor, key, "2 spaces", project)
    changed = await editor.change(entry, {"content": f"{key}: 3 spaces"}, NOW + 1)
    assert changed is not None
    assert (changed.key, changed.value) == (entry.key, "3 spaces")
    current = await store.by_key("me", entry.key)
    assert current is not None
    assert current.content == f"{key}: 3 spaces"


async def test_a_correction_to_another_key_takes_the_place_there(store: Store, editor: Editor) -> None:
    rival = await preference(editor, "indentation", "tabs")
    other = await preference(editor, "editor", "vim")
    changed = await editor.change(other, {"content": "indentation: 4 spaces"}, NOW + 1)
    assert changed is not None
    assert (changed.key, changed.value) == ("indentation", "4 spaces")
    assert await store.by_key("me", "editor") is None
    gone = await store.get("me", rival.id)
    assert gone is not None
    assert (gone.valid_to, gone.superseded_by) == (NOW + 1, other.id)
    assert [entry.id async for entry in store.export("me") if entry.valid_to is None] == [other.id]


async def test_another_project_moves_the_key(store: Store, editor: Editor) -> None:
    entry = await preference(editor, "indentation", "tabs", "atlas")
    assert entry.key == "indentation@atlas"
    moved = await editor.change(entry, {"project": "borea"}, NOW)
    assert moved is not None
    assert moved.key == "indentation@borea"
    freed = await editor.change(moved, {"project": ""}, NOW)
    assert freed is not None
    assert freed.key == "indentation"
    assert await store.by_key("me", "indentation@atlas") is None


async def test_what_is_approved_takes_its_place(store: Store, editor: Editor) -> None:
    old = await preference(editor, "editor", "vim")
    held = MemoryEntry("held", "me", "editor: emacs", EntryType.FACT, NOW, trust=Trust.QUARANTINED)
    held.metadata = {"quarantine": "URL", "speaker": "Ana"}
    await store.add([held])
    approved = await editor.approve(held, NOW + 2)
    assert approved is not None
    assert (approved.trust, approved.key, approved.metadata) == (Trust.EXPLICIT, "editor", {"speaker": "Ana"})
    gone = await store.get("me", old.id)
    assert gone is not None
    assert gone.superseded_by == "held"


async def test_what_a_person_corrects_is_their_word(store: Store, editor: Editor) -> None:
    said = MemoryEntry("said", "me", "Uses Java.", EntryType.FACT, NOW, trust=Trust.STATED, message_hash="ab")
    said.source_role = "user"
    await store.add([said])
    changed = await editor.change(said, {"content": "Uses Kotlin at work."}, NOW)
    assert changed is not None
    assert (changed.trust, changed.source_role, changed.message_hash) == (Trust.EXPLICIT, "api", "")
    assert changed.timestamp == NOW
    assert changed.token_count > 0
    tagged = await editor.change(changed, {"aliases": ("JVM",)}, NOW)
    assert tagged is not None
    assert tagged.content == "Uses Kotlin at work."
    assert [hit.entry.id for hit in await store.candidates("me", ["jvm"], 5)] == ["said"]


@pytest.mark.parametrize("field", ["content", "aliases", "metadata"])
async def test_no_field_takes_a_secret(store: Store, editor: Editor, field: str) -> None:
    entry = await preference(editor, "editor", "vim")
    secret = "my password is hunter2-Xy9!"
    value = {"content": secret, "aliases": (secret,), "metadata": {"note": secret}}[field]
    with pytest.raises(Forbidden):
        await editor.change(entry, {field: value}, NOW)
    assert await store.get("me", entry.id) == entry


async def test_what_is_gone_is_gone(store: Store, editor: Editor) -> None:
    entry = await preference(editor, "editor", "vim")
    await store.delete("me", entry.id)
    assert await editor.change(entry, {"content": "editor: emacs"}, NOW) is None
    assert await store.count("me") == 0
