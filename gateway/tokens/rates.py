"""The fitted numbers behind `fast.text_tokens`: what each pattern of a text adds to its token count.

They come from a ridge regression of tiktoken's counts (o200k_base and cl100k_base, 2026-11) on how often each pattern
occurs, over 3,700 windows of 3,000 characters: English chat and manuals, source code in a dozen languages, JSON, CI and
build logs, listings, markup, numbers, hashes, base64, and prose and interface text in 90 languages. The patterns
themselves were chosen by forward selection on held-out documents. `docs/counting.md` shows how close it lands on text
that the fit has not seen. One number means nothing alone: patterns overlap (`aaa` also counts in `aaaa`).

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
    Rate(b"a", 0.412, 0.430),
    Rate(b"0", 1.398, 1.376),
    Rate(b".", 0.525, 0.477),
    Rate(b"A", 0.259, 0.231),
    Rate(b"000", -1.703, -1.610),
    Rate(b".\n", -0.652, -0.706),
    Rate(b"aaa", -0.198, -0.236),
    Rate(b" 0", 1.642, 1.594),
    Rate(b"\nA", 0.791, 0.957),
    Rate(b"00", -1.274, -1.240),
    Rate(b"\t", 0.354, 0.373),
    Rate(b" .", 0.312, 0.342),
    Rate(b"aaaa", -0.536, -0.486),
    Rate(b"\n ", 0.639, 0.728),
    Rate(b"...", -0.646, -0.578),
    Rate(b"0000", 0.884, 0.756),
    Rate(b"\n", 1.213, 1.185),
    Rate(b"\n\n", -2.255, -2.236),
    Rate(b"aaaaaaaaaaa", 0.791, 1.337),
    Rate(b"aaaaa", -0.477, -0.505),
    Rate(b"aAa", -2.823, -3.371),
    Rate(b"aA", 2.215, 2.597),
    Rate(b".A", 0.299, 0.373),
    Rate(b"........", -0.888, -0.382),
)
"""Over the class string of any text: how long words, numbers, runs of signs and of white space are."""

LETTERS: tuple[Rate, ...] = (
    Rate(b"k", 0.500, 0.891),
    Rate(b"i ", 1.802, 2.899),
    Rate(b"on", -0.705, -1.031),
    Rate(b"====", -0.957, -1.253),
    Rate(b"v", 0.525, 0.632),
    Rate(b"er", -0.530, -0.408),
    Rate(b"o ", -0.518, -0.714),
    Rate(b"(", 0.342, 0.241),
    Rate(b" a", 0.673, 0.325),
    Rate(b"us", -1.155, -1.214),
    Rate(b"----", -0.001, -0.267),
)
"""Over the bytes of any text: letters and endings that tell English from other languages, code and noise; rules."""

ACCENTS: tuple[Rate, ...] = (
    Rate(b"\xc3", 0.774, 1.574),
    Rate(b"\xc4", 0.755, 1.532),
    Rate(b"\xc5", 1.521, 1.856),
    Rate(b"\xc8", 0.470, -0.135),
    Rate(b"\xe1\xba", -1.358, -1.198),
    Rate(b"\xe1\xbb", 0.123, 1.251),
    Rate(b"\xc2", 0.943, 0.730),
    Rate(b"\xe2\x80", 1.050, 1.641),
    Rate(b"\xe2", -0.488, -0.347),
)
"""Over the UTF-8 bytes of text that is not ASCII: accented Latin letters, typographic signs, box drawing."""

SCRIPTS: tuple[Script, ...] = (
    Script(  # greek
        b"g",
        (
            Rate(b"g", 0.392, 0.764),
            Rate(b" g", -0.852, 0.121),
            Rate(b"gggg", 0.840, 1.580),
        ),
        (),
    ),
    Script(  # cyrillic
        b"c",
        (
            Rate(b"c", 0.560, 0.705),
            Rate(b" c", -0.576, -0.564),
            Rate(b"cccc", -1.047, -0.769),
        ),
        (
            Rate(b"\xd1\x96", 1.266, 2.347),
            Rate(b"\xd1\x98", 3.564, 5.517),
            Rate(b"\xd2", -0.053, 2.901),
            Rate(b"\xd3", 3.339, 4.313),
        ),
    ),
    Script(  # hebrew
        b"h",
        (
            Rate(b"h", 0.460, 1.079),
            Rate(b" h", -0.083, 0.518),
        ),
        (),
    ),
    Script(  # arabic
        b"r",
        (
            Rate(b"r", 0.171, 0.421),
            Rate(b" r", -0.078, 0.408),
            Rate(b"rrrr", 1.128, 2.062),
        ),
        (
            Rate(b"\xda", -0.975, 0.095),
            Rate(b"\xdb", 1.059, 0.889),
        ),
    ),
    Script(  # indic
        b"i",
        (
            Rate(b"i", 0.317, 0.408),
            Rate(b"iiii", 0.939, 6.961),
        ),
        (
            Rate(b"\xe0\xa4", -0.168, 0.410),
            Rate(b"\xe0\xa5", 0.354, -3.004),
            Rate(b"\xe0\xb8", -0.111, 0.289),
            Rate(b"\xe0\xb9", 0.005, -5.460),
        ),
    ),
    Script(  # hangul
        b"K",
        (
            Rate(b"K", 0.550, 0.605),
            Rate(b" K", -0.072, 0.412),
            Rate(b"KKK", 0.877, 2.108),
        ),
        (),
    ),
    Script(  # kana
        b"k",
        (
            Rate(b"k", 0.450, 0.809),
            Rate(b"kkkk", 1.293, 0.885),
        ),
        (
            Rate(b"\xe3\x80", 0.058, 1.291),
            Rate(b"\xe3\x81", -0.149, -0.276),
            Rate(b"\xe3\x83", 0.127, 0.105),
        ),
    ),
    Script(  # han
        b"H",
        (
            Rate(b"H", 0.480, 0.590),
            Rate(b"HH", 0.658, 1.130),
            Rate(b"HHHH", -0.442, 0.310),
        ),
        (
            Rate(b"\xe4", -0.393, -0.201),
            Rate(b"\xe7", 0.523, -0.191),
            Rate(b"\xe9", 0.397, -0.036),
        ),
    ),
    Script(  # wide
        b"f",
        (Rate(b"f", 0.647, 0.803),),
        (),
    ),
    Script(  # emoji
        b"e",
        (
            Rate(b"e", 1.415, 1.835),
            Rate(b"ee", 2.004, 2.759),
        ),
        (),
    ),
    Script(  # armenian
        b"m",
        (Rate(b"m", 0.403, 2.288),),
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
RARE_RATE = Rate(RARE_LEAD, 0.287, 1.631)
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
