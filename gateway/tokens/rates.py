"""The fitted numbers behind `fast.text_tokens`: what each pattern of a text adds to its token count.

They come from a ridge regression of tiktoken's counts (o200k_base and cl100k_base, 2026-11) on how often each pattern
occurs, over 4,200 windows of 3,000 characters: English chat and manuals, source code in a dozen languages, JSON, CI and
build logs, listings, markup, numbers, hashes, base64; manuals, news, laws and interface text in 90 languages. The
patterns themselves were chosen by forward selection on held-out documents. `docs/counting.md` shows how close it lands
on text that the fit has not seen. One number means nothing alone: patterns overlap (`aaa` also counts in `aaaa`).

A class string has one letter per code point: `a` lower case or any accented Latin letter, `A` upper case, `0` digit,
space, line end, tab, `.` any other sign, and one letter per script beyond Latin. A pattern's count is that of
`bytes.count`: occurrences that don't overlap, so that `aaaa` gives the whole fours in each word.
"""

from __future__ import annotations

from typing import NamedTuple


class Rate(NamedTuple):
    """Tokens that one occurrence of `pattern` adds, by encoding."""

    pattern: bytes
    o200k: float
    cl100k: float


class Script(NamedTuple):
    """Rates of one script: `shapes` over the class string, `codes` over the UTF-8 bytes."""

    marker: bytes
    shapes: tuple[Rate, ...]
    codes: tuple[Rate, ...]


SHAPES: tuple[Rate, ...] = (
    Rate(b"a", 0.413, 0.430),
    Rate(b"0", 1.399, 1.377),
    Rate(b".", 0.526, 0.479),
    Rate(b"A", 0.259, 0.232),
    Rate(b"000", -1.701, -1.606),
    Rate(b".\n", -0.646, -0.698),
    Rate(b"aaa", -0.198, -0.237),
    Rate(b" 0", 1.643, 1.596),
    Rate(b"\nA", 0.799, 0.970),
    Rate(b"00", -1.279, -1.246),
    Rate(b"\t", 0.355, 0.375),
    Rate(b" .", 0.311, 0.339),
    Rate(b"aaaa", -0.536, -0.486),
    Rate(b"\n ", 0.645, 0.737),
    Rate(b"...", -0.649, -0.583),
    Rate(b"0000", 0.888, 0.763),
    Rate(b"\n", 1.203, 1.170),
    Rate(b"\n\n", -2.235, -2.205),
    Rate(b"aaaaaaaaaaa", 0.775, 1.322),
    Rate(b"aaaaa", -0.483, -0.516),
    Rate(b"aAa", -2.822, -3.369),
    Rate(b"aA", 2.212, 2.594),
    Rate(b".A", 0.296, 0.369),
    Rate(b"........", -0.885, -0.379),
)
"""Over the class string of any text: how long words, numbers, runs of signs and of white space are."""

LETTERS: tuple[Rate, ...] = (
    Rate(b"k", 0.498, 0.886),
    Rate(b"i ", 1.813, 2.921),
    Rate(b"on", -0.699, -1.022),
    Rate(b"====", -0.960, -1.256),
    Rate(b"v", 0.533, 0.645),
    Rate(b"er", -0.510, -0.377),
    Rate(b"o ", -0.511, -0.702),
    Rate(b"(", 0.339, 0.236),
    Rate(b" a", 0.646, 0.287),
    Rate(b"us", -1.141, -1.194),
    Rate(b"----", 0.001, -0.264),
)
"""Over the bytes of any text: letters and endings that tell English from other languages, code and noise; rules."""

ACCENTS: tuple[Rate, ...] = (
    Rate(b"\xc3", 0.779, 1.584),
    Rate(b"\xc4", 0.762, 1.546),
    Rate(b"\xc5", 1.524, 1.861),
    Rate(b"\xc8", 0.477, -0.129),
    Rate(b"\xe1\xba", -1.381, -1.237),
    Rate(b"\xe1\xbb", 0.127, 1.259),
    Rate(b"\xc2", 0.943, 0.728),
    Rate(b"\xe2\x80", 1.019, 1.571),
    Rate(b"\xe2", -0.487, -0.346),
)
"""Over the UTF-8 bytes of text that is not ASCII: accented Latin letters, typographic signs, box drawing."""

SCRIPTS: tuple[Script, ...] = (
    Script(  # greek
        b"g",
        (
            Rate(b"g", 0.281, 0.571),
            Rate(b" g", -0.606, 0.470),
            Rate(b"gggg", 1.259, 2.388),
        ),
        (),
    ),
    Script(  # cyrillic
        b"c",
        (
            Rate(b"c", 0.361, 0.481),
            Rate(b" c", -0.344, -0.296),
            Rate(b"cccc", -0.164, 0.228),
        ),
        (
            Rate(b"\xd1\x96", 1.435, 2.539),  # і
            Rate(b"\xd1\x98", 3.856, 5.831),  # ј
            Rate(b"\xd2", 0.206, 3.194),
            Rate(b"\xd3", 3.594, 4.604),
        ),
    ),
    Script(  # hebrew
        b"h",
        (
            Rate(b"h", 0.431, 1.019),
            Rate(b" h", 0.093, 0.881),
        ),
        (),
    ),
    Script(  # arabic
        b"r",
        (
            Rate(b"r", 0.161, 0.376),
            Rate(b" r", -0.041, 0.511),
            Rate(b"rrrr", 1.151, 2.231),
        ),
        (
            Rate(b"\xda", -0.915, 0.122),
            Rate(b"\xdb", 1.039, 0.886),
        ),
    ),
    Script(  # indic
        b"i",
        (
            Rate(b"i", 0.283, 0.649),
            Rate(b"iiii", 1.122, 5.599),
        ),
        (
            Rate(b"\xe0\xa4", -0.128, 0.200),
            Rate(b"\xe0\xa5", 0.232, -2.332),
            Rate(b"\xe0\xb8", -0.082, 0.055),
            Rate(b"\xe0\xb9", -0.125, -4.319),
        ),
    ),
    Script(  # hangul
        b"K",
        (
            Rate(b"K", 0.706, 0.905),
            Rate(b" K", 0.782, 1.310),
            Rate(b"KKK", 0.494, 1.410),
            Rate(b"K K", -0.928, -0.944),
        ),
        (
            Rate(b"\xeb\x8b\x88\xeb\x8b\xa4", -4.317, -7.057),  # 니다
        ),
    ),
    Script(  # kana
        b"k",
        (
            Rate(b"k", 0.188, 0.284),
            Rate(b"kkkk", -0.812, -1.648),
        ),
        (
            Rate(b"\xe3\x80", 1.063, 2.239),
            Rate(b"\xe3\x81", 0.299, 0.395),
            Rate(b"\xe3\x83", 0.720, 1.062),
            Rate(b"\xe3\x82", 0.880, 1.438),
        ),
    ),
    Script(  # han
        b"H",
        (
            Rate(b"H", 0.457, 0.651),
            Rate(b"HH", 0.327, 0.608),
            Rate(b"HHHH", -2.317, -2.096),
        ),
        (
            Rate(b"\xe4", 0.516, 0.707),
            Rate(b"\xe7", 1.181, 1.028),
            Rate(b"\xe9", 1.796, 2.041),
            Rate(b"\xe5\x9c\xa8", -9.410, -20.930),  # 在
            Rate(b"\xe5", 0.884, 1.223),
            Rate(b"\xe6\x97\xa5", -4.709, -4.780),  # 日
            Rate(b"\xe4\xb9\x8b", 6.682, 2.987),  # 之
        ),
    ),
    Script(  # wide
        b"f",
        (Rate(b"f", 0.697, 0.864),),
        (
            Rate(b"\xef\xbc\x88", 15.198, 6.767),  # （
        ),
    ),
    Script(  # emoji
        b"e",
        (
            Rate(b"e", 1.170, 1.531),
            Rate(b"ee", 2.741, 3.678),
        ),
        (),
    ),
    Script(  # armenian
        b"m",
        (Rate(b"m", 0.407, 2.294),),
        (),
    ),
    Script(  # other
        b"o",
        (Rate(b"o", 2.000, 2.000),),
        (),
    ),
)
"""Scripts other than Latin, looked at only where the class string holds their letter."""

VIETNAMESE = (b"\xe1\xba", b"\xe1\xbb")
"""UTF-8 beginnings of the Vietnamese letters, which share their lead byte with the scripts below."""

RARE_LEAD = b"\xe1"
RARE_RATE = Rate(RARE_LEAD, 0.288, 1.631)
"""Georgian, Khmer, Burmese, Mongolian and others that share this lead byte, on top of their rate as letters."""


_LEADS: tuple[tuple[int, int, str], ...] = (
    (0x80, 0xC1, "."),
    (0xC2, 0xC2, "."),  # Latin-1 signs
    (0xC3, 0xCD, "a"),  # accented Latin, IPA
    (0xCE, 0xCF, "g"),
    (0xD0, 0xD3, "c"),
    (0xD4, 0xD5, "m"),
    (0xD6, 0xD7, "h"),
    (0xD8, 0xDB, "r"),
    (0xDC, 0xDF, "o"),  # Syriac, Thaana, NKo
    (0xE0, 0xE0, "i"),  # Devanagari to Tibetan, Thai, Lao
    (0xE1, 0xE1, "a"),  # Vietnamese, mostly
    (0xE2, 0xE2, "."),
    (0xE3, 0xE3, "k"),
    (0xE4, 0xE9, "H"),
    (0xEA, 0xED, "K"),
    (0xEE, 0xEE, "."),
    (0xEF, 0xEF, "f"),
    (0xF0, 0xFF, "e"),
)

CONTINUATION = bytes(range(0x80, 0xC0))
"""UTF-8 continuation bytes, deleted so that a class string has one letter per code point."""


def _class_of(byte: int) -> str:
    char = chr(byte)
    if byte >= 0x80:
        return next(letter for low, high, letter in _LEADS if low <= byte <= high)
    if char.islower():
        return "a"
    if char.isupper():
        return "A"
    if char.isdigit():
        return "0"
    return {" ": " ", "\n": "\n", "\r": "\n", "\t": "\t"}.get(char, ".")


CLASSES = "".join(_class_of(byte) for byte in range(256)).encode("ascii")
"""Translation table from a UTF-8 byte to its class letter."""
