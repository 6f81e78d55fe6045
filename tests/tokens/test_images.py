from __future__ import annotations

import base64
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.tokens.images import image_size, image_tokens


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IEND", b"")


def jpeg(width: int, height: int, marker: int = 0xC0, before: bytes = b"") -> bytes:
    frame = struct.pack(">BHHB", 8, height, width, 3) + bytes(9)
    return b"\xff\xd8" + before + bytes([0xFF, marker]) + struct.pack(">H", len(frame) + 2) + frame


def segment(marker: int, body: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body


def webp(kind: bytes, body: bytes) -> bytes:
    riff = b"WEBP" + kind + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", len(riff)) + riff


# Metadata whose thumbnail has a frame header of its own, then 200 KB of colour profile, then the true frame.
EXIF = segment(0xE1, b"Exif\0\0" + jpeg(160, 120)) + b"".join(segment(0xE2, bytes(50_000)) for _ in range(4))

FILES = {
    "png": png(640, 480),
    "jpeg": jpeg(640, 480, before=segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0")),
    "jpeg, progressive": jpeg(640, 480, 0xC2),
    "jpeg, tables first": jpeg(640, 480, before=segment(0xC4, bytes(30)) + segment(0xDB, bytes(65))),
    "jpeg, long metadata": jpeg(640, 480, before=EXIF),
    "gif": b"GIF89a" + struct.pack("<HH", 640, 480) + bytes(10),
    "bmp": b"BM" + bytes(12) + struct.pack("<Iii", 40, 640, -480) + bytes(20),
    "bmp, os/2": b"BM" + bytes(12) + struct.pack("<IHH", 12, 640, 480) + bytes(20),
    "webp, lossy": webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 640, 480) + bytes(10)),
    "webp, lossless": webp(b"VP8L", b"\x2f" + struct.pack("<I", 639 | 479 << 14) + bytes(10)),
    "webp, extended": webp(b"VP8X", bytes(4) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little") + bytes(4)),
}


@pytest.mark.parametrize("kind", FILES)
def test_size_from_the_header(kind: str) -> None:
    data = FILES[kind]
    text = base64.b64encode(data).decode()
    assert image_size(data) == (640, 480)
    assert image_size(text) == (640, 480)
    assert image_size(f"data:image/png;base64,{text}") == (640, 480)


@pytest.mark.parametrize(
    "data",
    ["", "data:", "data:image/png,plain", "https://example.com/a.png", b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"],
)
def test_no_size_where_there_is_none(data: str | bytes) -> None:
    assert image_size(data) is None


@given(st.sampled_from(list(FILES.values())), st.integers(0, 60), st.binary(max_size=20))
def test_cut_and_damaged_files_never_raise(data: bytes, keep: int, tail: bytes) -> None:
    size = image_size(data[:keep] + tail)
    assert size is None or min(size) > 0


@pytest.mark.parametrize(
    ("width", "height", "detail", "model", "tokens"),
    [
        # OpenAI, "Images and vision": the worked examples.
        (1024, 1024, "high", "gpt-4o", 765),
        (2048, 4096, "high", "gpt-4o", 1105),
        (4096, 8192, "low", "gpt-4o", 85),
        (1024, 1024, "high", "gpt-4.1-mini", 1659),  # 1,024 patches × 1.62
        (1800, 2400, "high", "o4-mini", 2498),  # 33 × 44 = 1,452 patches × 1.72
        (512, 512, "high", "gpt-4o-mini", 2833 + 5667),
        (1024, 1024, "high", "o3", 75 + 4 * 150),
        (1024, 1024, None, "gpt-5", 70 + 4 * 140),
        # Bills shown on community.openai.com/t/1281361, 8 tokens of text taken off.
        (2049, 513, "high", "gpt-4.1", 1445),
        (2050, 513, "high", "gpt-4.1", 765),
    ],
)
def test_openai(width: int, height: int, detail: str | None, model: str, tokens: int) -> None:
    assert image_tokens(width, height, detail, "openai", model) == tokens


@pytest.mark.parametrize(
    ("family", "model", "width", "height", "tokens"),
    [
        # Anthropic, "Vision": sizes that are not scaled, with their tokens (about 54, 1,334, 1,590).
        ("anthropic", "claude-sonnet-4-5", 200, 200, 54),
        ("anthropic", "claude-sonnet-4-5", 1000, 1000, 1334),
        ("anthropic", "claude-3-5-sonnet", 1092, 1092, 1590),
        # A long edge of 3,000 is scaled to 1,568: 1568 × 627.2 / 750; beyond about 1,600 tokens it is scaled again.
        ("anthropic", "claude-opus-4-1", 3000, 1200, 1312),
        ("anthropic", "claude-opus-4-1", 3000, 1500, 1600),
        ("anthropic", "claude-opus-4-7", 2576, 1400, 4784),
        # Google: 384 and less is one tile; 960 × 540 has a unit of 360, so 3 × 2 tiles.
        ("gemini", "gemini-2.0-flash", 384, 384, 258),
        ("gemini", "gemini-2.0-flash", 960, 540, 6 * 258),
        ("gemini", "gemini-3-pro", 4000, 3000, 1120),
        # Qwen: 1,024 pixels round to 37 patches of 28, or are 32 patches of 32; two marks.
        ("qwen", "qwen2.5-vl-72b", 1024, 1024, 37 * 37 + 2),
        ("qwen", "qwen3-vl-plus", 1024, 1024, 32 * 32 + 2),
        ("mistral", "pixtral-12b", 512, 512, 33 * 32),
        ("xai", "grok-4", 448, 448, 2 * 256),
    ],
)
def test_other_families(family: str, model: str, width: int, height: int, tokens: int) -> None:
    assert image_tokens(width, height, "high", family, model) == tokens


@given(
    st.integers(1, 20_000),
    st.integers(1, 20_000),
    st.sampled_from(["low", "high", "original", "auto", None]),
    st.sampled_from(["openai", "anthropic", "gemini", "qwen", "mistral", "xai", "zhipu", "other"]),
    st.sampled_from(
        ["gpt-4o", "gpt-4o-mini", "gpt-4.1-mini", "gpt-5.4", "claude-opus-4-7", "gemini-3-pro", "qwen3", ""]
    ),
)
def test_bounded_for_any_size(width: int, height: int, detail: str | None, family: str, model: str) -> None:
    # The dearest is gpt-4o-mini: 2,833 + 8 tiles of 5,667.
    assert 1 <= image_tokens(width, height, detail, family, model) <= 48_169
