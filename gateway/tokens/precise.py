"""Exact counts with tiktoken, for the moments when an estimate could send an over-long request.

Three things make tiktoken unfit to be called as it is: it downloads its rank files on first use, it takes half a second
to load them, and a single unbroken run of letters costs it more than linear time. Here the files come from litellm's
wheel (or the user's own cache) and never from the network, loading is an explicit call for a thread, and long runs are
cut first.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import re
import threading
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from gateway.tokens import fast
from gateway.tokens.walk import Walk, walk_fields, walk_message

if TYPE_CHECKING:
    import tiktoken

log = logging.getLogger(__name__)

DEFAULT_ENCODING = "o200k_base"
"""Stands in for models whose tokenizer is not public; calibration closes the gap."""

_STORE = "https://openaipublic.blob.core.windows.net/encodings/"
RANK_FILES: dict[str, tuple[str, str]] = {
    "o200k_base": (
        _STORE + "o200k_base.tiktoken",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k_base": (
        _STORE + "cl100k_base.tiktoken",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
}
"""The address by which tiktoken names its cached file (SHA-1 of it), and the SHA-256 of the file. Never fetched."""

ALIASES = {"o200k_harmony": "o200k_base"}
"""Encodings that differ from another in their special tokens only, which are counted as text anyway."""

CACHE_VARIABLES = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")
"""tiktoken's own, in its order; where the user has set one, only that place is looked at."""

MAX_CHARS = 4_000_000
"""Longer texts are estimated: tiktoken would take a good part of a second, and the estimate samples well there."""
CHUNK_CHARS = 65_536
"""Encoded in one piece: bounds the cost of a run without white space (10 ms for 50,000 signs)."""

_NEW_OPENAI = re.compile(r"(?:ft:)?(?:gpt-(?:[5-9]|4o|4\.|oss)|o[1-9](?:$|-)|chatgpt-)")


@lru_cache(maxsize=1_024)
def _known_encoding(model: str) -> str | None:
    """tiktoken's own table, imported at first use; models newer than the table by the shape of their name."""
    from tiktoken.model import encoding_name_for_model

    try:
        name = encoding_name_for_model(model)
    except KeyError:
        return DEFAULT_ENCODING if _NEW_OPENAI.match(model) else None
    return ALIASES.get(name, name)


def _cache_dir() -> tuple[Path | None, bool]:
    """Where rank files may lie, and whether the user has chosen the place."""
    for variable in CACHE_VARIABLES:
        if variable in os.environ:
            value = os.environ[variable]
            return (Path(value) if value else None), True
    spec = importlib.util.find_spec("litellm")
    places = list(spec.submodule_search_locations or ()) if spec else []
    return (Path(places[0]) / "litellm_core_utils" / "tokenizers" if places else None), False


def _rank_file_fault(directory: Path | None, url: str, digest: str) -> str | None:
    """Why the rank file can't be used; None where it is there and whole."""
    if directory is None:
        return "no directory holds tiktoken's files"
    path = directory / hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
    try:
        data = path.read_bytes()
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    return None if hashlib.sha256(data).hexdigest() == digest else f"{path} is not the file its name says"


def chunks(text: str) -> list[str]:
    """The text in pieces of at most `CHUNK_CHARS`; joined, they are the text.

    A piece ends after a line end or before a space, where a token ends too, unless a long run leaves no such place.
    """
    pieces = []
    at = 0
    while len(text) - at > CHUNK_CHARS:
        end = at + CHUNK_CHARS
        cut = max(text.rfind(mark, at + CHUNK_CHARS // 2, end) for mark in ("\n", " "))
        cut = end if cut < 0 else cut + (text[cut] == "\n")
        pieces.append(text[at:cut])
        at = cut
    pieces.append(text[at:])
    return pieces


class Precise:
    """Loaded encodings and counts with them. All methods may be called from any thread."""

    _environment: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self) -> None:
        self._encodings: dict[str, tiktoken.Encoding] = {}
        self._failed: set[str] = set()

    def encoding_name(self, model: str, override: str | None = None) -> str | None:
        """The encoding of a model, `override` first; None for a model that is not OpenAI's.

        A provider's prefix (`azure/`, `openrouter/openai/`) is ignored. Count unknown models with `DEFAULT_ENCODING`.
        """
        if override:
            return ALIASES.get(override, override)
        return _known_encoding(model.rsplit("/", 1)[-1])

    def ready(self, name: str) -> bool:
        """Whether `name` has been loaded."""
        return ALIASES.get(name, name) in self._encodings

    def load(self, name: str) -> bool:
        """Load an encoding; half a second, so call it in a thread. False, after one warning, where it can't be had.

        Nothing is downloaded: the file is looked up and verified before tiktoken is let near it.
        """
        name = ALIASES.get(name, name)
        if name in self._encodings:
            return True
        with self._environment:
            if name in self._encodings:
                return True
            if name in self._failed:
                return False
            fault = self._load(name)
            if fault is None:
                return True
            self._failed.add(name)
        log.warning("exact counts in %s are off, estimates are used: %s", name, fault)
        return False

    def _load(self, name: str) -> str | None:
        """Load with the environment pointing at the verified file; the fault, or None on success."""
        if name not in RANK_FILES:
            return "no rank file of this encoding is known"
        directory, chosen = _cache_dir()
        fault = _rank_file_fault(directory, *RANK_FILES[name])
        if fault is not None:
            return fault
        import tiktoken

        if not chosen:
            os.environ[CACHE_VARIABLES[0]] = str(directory)
        try:
            self._encodings[name] = tiktoken.get_encoding(name)
        except (OSError, ValueError) as error:
            return str(error)
        finally:
            if not chosen:
                del os.environ[CACHE_VARIABLES[0]]
        return None

    def text_tokens(self, text: str, name: str) -> int | None:
        """Tokens of `text`, special tokens in it as ordinary text; None where the encoding is not loaded.

        A text over `MAX_CHARS` is estimated. Releases the GIL in tiktoken; call it in a thread for more than some KB.
        """
        encoding = self._encodings.get(ALIASES.get(name, name))
        if encoding is None:
            return None
        if len(text) > MAX_CHARS:
            return fast.text_tokens(text, name)
        return sum([len(encoding.encode_ordinary(piece)) for piece in chunks(text)])

    def _walk(self, walk: Walk, name: str) -> int | None:
        total = walk.fixed
        for text in walk.texts:
            tokens = self.text_tokens(text, name)
            if tokens is None:
                return None
            total += tokens
        return total if self.ready(name) else None

    def message_tokens(self, message: object, name: str, family: str = "openai", model: str = "") -> int | None:
        """Tokens of one entry of `messages`, its overhead included; None where the encoding is not loaded."""
        return self._walk(walk_message(message, family, model), name)

    def request_overhead_tokens(self, fields: object, name: str, family: str = "openai") -> int | None:
        """Tokens a request costs beside its messages; None where the encoding is not loaded."""
        return self._walk(walk_fields(fields, family), name)
