"""Parts of a message that are not text: images, audio and files as they come in requests, each to its tokens."""

from __future__ import annotations

import base64
import binascii
import math
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from gateway.tokens.images import UNKNOWN_SIZE, image_size, image_tokens

FAMILY_MARKS: tuple[tuple[str, str], ...] = (
    ("claude", "anthropic"),
    ("anthropic", "anthropic"),
    ("gemini", "gemini"),
    ("gemma", "gemini"),
    ("qwen", "qwen"),
    ("qvq", "qwen"),
    ("glm", "zhipu"),
    ("kimi", "moonshot"),
    ("moonshot", "moonshot"),
    ("mistral", "mistral"),
    ("mixtral", "mistral"),
    ("pixtral", "mistral"),
    ("magistral", "mistral"),
    ("ministral", "mistral"),
    ("codestral", "mistral"),
    ("devstral", "mistral"),
    ("grok", "xai"),
    ("deepseek", "deepseek"),
    ("llama", "llama"),
)
"""Provider families by what their models' names contain."""

AUDIO_TOKENS_PER_S: dict[str, float] = {"openai": 10.0, "gemini": 32.0}
"""OpenAI: one token per 100 ms of a user's audio ("Realtime costs"); Google: 32 a second ("Audio understanding")."""
OTHER_AUDIO_TOKENS_PER_S = 25.0
"""Qwen-Audio's rate, the highest documented after Google's."""
AUDIO_BYTES_PER_S: dict[str, int] = {"wav": 48_000, "pcm16": 48_000, "mp3": 16_000, "flac": 60_000}
"""Where no header tells: 24 kHz mono 16-bit, MP3 at 128 kbit/s, FLAC at about half of CD quality."""
OTHER_AUDIO_BYTES_PER_S = 8_000
"""Opus, AAC, Vorbis at 64 kbit/s."""
UNKNOWN_AUDIO_S = 60.0
"""Taken for audio behind a URL."""
WAV_HEAD = 4_096

VIDEO_TOKENS = 15_480
"""A minute at Google's 258 tokens a frame and one frame a second; the length of a video is never in the request."""

PAGE_TOKENS: dict[str, int] = {"openai": 1_500, "anthropic": 3_000, "gemini": 258}
"""A page of a PDF, text and picture: Anthropic says 1,500 to 3,000 and an image, Google one tile ("Documents")."""
BYTES_PER_PAGE = 50_000
"""Of a PDF whose pages can't be counted."""
UNKNOWN_PAGES = 10
"""Of a file that is named by an id or a URL."""
TEXT_FILE_BYTES = 8_000_000
"""The most that is decoded of a text file; the tokens of the rest follow in proportion of its length."""


@lru_cache(maxsize=1_024)
def family_of(model: str) -> str:
    """The provider family whose rules a model is counted by: `openai` for its own models and for unknown ones."""
    name = model.lower()
    return next((family for mark, family in FAMILY_MARKS if mark in name), "openai")


def bare_model(model: str) -> str:
    """A model's name without its provider's prefix: `openrouter/openai/gpt-4o` → `gpt-4o`."""
    return model.rsplit("/", 1)[-1]


def image_part_tokens(source: object, detail: object, family: str, model: str) -> int:
    """Tokens of an image given as a data URL, base64, or a remote URL (an ordinary size is taken for it)."""
    level = detail if isinstance(detail, str) else None
    size = None
    if isinstance(source, str | bytes) and not _remote(source):
        size = image_size(source)
    width, height = size or UNKNOWN_SIZE
    return image_tokens(width, height, level, family, bare_model(model))


def _remote(source: str | bytes) -> bool:
    return isinstance(source, str) and source[:8].lower().startswith(("http:", "https:", "file:", "gs:", "s3:"))


def _payload(data: str) -> tuple[str, int]:
    """Media type and the place where the payload of a data URL begins; ("", 0) for plain base64."""
    if data[:5].lower() != "data:":
        return "", 0
    comma = data.find(",", 0, 1_024)
    if comma < 0:
        return "", len(data)
    return data[5:comma].lower(), comma + 1


def _size_of(data: str, start: int) -> int:
    """Bytes that base64 from `start` decodes to."""
    return (len(data) - start) * 3 // 4


def _decode(data: str, start: int, limit: int) -> bytes:
    piece = data[start : start + limit * 4 // 3 // 4 * 4]
    try:
        return base64.b64decode(piece + "=" * (-len(piece) % 4))
    except (binascii.Error, ValueError):
        return b""


def wav_seconds(head: bytes, total: int) -> float | None:
    """Duration of a WAV file of `total` bytes from its header's byte rate; None where it is no WAV file."""
    if head[:4] != b"RIFF" or head[8:12] != b"WAVE":
        return None
    at, rate = 12, 0
    while at + 8 <= len(head):
        name, size = head[at : at + 4], int.from_bytes(head[at + 4 : at + 8], "little")
        if name == b"fmt " and at + 20 <= len(head):
            rate = int.from_bytes(head[at + 16 : at + 20], "little")
        if name == b"data" and rate:
            # Streamed files leave the size open (0 or all ones).
            return min(size or total, max(0, total - at - 8)) / rate
        at += 8 + size + (size & 1)
    return None


def audio_part_tokens(source: object, form: object, family: str) -> int:
    """Tokens of audio by its duration: from a WAV header, else from its size in bytes and its format's usual rate."""
    rate = AUDIO_TOKENS_PER_S.get(family, OTHER_AUDIO_TOKENS_PER_S)
    if not isinstance(source, str) or _remote(source):
        return math.ceil(UNKNOWN_AUDIO_S * rate)
    kind, start = _payload(source)
    total = _size_of(source, start)
    seconds = wav_seconds(_decode(source, start, WAV_HEAD), total)
    if seconds is None:
        name = (form if isinstance(form, str) else kind).lower()
        known = next((value for key, value in AUDIO_BYTES_PER_S.items() if key in name), OTHER_AUDIO_BYTES_PER_S)
        seconds = total / known
    return max(1, math.ceil(seconds * rate))


def file_part(data: object, form: object, family: str, model: str) -> tuple[str, int]:
    """A file's text, where it is a text file, and its tokens beside that (pages of a PDF, an image's rule)."""
    page = PAGE_TOKENS.get(family, PAGE_TOKENS["openai"])
    if not isinstance(data, str) or _remote(data):
        return "", UNKNOWN_PAGES * page
    kind, start = _payload(data)
    kind = kind or (form.lower() if isinstance(form, str) else "")
    if kind.startswith("image/"):
        return "", image_part_tokens(data, None, family, model)
    if kind.startswith("audio/"):
        return "", audio_part_tokens(data, kind, family)
    if kind.startswith("text/") or "json" in kind or "xml" in kind:
        return _text_file(data, kind, start), 0
    head = _decode(data, start, TEXT_FILE_BYTES)
    pages = head.count(b"/Type/Page") + head.count(b"/Type /Page")
    pages -= head.count(b"/Type/Pages") + head.count(b"/Type /Pages")
    return "", page * max(pages, math.ceil(_size_of(data, start) / BYTES_PER_PAGE) if pages <= 0 else 1)


def _text_file(data: str, kind: str, start: int) -> str:
    if start and ";base64" not in kind:
        raw = unquote_to_bytes(data[start : start + TEXT_FILE_BYTES])
    else:
        raw = _decode(data, start, TEXT_FILE_BYTES)
    return raw.decode("utf-8", "replace")
