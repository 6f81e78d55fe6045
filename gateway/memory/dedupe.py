"""Whether something is already remembered, takes the place of what is, or is new.

Three sieves, each wider: the same normalised text (the store's hash), the same canonical statement, and nearly the
same words. Words may only be *left out or added* for two memories to be one; a word exchanged for another (staging
for production, 3.11 for 3.12, dog for cat) makes a different memory, however much else they share.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from gateway.memory import keys
from gateway.memory.entries import EntryType, MemoryEntry
from gateway.memory.filters import words
from gateway.memory.proposals import Proposal
from gateway.memory.prose import word_set
from gateway.store.text import normalise, normalised_hash

NEAR = 0.6
"""Jaccard overlap from which the shorter of two nested memories is taken to say the same."""

_NEGATION_RE = re.compile(
    r"\b(?:no|not|never|don't|doesn't|do not|isn't|aren't|can't|cannot|won't|without|hates?|dislikes?|avoids?|stop|"
    r"stopped|no longer|nicht|kein\w*|ne|pas|nunca|nikad)\b|不|没|别|无|讨厌|避免|停止|ない|ません|안 |не ",
    re.IGNORECASE,
)
_FILLER = word_set(
    "language languages programming using used use prefer preferred preference like love favourite favorite "
    "main mainly mostly usually always please just also really very now currently am is are do does "
    "programmer coding code writes write all every everything one that which who as i'm i've "
)
_FILLER_CJK_RE = re.compile(
    r"我们?的?|用户|使用|喜欢|偏好|编程|语言|常用|平时|主要|现在|一直|都|用|的|了|是|很|更|请|以后|统一|写"
)


@dataclass(frozen=True, slots=True)
class Merge:
    """`same`: nothing to write. `supersedes`: `old` becomes history. `new`: write it."""

    outcome: Literal["same", "supersedes", "new"]
    old: tuple[MemoryEntry, ...] = ()


NEW = Merge("new")


def entry_key(proposal: Proposal, project: str = "") -> tuple[str, str]:
    """The (key, value) under which a proposal is kept; key "" where nothing can supersede it.

    Preferences have their canonical key; relations `subject|predicate` where one value holds at a time, else
    `subject|predicate|object`. What is said of the project, in a named project, is that project's: `indentation@atlas`.
    """
    if proposal.kind == "preference":
        key = (
            keys.canonical_key(proposal.key, proposal.value)
            if not proposal.key.startswith(("like:", "choice:"))
            else proposal.key
        )
        value = _canonical_value(key, proposal)
    elif proposal.kind == "relation":
        predicate = keys.canonical_key(proposal.predicate, proposal.object)
        subject = keys.slug(proposal.subject) or "user"
        subject = "user" if subject in ("user", "the_user", "i", "me", "用户", "我") else subject
        value = proposal.object
        single = predicate in keys.SINGLE_VALUED
        key = f"{subject}|{predicate}" if single else f"{subject}|{predicate}|{keys.slug(value)}"
        if subject == "user" and single:
            key = predicate
    else:
        return _stated_key(proposal)
    scoped = project and (proposal.subject == "project" or _speaks_of_project(proposal.content))
    return (f"{key}@{project}" if key and scoped else key), value


def _stated_key(proposal: Proposal) -> tuple[str, str]:
    """A fact written as `key: value` with a key of the tables is that preference."""
    head, colon, rest = re.sub("：", ":", proposal.content).partition(":")
    key = keys.canonical_key(head, rest.strip()) if colon and len(head) < 40 else ""
    return (key, rest.strip()) if key in keys.SINGLE_VALUED else ("", "")


def _canonical_value(key: str, proposal: Proposal) -> str:
    found = keys.topic_value(key, proposal.value) or keys.topic_value(key, proposal.content)
    return found or proposal.value


def _speaks_of_project(content: str) -> bool:
    return (
        re.search(
            r"\b(?:this|our|the) (?:project|repo(?:sitory)?|codebase)\b|(?:这个|本|该|我们的?)(?:项目|仓库|代码库)",
            content,
            re.IGNORECASE,
        )
        is not None
    )


def signature(text: str, value: str = "") -> tuple[frozenset[str], bool]:
    """The words of a memory that say something, and whether it denies: `I use Python` and `language: Python`
    are both {python}.
    """
    plain = normalise(text)
    cjk_free = _FILLER_CJK_RE.sub(" ", plain) if not plain.isascii() else plain
    found = frozenset(_stem(word) for word in words(cjk_free) if word not in _FILLER) or frozenset(words(plain))
    return found, _NEGATION_RE.search(text) is not None


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 4 and word.isascii() and word.endswith("s") and not word.endswith("ss") else word


def is_near(a: str, b: str) -> bool:
    """Whether two memories say the same: equal words, or one's words within the other's and mostly all of them;
    same polarity.
    """
    return _relation_of(signature(a), signature(b)) in ("equal", "within", "extends")


def _relation_of(new: tuple[frozenset[str], bool], old: tuple[frozenset[str], bool]) -> str:
    (x, x_denies), (y, y_denies) = new, old
    if not x or not y or x_denies != y_denies:
        return "apart"
    if x == y:
        return "equal"
    if len(x & y) / len(x | y) < NEAR or any(c.isdigit() for word in x ^ y for c in word):
        return "apart"
    return "within" if x < y else "extends" if x > y else "apart"


def decide(proposal: Proposal, existing: Iterable[MemoryEntry], project: str = "") -> Merge:
    """What to do with `proposal`, given the tenant's current entries that may concern it (same key, same hash,
    similar text).
    """
    key, value = entry_key(proposal, project)
    digest = normalised_hash(proposal.content)
    mine = signature(proposal.content)
    replaced: list[MemoryEntry] = []
    for entry in existing:
        if entry.valid_to is not None or entry.type not in (EntryType.FACT, EntryType.PREFERENCE):
            continue
        if normalised_hash(entry.content) == digest:
            return Merge("same", (entry,))
        if key and entry.key == key:
            if _same_value(entry.value, value):
                return Merge("same", (entry,))
            replaced.append(entry)
        elif proposal.replaces and _same_value(entry.value, proposal.replaces):
            replaced.append(entry)
        elif not (key and entry.key and _owner(key) != _owner(entry.key)):
            near = _relation_of(mine, signature(entry.content))
            if near in ("equal", "within"):
                return Merge("same", (entry,))
            if near == "extends":
                replaced.append(entry)
    return Merge("supersedes", tuple(replaced)) if replaced else NEW


def _owner(key: str) -> str:
    return key.partition("@")[2]


def _same_value(a: str, b: str) -> bool:
    return bool(a) and (normalise(a) == normalise(b) or keys.slug(a) == keys.slug(b))
