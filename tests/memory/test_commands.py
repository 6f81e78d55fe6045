"""Slash commands are exact: a sentence that begins like one is not one."""

from __future__ import annotations

import pytest

from gateway.memory.commands import Command, parse_command


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/memory", Command("memory")),
        ("  /memory  ", Command("memory")),
        ("/memory what editor do I use", Command("memory", "what editor do I use")),
        ("/save I live in Oslo", Command("save", "I live in Oslo")),
        ("/save 我用 Python", Command("save", "我用 Python")),
        ("/save first line\nsecond line", Command("save", "first line\nsecond line")),
        ("/clear", Command("clear")),
        ("/clear\n", Command("clear")),
    ],
)
def test_commands(text: str, expected: Command) -> None:
    assert parse_command(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "", "memory", "/save", "/save   ", "/clear everything please", "please /memory", "what does /memory do?",
        "/Memory", "/memoryx", "/memories", "//clear", "/ clear",
        "/memory/usage.py is broken", "/memory\nand a second line",
    ],
)  # fmt: skip
def test_not_commands(text: str) -> None:
    assert parse_command(text) is None
