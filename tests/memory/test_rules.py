"""The rule extractor: keys and values out of plain sentences, in English and Chinese first."""

from __future__ import annotations

import pytest

from gateway.memory.dedupe import entry_key
from gateway.memory.rules import extract_rules


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("My name is Marta Kowalska.", "name", "Marta Kowalska"),
        ("You can call me Sam", "name", "Sam"),
        ("I live in Rotterdam with my cats.", "city", "Rotterdam"),
        ("I moved to Berlin last spring.", "city", "Berlin"),
        ("I work at Siemens.", "employer", "Siemens"),
        ("I'm a backend engineer.", "role", "backend engineer"),
        ("My timezone is Europe/Belgrade.", "timezone", "Europe/Belgrade"),
        ("My editor is Neovim.", "editor", "Neovim"),
        ("I use VS Code.", "editor", "VS Code"),
        ("My preferred shell is fish.", "shell", "fish"),
        ("I prefer tabs over spaces.", "indentation", "tabs"),
        ("For this project we indent with 2 spaces.", "indentation", "2 spaces"),
        ("Always answer in Spanish, please.", "reply_language", "es"),
        ("I prefer dark mode.", "theme", "dark"),
        ("我叫陈思远。", "name", "陈思远"),
        ("我住在杭州。", "city", "杭州"),
        ("我在字节跳动工作。", "employer", "字节跳动"),
        ("我喜欢用四个空格缩进。", "indentation", "4 spaces"),
        ("以后都用中文回复我。", "reply_language", "zh"),
        ("Ich wohne in Hamburg.", "city", "Hamburg"),
        ("Me llamo Lucía.", "name", "Lucía"),
        ("私の名前は佐藤健です。", "name", "佐藤健"),
        ("Živim u Nišu.", "city", "Nišu"),
    ],
)
def test_keyed_statements(text: str, key: str, value: str) -> None:
    found = extract_rules(text)
    assert [entry_key(proposal)[0] for proposal in found] == [key]
    assert entry_key(found[0])[1].casefold() == value.casefold()


@pytest.mark.parametrize(
    ("text", "predicate", "object_"),
    [
        ("I use Python.", "uses", "Python"),
        ("The project uses PostgreSQL 15 with pgvector.", "uses", "PostgreSQL 15"),
        ("这个项目使用 PostgreSQL 数据库。", "uses", "PostgreSQL"),
        ("We've switched from Jenkins to GitHub Actions.", "uses", "GitHub Actions"),
    ],
)
def test_relations(text: str, predicate: str, object_: str) -> None:
    [found] = extract_rules(text)
    assert (found.kind, found.predicate, found.object) == ("relation", predicate, object_)


def test_what_is_replaced_is_named() -> None:
    assert extract_rules("We've switched from Jenkins to GitHub Actions.")[0].replaces == "Jenkins"
    assert extract_rules("我们已经从 MySQL 迁移到了 PostgreSQL。")[0].replaces == "MySQL"
    assert extract_rules("We decided to use FastAPI instead of Flask.")[0].replaces == "Flask"


def test_two_statements_in_one_sentence() -> None:
    found = {p.predicate: p.object for p in extract_rules("My name is Ana and I live in Porto.")}
    assert found == {"name": "Ana", "city": "Porto"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "What is my name?",
        "Help me change this code",
        "帮我改一下这段代码",
        "```\nI use Vim\n```",
        "Fix line 3.",
        "   ",
        "?!",
        "🙂",
    ],
)
def test_nothing_to_find(text: str) -> None:
    assert extract_rules(text) == []


def test_a_denial_gives_no_value() -> None:
    assert all(not p.object for p in extract_rules("I don't use Java."))
    assert all(p.predicate != "city" for p in extract_rules("I no longer live in Paris."))


def test_long_input_is_bounded() -> None:
    assert len(extract_rules("I like reading books number one.\n" * 50_000)) <= 40
