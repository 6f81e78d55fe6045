"""What an image costs: its size read from the first bytes of the file, then the rule of the provider that bills it.

Counting a data URL as text makes 3 MB of JPEG a million tokens; these rules make it what the provider charges, without
decoding the picture. Sources, as of 2026-11: OpenAI "Images and vision" (developers.openai.com/docs/guides/vision),
Anthropic "Vision" (platform.claude.com/docs/en/build-with-claude/vision), Google "Understand and count tokens" and
"Media resolution" (ai.google.dev/gemini-api/docs), Alibaba "Visual understanding" and qwen_vl_utils' `smart_resize`,
Mistral "Vision" (docs.mistral.ai), xAI "Image understanding" (docs.x.ai).
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from typing import NamedTuple

HEAD_BYTES = 4_096
"""Decoded first: enough for all formats but a JPEG whose metadata comes before its frame."""
JPEG_BYTES = 262_144
"""Decoded where the frame header was not among the first; embedded profiles and thumbnails are smaller than this."""

UNKNOWN_SIZE = (1_536, 1_024)
"""Taken for an image whose size can't be read (a remote URL): an ordinary screenshot, 6 tiles at OpenAI."""

Size = tuple[int, int]


def _decoded(data: bytes | str, limit: int) -> bytes:
    """The first `limit` bytes of a file given as bytes, as base64 or as a data URL."""
    if isinstance(data, bytes):
        return data[:limit]
    start = 0
    if data[:5].lower() == "data:":
        comma = data.find(",", 0, 1_024)
        if comma < 0 or ";base64" not in data[:comma].lower():
            return b""
        start = comma + 1
    text = "".join(data[start : start + limit * 4 // 3 + 4].split())
    text = text.replace("-", "+").replace("_", "/").rstrip("=")
    text = text[: len(text) - (len(text) % 4 == 1)]
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4))[:limit]
    except (binascii.Error, ValueError):
        return b""


def _png(head: bytes) -> Size | None:
    return struct.unpack(">II", head[16:24]) if len(head) >= 24 and head[12:16] == b"IHDR" else None


def _gif(head: bytes) -> Size | None:
    return struct.unpack("<HH", head[6:10]) if len(head) >= 10 else None


def _bmp(head: bytes) -> Size | None:
    if len(head) < 26:
        return None
    if struct.unpack("<I", head[14:18])[0] == 12:  # the OS/2 header of 12 bytes has 16-bit sizes
        width, height = struct.unpack("<HH", head[18:22])
    else:
        width, height = struct.unpack("<ii", head[18:26])
    return abs(width), abs(height)  # a negative height means top-down rows


def _webp(head: bytes) -> Size | None:
    if len(head) < 30 or head[8:12] != b"WEBP":
        return None
    kind = head[12:16]
    if kind == b"VP8X":
        return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    if kind == b"VP8L" and head[20] == 0x2F:
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1
    if kind == b"VP8 " and head[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack("<HH", head[26:30])
        return width & 0x3FFF, height & 0x3FFF
    return None


def _jpeg(head: bytes) -> Size | None:
    """The size in the start-of-frame segment; baseline, progressive, lossless and arithmetic coding alike."""
    at = 2
    while at + 9 <= len(head):
        if head[at] != 0xFF:
            at += 1
            continue
        marker = head[at + 1]
        if marker == 0xFF:  # fill byte
            at += 1
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:  # markers without a length
            at += 2
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", head[at + 5 : at + 9])
            return width, height
        else:
            at += 2 + int.from_bytes(head[at + 2 : at + 4], "big")
    return None


def image_size(data: bytes | str) -> Size | None:
    """Width and height in pixels from the header of a PNG, JPEG, GIF, WebP or BMP; None where it can't be read.

    `data` is the file's bytes, its base64, or a data URL; only its first kilobytes are decoded.
    """
    head = _decoded(data, HEAD_BYTES)
    size: Size | None = None
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        size = _png(head)
    elif head.startswith(b"\xff\xd8"):
        size = _jpeg(head) or _jpeg(_decoded(data, JPEG_BYTES))
    elif head[:6] in (b"GIF87a", b"GIF89a"):
        size = _gif(head)
    elif head.startswith(b"RIFF"):
        size = _webp(head)
    elif head.startswith(b"BM"):
        size = _bmp(head)
    return size if size is not None and min(size) > 0 else None


class Tiles(NamedTuple):
    """Base tokens, and tokens for each tile of 512 × 512 pixels."""

    base: int
    tile: int


class Patches(NamedTuple):
    """Tokens per patch of 32 × 32 pixels, the most patches, and the longest side in pixels (0: not limited)."""

    multiplier: float
    budget: int = 1_536
    side: int = 0


OPENAI_RULES: tuple[tuple[str, Tiles | Patches], ...] = (
    ("gpt-4o-mini", Tiles(2_833, 5_667)),
    ("gpt-4.1-mini", Patches(1.62)),
    ("gpt-4.1-nano", Patches(2.46)),
    ("gpt-5-mini", Patches(1.62)),
    ("gpt-5-nano", Patches(2.46)),
    ("o4-mini", Patches(1.72)),
    ("gpt-5-", Tiles(70, 140)),
    ("gpt-5.1", Tiles(70, 140)),
    ("gpt-5.2", Tiles(70, 140)),
    ("gpt-5.3", Tiles(70, 140)),
    ("gpt-5.", Patches(1.0, 2_500, 2_048)),
    ("gpt-5", Tiles(70, 140)),
    ("gpt-6", Patches(1.0, 2_500, 2_048)),
    ("o1", Tiles(75, 150)),
    ("o3", Tiles(75, 150)),
    ("computer-use", Tiles(65, 129)),
)
"""By the beginning of the model's name, first match wins; gpt-4o, gpt-4.1, gpt-4.5 and all others: `DEFAULT_TILES`."""
DEFAULT_TILES = Tiles(85, 170)
ORIGINAL_BUDGET = 10_000
ORIGINAL_SIDE = 6_000
"""Patches and pixels of `detail: original`, from gpt-5.4 on."""
LOW_SIDE = 512
"""`detail: low` shows the model a square of this many pixels."""


def _openai_tiles(width: int, height: int, low: bool, rule: Tiles) -> int:
    if low:
        return rule.base
    # Sides are rounded at each step, as the bills show: 2049 × 513 pays for eight tiles, 2050 × 513 for four.
    scale = min(1.0, 2_048 / max(width, height))
    width, height = max(1, round(width * scale)), max(1, round(height * scale))
    scale = min(1.0, 768 / min(width, height))
    width, height = round(width * scale), round(height * scale)
    return rule.base + rule.tile * math.ceil(width / 512) * math.ceil(height / 512)


def _openai_patches(width: float, height: float, detail: str, rule: Patches) -> int:
    budget, side = rule.budget, rule.side
    if detail == "original" and side:
        budget, side = ORIGINAL_BUDGET, ORIGINAL_SIDE
    limit = LOW_SIDE if detail == "low" else side
    scale = min(1.0, limit / max(width, height)) if limit else 1.0
    width, height = width * scale, height * scale
    across, down = width / 32, height / 32
    if math.ceil(across) * math.ceil(down) > budget:
        shrink = math.sqrt(32 * 32 * budget / (width * height))
        across, down = across * shrink, down * shrink
        # One side is made whole, so that the patches stay within the budget.
        fit = min(max(1, math.floor(across)) / across, max(1, math.floor(down)) / down)
        across, down = across * fit, down * fit
    patches = min(math.ceil(round(across, 6)) * math.ceil(round(down, 6)), budget)
    return math.ceil(patches * rule.multiplier)


def _openai(width: int, height: int, detail: str, model: str) -> int:
    rule = next((rule for prefix, rule in OPENAI_RULES if model.startswith(prefix)), DEFAULT_TILES)
    if isinstance(rule, Tiles):
        return _openai_tiles(width, height, detail == "low", rule)
    return _openai_patches(width, height, detail, rule)


CLAUDE_PIXELS_PER_TOKEN = 750
CLAUDE_STANDARD = (1_568, 1_600)
CLAUDE_HIGH = (2_576, 4_784)
"""Longest side in pixels and most tokens; the second from Claude 4.7 on."""
CLAUDE_OLD_MARKS = ("claude-2", "claude-3", "-4-0", "-4-1", "-4-5", "-4-6", "-4-2", "haiku")


def _anthropic(width: int, height: int, detail: str, model: str) -> int:
    old = not model.startswith("claude") or any(mark in model.replace(".", "-") for mark in CLAUDE_OLD_MARKS)
    side, most = CLAUDE_STANDARD if old else CLAUDE_HIGH
    scale = min(1.0, side / max(width, height))
    tokens = width * scale * height * scale / CLAUDE_PIXELS_PER_TOKEN
    return max(1, min(math.ceil(tokens), most))


GEMINI_TILE = 258
GEMINI_SMALL = 384
GEMINI_UNIT = (256, 768)
GEMINI_SIDE = 3_072
"""Larger images are scaled down to this before they are cut into tiles."""
GEMINI_3_TOKENS = 1_120
"""Gemini 3 has a fixed number by media resolution; this is the default for images."""


def _gemini(width: int, height: int, detail: str, model: str) -> int:
    if "gemini-3" in model:
        return 280 if detail == "low" else GEMINI_3_TOKENS
    if max(width, height) <= GEMINI_SMALL:
        return GEMINI_TILE
    scale = min(1.0, GEMINI_SIDE / max(width, height))
    width, height = max(1, round(width * scale)), max(1, round(height * scale))
    unit = min(max(math.floor(min(width, height) / 1.5), GEMINI_UNIT[0]), GEMINI_UNIT[1])
    return GEMINI_TILE * math.ceil(width / unit) * math.ceil(height / unit)


QWEN_MIN_TOKENS, QWEN_MAX_TOKENS = 4, 16_384
"""The library's defaults; a hosted endpoint may allow fewer, which calibration then learns."""


def _qwen(width: int, height: int, detail: str, model: str) -> int:
    unit = 32 if any(mark in model for mark in ("qwen3", "qwen-3", "qwen4")) else 28
    across, down = max(1, round(width / unit)), max(1, round(height / unit))
    tokens = across * down
    if tokens > QWEN_MAX_TOKENS:
        shrink = math.sqrt(width * height / (QWEN_MAX_TOKENS * unit * unit))
        tokens = math.floor(width / shrink / unit) * math.floor(height / shrink / unit)
    elif tokens < QWEN_MIN_TOKENS:
        tokens = QWEN_MIN_TOKENS
    return tokens + 2  # the marks before and after


def _mistral(width: int, height: int, detail: str, model: str) -> int:
    """Pixtral: patches of 16 pixels within 1,024; later models: merged patches of 28 within 1,540; a break per row."""
    unit, side = (16, 1_024) if "pixtral" in model else (28, 1_540)
    scale = min(1.0, side / max(width, height))
    across, down = math.ceil(width * scale / unit), math.ceil(height * scale / unit)
    return (across + 1) * down


def _xai(width: int, height: int, detail: str, model: str) -> int:
    """Tiles of 448 pixels at 256 tokens, one more for the whole, six at most."""
    tiles = 0 if detail == "low" else math.ceil(width / 448) * math.ceil(height / 448)
    return 256 * (min(tiles, 6) + 1)


_FAMILIES = {
    "anthropic": _anthropic,
    "gemini": _gemini,
    "qwen": _qwen,
    "zhipu": _qwen,
    "moonshot": _qwen,
    "mistral": _mistral,
    "xai": _xai,
}


def image_tokens(width: int, height: int, detail: str | None = None, family: str = "openai", model: str = "") -> int:
    """Tokens of an image of `width` × `height` pixels under the provider's rule.

    `detail` is OpenAI's (`low`, `high`, `original`; `auto` and None count as `high`); `family` as `media.family_of`
    gives it, an unknown one by OpenAI's rule; `model` is the bare name, without a provider's prefix.
    """
    rule = _FAMILIES.get(family, _openai)
    return rule(max(1, width), max(1, height), detail or "high", model.lower())
