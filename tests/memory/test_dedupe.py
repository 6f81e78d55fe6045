"""Same, superseding or new: what one tenant already remembers decides."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.memory.dedupe import decide, entry_key, is_near
from gateway.memory.entries import EntryType, MemoryEntry
from gateway.memory.keys import canonical_key, human_language
from gateway.memory.proposals import Proposal
from gateway.memory.rules import extract_rules

_IDS = itertools.count()


def read(text: str) -> Proposal:
    """A sentence as the rules read it."""
    [proposal] = extract_rules(text)
    return proposal


def entry(proposal: Proposal, project: str = "") -> MemoryEntry:
    key, value = entry_key(proposal, project)
    kind = EntryType.PREFERENCE if proposal.kind == "preference" else EntryType.FACT
    return MemoryEntry(str(next(_IDS)), "t", proposal.content, kind, 1.0, key=key, value=value, project=project)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I live in Paris.", "I moved to Berlin."),
        ("我住在北京。", "I live in Berlin."),
        ("I prefer 4 spaces for indentation.", "I prefer tabs over spaces."),
        ("我喜欢用四个空格缩进。", "Please use tabs from now on."),
        ("Always answer in English.", "以后都用中文回复我。"),
        ("My editor is Vim.", "I use VS Code."),
        ("I prefer Vim over Emacs.", "I prefer Emacs over Vim."),
        ("I like dark roast coffee.", "I don't like dark roast coffee."),
        ("My name is Ana.", "Call me Anna."),
        ("I use MySQL.", "I switched from MySQL to PostgreSQL."),
        ("My timezone is UTC.", "My timezone is Europe/Oslo."),
    ],
)
def test_newer_takes_the_place_of_older(old: str, new: str) -> None:
    before = entry(read(old))
    merge = decide(read(new), [before])
    assert (merge.outcome, [e.id for e in merge.old]) == ("supersedes", [before.id])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I use Python.", "i use  python"),
        ("I use Python.", "我用 Python。"),
        ("I live in Paris.", "I'm based in Paris."),
        ("I prefer tabs over spaces.", "Use tabs from now on."),
        ("Always answer in Chinese.", "以后都用中文回复我。"),
        ("My editor is Neovim.", "I use Neovim."),
        ("Our staging server runs Ubuntu on two cores.", "Our server runs Ubuntu on two cores."),
    ],
)
def test_the_same_said_again(old: str, new: str) -> None:
    assert decide(read(new), [entry(read(old))]).outcome == "same"


def test_a_key_and_value_says_the_same_as_a_sentence() -> None:
    note = Proposal("preference", "language: Python", key="language", value="Python")
    assert decide(note, [entry(read("I use Python."))]).outcome == "same"
    assert decide(read("I use Python."), [entry(note)]).outcome == "same"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I use Python.", "I use Rust."),
        ("I use Python 3.11.", "I use Python 3.12."),
        ("Our staging server runs Ubuntu on two cores.", "Our production server runs Ubuntu on two cores."),
        ("I live in Paris.", "I work as a nurse."),
        ("My dog is called Rex.", "My cat is called Rex."),
        ("I use Python.", "I don't use Python."),
        ("Our backend uses C++.", "Our backend uses C#."),
        ("我用 Python。", "我用 Go。"),
    ],
)
def test_another_thing_is_new(old: str, new: str) -> None:
    assert decide(read(new), [entry(read(old))]).outcome == "new"


def test_projects_keep_their_own_conventions() -> None:
    atlas = entry(read("For this project we indent with 2 spaces."), "atlas")
    assert decide(read("In this project we indent with tabs."), [atlas], "atlas").outcome == "supersedes"
    assert decide(read("In this project we indent with tabs."), [atlas], "zephyr").outcome == "new"


def test_history_is_left_alone() -> None:
    old = entry(read("I live in Paris."))
    old.valid_to = 2.0
    assert decide(read("I moved to Berlin."), [old]).outcome == "new"


@pytest.mark.parametrize(
    ("spellings", "key"),
    [
        (
            [
                "indentation",
                "Indent Style",
                "tab-size",
                "缩进",
                "代码缩进风格",
                "preferred_indentation",
                "user.indentation",
            ],
            "indentation",
        ),
        (["city", "lives in", "居住地", "location"], "city"),
        (["editor", "IDE", "preferred editor", "编辑器", "常用编辑器"], "editor"),
        (["time zone", "timezone", "时区"], "timezone"),
    ],
)
def test_spellings_of_one_key(spellings: list[str], key: str) -> None:
    assert {canonical_key(spelling) for spelling in spellings} == {key}


def test_language_is_of_people_or_of_programs() -> None:
    assert canonical_key("language", "Python") == "programming_language"
    assert canonical_key("language", "中文") == "reply_language"
    assert human_language("Simplified Chinese") == human_language("中文") == "zh"


@given(st.text(min_size=1, max_size=80))
@settings(max_examples=150, deadline=None)
def test_what_was_just_written_is_the_same(text: str) -> None:
    proposal = Proposal("fact", text)
    assert decide(proposal, [entry(proposal)]).outcome == "same"


@given(st.text(max_size=60), st.text(max_size=60))
@settings(max_examples=150, deadline=None)
def test_nearness_is_symmetric(a: str, b: str) -> None:
    assert is_near(a, b) == is_near(b, a)
