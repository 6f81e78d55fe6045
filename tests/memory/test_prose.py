"""Only what the author says: pastes of every kind are left out, sentences split in any script."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.memory.prose import MAX_EDGE, language_of, prose, sentences


@pytest.mark.parametrize(
    "paste",
    [
        "```python\nI = 'like tabs'\n```",
        "```\nunclosed fence I like tabs",
        "> I like tabs",
        "2026-01-04 10:22:31 ERROR I like tabs",
        '{"note": "I like tabs"}',
        "diff --git a/x b/x\n@@ -1 +1 @@\n+I like tabs\n-I like spaces",
        'Traceback (most recent call last):\n  File "x.py", line 3, in f\nValueError: I like tabs',
        '<file_content path="a">\nI like tabs\n</file_content>',
        "<system-reminder>I like tabs</system-reminder>",
        "[Retrieved Memory]\n- I like tabs",
        "<memory_context>\nI like tabs\n</memory_context>",
        "Translate the following text:\nI like tabs\n\nI like tabs too",
        "请翻译下面这段话：\n我喜欢制表符",
        "“I like tabs”",
        "def f():\n    return 'I like tabs';",
        "SELECT 'I like tabs' FROM people",
    ],
)
def test_pastes_are_left_out(paste: str) -> None:
    kept = prose(f"My own words.\n{paste}")
    assert "My own words." in kept
    assert "tabs" not in kept and "制表符" not in kept


@pytest.mark.parametrize(
    "text",
    [
        "<user_query>\nI like tabs\n</user_query>",
        "<task>I like tabs</task>",
        "- I like tabs\n- I live in Rome",
        "1. I like tabs",
        "Here is what to know about me:\n- I like tabs",
        "a < b and I like tabs",
    ],
)
def test_own_words_stay(text: str) -> None:
    assert "I like tabs" in prose(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I use Go. You?", ["I use Go.", "You?"]),
        ("我用 Go。你呢？", ["我用 Go。", "你呢？"]),
        ("私は佐藤です。東京に住んでいます。", ["私は佐藤です。", "東京に住んでいます。"]),
        ("Dr. Lee uses e.g. Python 3.12. Fine!", ["Dr. Lee uses e.g. Python 3.12.", "Fine!"]),
        ("- first point\n* second point", ["first point", "second point"]),
        ("src/main.py is the entry", ["src/main.py is the entry"]),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_a_megabyte_is_looked_at_at_both_ends_only() -> None:
    text = "I live in Rome.\n" + "filler words here\n" * 60_000 + "I use Linux."
    kept = prose(text)
    assert len(kept) <= 2 * MAX_EDGE + 1
    assert kept.startswith("I live in Rome.") and kept.endswith("I use Linux.")


def test_an_end_inside_a_fence_is_not_prose() -> None:
    text = "Look:\n```\n" + "x = 1\n" * 20_000 + "I like tabs\n```\nThanks all."
    kept = prose(text)
    assert "I like tabs" not in kept and kept.endswith("Thanks all.")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I live in Rome", "en"),
        ("我住在罗马", "zh"),
        ("ローマに住んでいます", "ja"),
        ("저는 서울에 살아요", "ko"),
        ("Живим у Нишу и пишем њој", "sr"),
        ("Я живу в Казани", "ru"),
        ("Ich wohne in Hamburg und mag das nicht", "de"),
        ("Vivo en Sevilla y prefiero el café", "es"),
        ("Je vis à Lyon avec mon chat", "fr"),
        ("Živim u Nišu i radim", "sr"),
    ],
)
def test_language(text: str, language: str) -> None:
    assert language_of(text) == language


@given(st.text(max_size=400))
@settings(max_examples=200, deadline=None)
def test_any_text_is_split_into_its_own_words(text: str) -> None:
    for sentence in sentences(prose(text)):
        assert all(word in text for word in sentence.split())
