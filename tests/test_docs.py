"""What the documents name exists: settings, files, and each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from gateway.settings import (
    AuthKey,
    CompactionSettings,
    FoldSettings,
    InjectionSettings,
    LimitSettings,
    MemorySettings,
    MetricsSettings,
    MicrocompactSettings,
    ModelSettings,
    ServerSettings,
    Settings,
    SnipSettings,
    SpillSettings,
    UpstreamSettings,
)

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
CONFIGURATION = ROOT / "docs" / "configuration.md"
BLOCKS: dict[str, type[BaseModel]] = {
    "server": ServerSettings,
    "limits": LimitSettings,
    "fold": FoldSettings,
    "spill": SpillSettings,
    "snip": SnipSettings,
    "microcompact": MicrocompactSettings,
    "compaction": CompactionSettings,
    "memory": MemorySettings,
    "injection": InjectionSettings,
    "metrics": MetricsSettings,
}
ENTRIES: dict[str, type[BaseModel]] = {"keys": AuthKey, "upstreams": UpstreamSettings, "models": ModelSettings}
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
NAMED_FILE = re.compile(r"`((?:gateway|tests|bench|docs)/[\w/.]*\w\.(?:py|md|json|jsonl))`")
IN_SAME_FOLDER = re.compile(r"`(gateway/[\w/]+/)\w+\.py`(?:, `(\w+\.py)`)+")


def page() -> str:
    return CONFIGURATION.read_text(encoding="utf-8")


def in_full(names: str) -> list[str]:
    """The keys of a row's first cell: `a.b`, and `.c` after it, which stands for `a.c`."""
    found: list[str] = []
    for name in re.findall(r"`([\w.]+)`", names):
        found.append(f"{found[-1].partition('.')[0]}{name}" if name.startswith(".") else name)
    return found


def rows() -> Iterator[tuple[str, str]]:
    """(names, default) of each row of the configuration page's tables."""
    for line in page().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) > 2:
            yield cells[0], cells[1]


@pytest.mark.parametrize("block", BLOCKS)
def test_each_key_of_a_block_has_a_row(block: str) -> None:
    named = {name for names, _ in rows() for name in in_full(names)}
    keys = {f"{block}.{field}" for field in BLOCKS[block].model_fields}
    assert {key for key in keys - named if not key.endswith(".enabled")} == set()
    assert f"{block}.enabled" in named or f"{block}.enabled" not in keys or "Each block has `enabled`" in page()


@pytest.mark.parametrize("kind", ENTRIES)
def test_each_key_of_an_entry_has_a_row(kind: str) -> None:
    named = {names for names, _ in rows()}
    assert {f"`{field}`" for field in ENTRIES[kind].model_fields} <= named


def test_no_block_is_left_out() -> None:
    blocks = set(Settings.model_fields)
    assert blocks - set(BLOCKS) == {
        *("data_dir", "database_url", "auth", "upstreams", "models", "protected_tools", "slash_commands")
    }
    for name in blocks - set(BLOCKS):
        assert f"`{name}" in page(), name


def test_the_defaults_in_the_page_are_the_defaults() -> None:
    compared = 0
    for names, default in rows():
        fields = re.findall(r"`(\w+)\.(\w+)`", names)
        found = re.fullmatch(r"`([^`]*)`", default)
        if len(fields) == 1 and fields[0][0] in BLOCKS and found is not None:
            block, field = fields[0]
            assert yaml.safe_load(found[1]) == BLOCKS[block]().model_dump()[field], names
            compared += 1
    assert compared > 25


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_and_named_files_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    missing = [link for link in LINK.findall(text) if not (path.parent / link).exists()]
    missing += [name for name in NAMED_FILE.findall(text) if not (ROOT / name).exists()]
    for match in IN_SAME_FOLDER.finditer(text):
        beside = re.findall(r"`(\w+\.py)`", match[0])
        missing += [match[1] + name for name in beside if not (ROOT / match[1] / name).exists()]
    assert not missing


def test_the_index_names_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert {name for name in pages if f"({name})" not in index} == set()
