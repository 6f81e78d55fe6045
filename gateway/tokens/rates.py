"""The fitted numbers behind `fast.text_tokens`: what each pattern of a text adds to its token count.

They come from a ridge regression of tiktoken's counts (o200k_base and cl100k_base, 2026-11) on how often each pattern
occurs, over 4,300 windows of 3,000 characters: English chat and manuals, source code in a dozen languages, JSON, CI and
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
    Rate(b"a", 0.418, 0.433),
    Rate(b"0", 1.392, 1.373),
    Rate(b".", 0.510, 0.459),
    Rate(b"A", 0.253, 0.226),
    Rate(b"000", -1.659, -1.563),
    Rate(b".\n", -0.594, -0.623),
    Rate(b"aaa", -0.225, -0.265),
    Rate(b" 0", 1.376, 1.331),
    Rate(b"\nA", 0.757, 0.903),
    Rate(b"00", -1.229, -1.208),
    Rate(b"\t", 0.379, 0.385),
    Rate(b" .", 0.329, 0.365),
    Rate(b"aaaa", -0.526, -0.464),
    Rate(b"...", -0.593, -0.516),
    Rate(b"0000", 0.705, 0.588),
    Rate(b"\n", 1.194, 1.182),
    Rate(b"\n\n", -2.205, -2.217),
    Rate(b"aaaaaaaaaaa", 0.699, 1.236),
    Rate(b"aaaaa", -0.475, -0.503),
    Rate(b"aAa", -2.911, -3.437),
    Rate(b"aA", 2.254, 2.630),
    Rate(b".A", 0.345, 0.417),
    Rate(b"........", -0.945, -0.470),
    Rate(b"  ", 0.372, 0.380),
    Rate(b"        ", -1.399, -1.407),
)
"""Over the class string of any text: how long words, numbers, runs of signs and of white space are."""

LETTERS: tuple[Rate, ...] = (
    Rate(b"k", 0.523, 0.909),
    Rate(b"i ", 1.679, 2.756),
    Rate(b"on", -0.668, -0.990),
    Rate(b"====", -0.987, -1.299),
    Rate(b"v", 0.469, 0.588),
    Rate(b"er", -0.439, -0.303),
    Rate(b"o ", -0.491, -0.675),
    Rate(b"(", 0.598, 0.475),
    Rate(b" a", 0.613, 0.255),
    Rate(b"us", -0.989, -1.035),
    Rate(b"()", -1.507, -1.314),
    Rate(b"----", -0.134, -0.399),
)
"""Over the bytes of any text: letters and endings that tell English from other languages, code and noise; rules."""

ACCENTS: tuple[Rate, ...] = (
    Rate(b"\xc3", 0.784, 1.587),
    Rate(b"\xc4", 0.772, 1.553),
    Rate(b"\xc5", 1.522, 1.857),
    Rate(b"\xc8", 0.636, 0.058),
    Rate(b"\xe1\xba", -1.365, -1.207),
    Rate(b"\xe1\xbb", 0.154, 1.295),
    Rate(b"\xc2", 1.005, 0.796),
    Rate(b"\xe2\x80", 0.735, 1.272),
    Rate(b"\xe2", -0.472, -0.323),
)
"""Over the UTF-8 bytes of text that is not ASCII: accented Latin letters, typographic signs, box drawing."""

SCRIPTS: tuple[Script, ...] = (
    Script(  # greek
        b"g",
        (
            Rate(b"g", 0.277, 0.567),
            Rate(b" g", -0.603, 0.472),
            Rate(b"gggg", 1.271, 2.394),
        ),
        (),
    ),
    Script(  # cyrillic
        b"c",
        (
            Rate(b"c", 0.358, 0.473),
            Rate(b" c", -0.360, -0.299),
            Rate(b"cccc", -0.136, 0.262),
        ),
        (
            Rate(b"\xd1\x96", 1.376, 2.481),  # і
            Rate(b"\xd1\x98", 3.755, 5.720),  # ј
            Rate(b"\xd2", 0.208, 3.189),
            Rate(b"\xd3", 3.564, 4.568),
        ),
    ),
    Script(  # hebrew
        b"h",
        (
            Rate(b"h", 0.441, 1.027),
            Rate(b" h", 0.001, 0.795),
        ),
        (),
    ),
    Script(  # arabic
        b"r",
        (
            Rate(b"r", 0.164, 0.378),
            Rate(b" r", -0.090, 0.465),
            Rate(b"rrrr", 1.155, 2.235),
        ),
        (
            Rate(b"\xda", -0.899, 0.144),
            Rate(b"\xdb", 1.034, 0.880),
        ),
    ),
    Script(  # indic
        b"i",
        (
            Rate(b"i", 0.279, 0.639),
            Rate(b"iiii", 1.142, 5.645),
        ),
        (
            Rate(b"\xe0\xa4", -0.120, 0.207),
            Rate(b"\xe0\xa5", 0.196, -2.359),
            Rate(b"\xe0\xb8", -0.086, 0.046),
            Rate(b"\xe0\xb9", -0.123, -4.299),
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
            Rate(b"k", 0.189, 0.285),
            Rate(b"kkkk", -0.857, -1.696),
        ),
        (
            Rate(b"\xe3\x80", 1.097, 2.294),
            Rate(b"\xe3\x81", 0.310, 0.410),
            Rate(b"\xe3\x83", 0.715, 1.047),
            Rate(b"\xe3\x82", 0.888, 1.445),
        ),
    ),
    Script(  # han
        b"H",
        (
            Rate(b"H", 0.453, 0.640),
            Rate(b"HH", 0.321, 0.601),
            Rate(b"HHHH", -2.311, -2.068),
        ),
        (
            Rate(b"\xe4", 0.529, 0.717),
            Rate(b"\xe7", 1.145, 0.988),
            Rate(b"\xe9", 1.776, 2.028),
            Rate(b"\xe5\x9c\xa8", -9.181, -20.604),  # 在
            Rate(b"\xe5", 0.902, 1.249),
            Rate(b"\xe4\xb9\x8b", 6.855, 3.144),  # 之
            Rate(b"\xe6\x97\xa5", -4.568, -4.571),  # 日
        ),
    ),
    Script(  # wide
        b"f",
        (Rate(b"f", 0.705, 0.875),),
        (
            Rate(b"\xef\xbc\x88", 14.524, 5.810),  # （
        ),
    ),
    Script(  # emoji
        b"e",
        (
            Rate(b"e", 1.155, 1.509),
            Rate(b"ee", 2.764, 3.726),
        ),
        (),
    ),
    Script(  # armenian
        b"m",
        (Rate(b"m", 0.403, 2.289),),
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
RARE_RATE = Rate(RARE_LEAD, 0.287, 1.629)
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
