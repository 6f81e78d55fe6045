"""Text to search terms, the same for what is stored and for what is asked, in any language.

Chinese by jieba's words, plus 2- and 3-grams where it splits wrongly; kana, hangul and scripts written without spaces
by n-grams; identifiers whole and split at `_ . /` and camelCase; English lightly stemmed; accents and Serbian/Russian
letters folded, so that `Čačak`, `cacak` and `Чачак` are one; calendar dates of any spelling also as one canonical term.
The dictionary (0.1 s with rjieba, 1 s with jieba) loads on the first Chinese text, or by `warm()` in the background.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache

from gateway.memory.stem import stem
from gateway.memory.stopwords import stop_words, weak_words

MAX_CHARS = 20_000
"""A memory is short; past this only the head is read, so that a pasted megabyte costs milliseconds."""
MAX_TERM = 64
"""Longer runs (base64, hashes of hashes) can't be what someone types to find them."""

WORD_WEIGHT = 1.0
GRAM_WEIGHT = 0.6
"""An n-gram is evidence beside the words, not in place of them: most grams that cross a word's border mean nothing."""
UNKNOWN_WEIGHT = 0.9
"""Two lone characters side by side: likely a name or a new word."""
CHARACTER_WEIGHT = 0.3
"""A character of a longer word: 茶 finds 龙井茶, and 猫 what the dictionary took for 猫叫."""
SINGLE_WEIGHT = 0.5
"""A Chinese word of one character: often a noun that matters (猫), more often noise."""
WEAK_STRENGTH = 0.3
"""What a word is worth that half of all requests contain."""
PART_WEIGHT = 0.7
"""A part of an identifier beside the whole."""

_HAN = "\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_HIRAGANA = "\u3040-\u309f"
_KATAKANA = "\u30a0-\u30ff\u31f0-\u31ff"
_HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
_UNSPACED = "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Thai, Lao, Burmese, Khmer: no spaces between words."""
_MARKS = "\u0900-\u0963\u0966-\u0dff\u0591-\u05c7\u0610-\u061a\u064b-\u065f"
"""Vowel signs that Python's \\w leaves out, and the letters around them."""
_LETTER = rf"(?:(?![{_HAN}{_HIRAGANA}{_KATAKANA}{_HANGUL}{_UNSPACED}])[\w{_MARKS}])"
_RUN = re.compile(
    rf"(?P<han>[{_HAN}]+)|(?P<gram>[{_HIRAGANA}]+|[{_KATAKANA}]+|[{_HANGUL}]+|[{_UNSPACED}]+)"
    rf"|(?P<word>\.?{_LETTER}+(?:[.\-_/\\:@'’+#]+{_LETTER}+)*(?:\+\+|\#(?!\w))?)"
)
_SPLIT = re.compile(r"[.\-_/\\:@'’+#]+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+|\d+|[^A-Za-z\d]+")
_HAS_CAMEL = re.compile(r"[a-z][A-Z]|[A-Z]{2,}[a-z]{2}|[A-Za-z]\d|\d[A-Za-z]")
_ACCENT = re.compile("[\u0300-\u036f]+")
_CYRILLIC = dict(
    zip(
        map(ord, "абвгдђежзијклљмнњопрстћуфхцчџшйщъыьэюяіїєґў"),
        (
            "a",
            "b",
            "v",
            "g",
            "d",
            "dj",
            "e",
            "z",
            "z",
            "i",
            "j",
            "k",
            "l",
            "lj",
            "m",
            "n",
            "nj",
            "o",
            "p",
            "r",
            "s",
            "t",
            "c",
            "u",
            "f",
            "h",
            "c",
            "c",
            "dz",
            "s",
            "i",
            "sc",
            "",
            "y",
            "",
            "e",
            "yu",
            "ya",
            "i",
            "i",
            "e",
            "g",
            "u",
        ),
        strict=True,
    )
)
_LATIN = {
    ord("đ"): "dj",
    ord("ø"): "o",
    ord("ł"): "l",
    ord("æ"): "ae",
    ord("œ"): "oe",
    ord("ı"): "i",
    ord("þ"): "th",
    ord("ð"): "d",
}
_FOLD = _CYRILLIC | _LATIN

_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_MONTH_OF = (
    {name: i for i, name in enumerate(_MONTHS, 1)} | {name[:3]: i for i, name in enumerate(_MONTHS, 1)} | {"sept": 9}
)
_MONTH = r"(?P<month>" + "|".join(sorted(_MONTH_OF, key=len, reverse=True)) + r")\b\.?"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?\b"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DATES = (
    re.compile(rf"\b{_DAY},?\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR}\b)?", re.I),
    re.compile(rf"\b{_MONTH}\s+{_DAY}(?:,?\s+{_YEAR}\b)?", re.I),
    re.compile(rf"\b{_MONTH}(?P<day>),?\s+{_YEAR}\b", re.I),
    re.compile(rf"(?<!\d){_YEAR}[-/.](?P<month>[01]?\d)[-/.](?P<day>[0-3]?\d)(?!\d)"),
    re.compile(rf"(?:{_YEAR}\s*年\s*)?(?<!\d)(?P<month>[01]?\d)\s*月(?:\s*(?P<day>[0-3]?\d)\s*[日号號])?"),
)
_LONE_MONTHS = {name: f"@{i}" for i, name in enumerate(_MONTHS, 1) if name not in ("may", "march")}
"""Months by name alone; `may` and `march` are months only after a preposition."""
_AFTER_PREPOSITION = re.compile(
    r"\b(?:in|of|since|until|by|last|next|this|during|early|late|mid)[ -](?P<month>May|March)\b"
)
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")


def date_terms(text: str) -> list[str]:
    """Canonical terms of the calendar dates in `text`: `@5-2` for the second of May, `@5` for its month, `@2023-5` with
    a year."""
    found = [f"@{_MONTH_OF[hit['month'].lower()]}" for hit in _AFTER_PREPOSITION.finditer(text)]
    if not any(map(str.isdigit, text)):
        return found
    for pattern in _DATES:
        for hit in pattern.finditer(text):
            name = hit["month"].lower()
            month = int(name) if name.isdigit() else _MONTH_OF[name]
            day = int(hit["day"] or 0)
            if not 1 <= month <= 12 or day > 31:
                continue
            found.append(f"@{month}")
            if day:
                found.append(f"@{month}-{day}")
            if hit["year"]:
                found.append(f"@{hit['year']}-{month}")
    return found


def fold(word: str) -> str:
    """Lower case, without accents, Cyrillic in Latin letters. Kana and hangul keep their marks."""
    if word.isascii():
        return word.lower()
    decomposed = unicodedata.normalize("NFD", word.casefold().translate(_FOLD))
    return unicodedata.normalize("NFC", _ACCENT.sub("", decomposed)).translate(_FOLD)


@cache
def _segmenter() -> Callable[[str], list[str]]:
    """Cuts a run of Han characters into words; rjieba where a wheel fits, else jieba: the same dictionary and
    algorithm."""
    try:
        import rjieba
    except ImportError:
        return jieba_segmenter()
    return lambda text: list(rjieba.cut(text, False))


def jieba_segmenter() -> Callable[[str], list[str]]:
    """The pure Python one."""
    import logging
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # jieba's own source has invalid escapes and uses pkg_resources
        import jieba
    jieba.setLogLevel(logging.WARNING)  # it greets on stderr while it loads
    return lambda text: list(jieba.cut(text, HMM=False))


def warm() -> None:
    """Load the dictionary now (call it in a background thread): about 0.1 s and 20 MB with rjieba, 1 s and 62 MB with
    jieba."""
    _segmenter()("预热词典")


def _grams(run: str, sizes: tuple[int, ...]) -> Iterator[str]:
    for size in sizes:
        for i in range(len(run) - size + 1):
            yield run[i : i + size]


def _han(run: str) -> Iterator[tuple[str, float]]:
    """Words, lone characters, 2-grams inside and across words, and 3-grams where the dictionary left lone characters.
    A name that the dictionary lacks falls into lone characters on both sides of a search; its grams put it together.
    """
    stops = stop_words()
    kinds = ""  # of each character: s in a stop word, a alone, w in a longer word
    emitted: set[str] = set()
    for word in _segmenter()(run) if len(run) > 1 else [run]:
        kinds += ("s" if word in stops else "a" if len(word) == 1 else "w") * len(word)
        if word not in stops:
            emitted.add(word)
            yield word, WORD_WEIGHT if len(word) > 1 else SINGLE_WEIGHT
    for char, kind in zip(run, kinds, strict=True):
        if kind == "w" and char not in stops:
            yield char, CHARACTER_WEIGHT
    for i in range(len(run) - 1):
        gram, kind = run[i : i + 2], kinds[i : i + 2]
        if "s" not in kind and gram not in emitted and gram not in stops:
            yield gram, UNKNOWN_WEIGHT if kind == "aa" else GRAM_WEIGHT
        kind = kinds[i : i + 3]
        if len(kind) == 3 and "s" not in kind and "a" in kind:
            yield run[i : i + 3], GRAM_WEIGHT


def _gram_run(run: str) -> Iterator[tuple[str, float]]:
    """Kana, hangul, Thai …: the run itself where it is short enough to be a word, and its grams."""
    stops = stop_words()
    if run in stops:
        return
    if 1 < len(run) <= 8:
        yield run, WORD_WEIGHT
    for gram in _grams(run, (2, 3)):
        if gram != run and gram not in stops:
            yield gram, GRAM_WEIGHT
    if len(run) == 1:
        yield run, SINGLE_WEIGHT


def _plain(word: str) -> str | None:
    """The term of one plain word, or None for a stop word."""
    folded = fold(word)
    if folded in stop_words() or len(folded) > MAX_TERM or not folded:
        return None
    if folded in _LONE_MONTHS:
        return _LONE_MONTHS[folded]
    if folded[0].isdigit():
        ordinal = _ORDINAL.fullmatch(folded)
        number = ordinal[1] if ordinal else folded
        return (number.lstrip("0") or "0") if number.isdecimal() else number
    return stem(folded) if folded.isascii() and folded.isalpha() else folded


@lru_cache(maxsize=16_384)
def _word(chunk: str) -> tuple[tuple[str, float], ...]:
    """`_split_word`, remembered: a language's common words are most of any text."""
    return tuple(_split_word(chunk))


def _split_word(chunk: str) -> Iterator[tuple[str, float]]:
    """One space-separated chunk: a plain word, or an identifier with its parts."""
    if chunk.isalnum() and (
        (chunk.islower() and chunk.isalpha()) or not _HAS_CAMEL.search(chunk) or _ORDINAL.fullmatch(chunk)
    ):
        term = _plain(chunk)
        if term:
            yield term, WORD_WEIGHT
        return
    whole = fold(chunk).replace("’", "'")
    contraction = "'" in whole
    parts = [part for part in _SPLIT.split(chunk) if part]
    pieces = [piece for part in parts for piece in (_CAMEL.findall(part) if _HAS_CAMEL.search(part) else [part])]
    if not pieces:
        return
    seen: set[str] = set()
    weight = WORD_WEIGHT
    if not contraction and len(whole) <= MAX_TERM and (len(pieces) > 1 or whole != fold(pieces[0])):
        yield whole, WORD_WEIGHT
        seen.add(whole)
        weight = PART_WEIGHT
    for piece in pieces if len(parts) == 1 else [*parts, *pieces]:
        term = _plain(piece)
        if term and term not in seen:
            seen.add(term)
            yield term, weight


def _scan(text: str) -> Iterator[tuple[str, float]]:
    text = text[:MAX_CHARS]
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    dates = dict.fromkeys(date_terms(text))
    for hit in _RUN.finditer(text):
        kind, run = hit.lastgroup, hit.group()
        for term, weight in _word(run) if kind == "word" else _han(run) if kind == "han" else _gram_run(run):
            dates.pop(term, None)
            yield term, weight
    for date in dates:
        yield date, WORD_WEIGHT


def weighted_terms(text: str) -> dict[str, float]:
    """Term -> summed weight of its occurrences, for indexing."""
    summed: dict[str, float] = {}
    for term, weight in _scan(text):
        summed[term] = summed.get(term, 0.0) + weight
    return summed


@lru_cache(maxsize=512)
def query_terms(text: str) -> Mapping[str, float]:
    """Term -> weight, each term counted once however often the question has it. Shared between callers: read only."""
    best: dict[str, float] = {}
    for term, weight in _scan(text):
        best[term] = max(best.get(term, 0.0), weight)
    return best


def terms(text: str) -> list[str]:
    """The terms in order of appearance, with repeats; dates last."""
    return [term for term, _ in _scan(text)]


@cache
def _weak_terms() -> frozenset[str]:
    return frozenset(stem(word) if word.isascii() else word for word in weak_words())


def strength(term: str) -> float:
    """How much a term says about whether a memory bears on a request: 1.0, less for a weak word or a bare number."""
    return WEAK_STRENGTH if term in _weak_terms() or term.isdigit() else 1.0
