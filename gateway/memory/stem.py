"""A light English stemmer: enough to make `paintings`, `painted` and `painting` one term, too little to merge unrelated
words."""

from __future__ import annotations

import re
from functools import lru_cache

from gateway.memory.stopwords import irregular_forms

_VOWEL = re.compile(r"[aeiouy]")
_DOUBLED = re.compile(r"([bdfgmnprt])\1$")
MIN_STEM = 3
"""Letters a suffix must leave."""


def _plural(word: str) -> str:
    if word.endswith(("ss", "us", "is")) or not word.endswith("s"):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y" if len(word) > 4 else word[:-1]
    if word.endswith(("xes", "zes", "ches", "shes", "sses")):
        return word[:-2]
    return word[:-1]


def _verbal(word: str) -> str:
    for suffix in ("ing", "ed"):
        base = word.removesuffix(suffix)
        if base != word and len(base) >= MIN_STEM - (suffix == "ing") and _VOWEL.search(base):
            if base.endswith("i"):
                base = base[:-1] + "y"
            return base[:-1] if _DOUBLED.search(base) else base
    return word


def _derived(word: str) -> str:
    for suffix, instead in (
        ("fulness", ""), ("ousness", "ous"), ("iveness", "ive"), ("ization", "ize"), ("ational", "ate"),
        ("ation", "ate"),
        ("fully", ""), ("ness", ""), ("ment", ""), ("ful", ""), ("ly", ""), ("ion", ""),
    ):  # fmt: skip
        if word.endswith(suffix) and len(word) - len(suffix) >= MIN_STEM + 1:
            return word[: -len(suffix)] + instead
    return word


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The term for a lower-case ASCII word; words of three letters or fewer stay as they are."""
    base = irregular_forms().get(word)
    if base is not None:
        word = base
    if len(word) <= MIN_STEM:
        return word
    word = _derived(_verbal(_plural(word)))
    if word.endswith("y") and len(word) > MIN_STEM and word[-2] not in "aeiou":
        return word[:-1] + "i"
    if word.endswith("e") and len(word) > MIN_STEM:
        return word[:-1]
    return word
