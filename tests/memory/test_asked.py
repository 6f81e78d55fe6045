"""Questions that have only common words, about the few things that hold of a person."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.memory.asked import asked_keys
from gateway.memory.extract import Extractor
from gateway.memory.retrieve import Retriever
from gateway.store.open import open_store


@pytest.mark.parametrize(
    ("question", "key"),
    [
        ("What is my name?", "name"),
        ("Do you remember who I am? Who am I?", "name"),
        ("我叫什么名字？", "name"),
        ("Wie heiße ich?", "name"),
        ("Where do I live?", "city"),
        ("我住在哪个城市?", "city"),
        ("Which company do I work for?", "employer"),
        ("我在哪家公司上班？", "employer"),
        ("What do I do for a living?", "role"),
        ("我是做什么工作的？", "role"),
        ("what's my time zone again?", "timezone"),
        ("Remind me of my e-mail address, please", "email"),
        ("我的邮箱是什么？", "email"),
        ("Which editor do I use?", "editor"),
        ("我用什么编辑器写代码？", "editor"),
        ("How old am I?", "age"),
    ],
)
def test_a_question_names_its_key(question: str, key: str) -> None:
    assert key in asked_keys(question)


@pytest.mark.parametrize(
    "text",
    [
        "My name is Radmila. What is the capital of France?",
        "How do I rename my project?",
        "What is wrong with my database error handling?",
        "我的代码为什么报错？",
        "Write a function that reads a name and a city.",
        "What is the name of this function?",
        "",
    ],
)
def test_other_messages_ask_for_nothing(text: str) -> None:
    assert asked_keys(text) == []


@pytest.mark.parametrize(
    ("said", "question", "mark"),
    [
        ("My name is Radmila.", "What is my name?", "Radmila"),
        ("我叫李小明。", "我叫什么名字？", "李小明"),
        ("I live in Novi Sad.", "Where do I live?", "Novi Sad"),
        ("I work at Initech.", "Which company do I work for?", "Initech"),
        ("My email is radmila@example.com.", "What is my e-mail address?", "radmila@example.com"),
    ],
)
async def test_what_was_said_is_recalled_and_nothing_else(tmp_path: Path, said: str, question: str, mark: str) -> None:
    store = await open_store(tmp_path, None)
    try:
        extractor = Extractor(None, store, len)
        others = ["My time zone is Europe/Belgrade.", "We deploy on Hetzner every Friday.", "I am 41 years old."]
        for text in [said, *others]:
            await extractor.extract([{"role": "user", "content": text}], tenant="t", project="", session="s", now=1e9)
        found = await Retriever(store).build_context("t", question)
        assert [mark in entry.content for entry in found] == [True]
        assert await Retriever(store).build_context("another", question) == []
        assert mark in (await Retriever(store).retrieve("t", question))[0].entry.content
    finally:
        await store.close()
