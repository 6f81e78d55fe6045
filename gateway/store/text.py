"""Text as every store can hold it, and the hash by which two spellings of one memory are the same."""

from __future__ import annotations

import hashlib
import unicodedata


def storable(text: str) -> str:
    """NUL (PostgreSQL refuses it) and lone surrogates (UTF-8 refuses them) become U+FFFD; all else stays."""
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def normalise(text: str) -> str:
    """Case, width, punctuation and white space taken away: `Uses  Python.` and `uses python` are one.

    Symbols that carry meaning in names (+, #, and the like: C++ and C# are two) stay, as do marks and digits.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = (" " if unicodedata.category(c)[0] in "ZPC" and c not in "#&%@*" else c for c in folded)
    return " ".join("".join(kept).split())


def normalised_hash(text: str) -> str:
    """32 hex digits over `normalise(text)`, for `Store.exists_text`. A text of punctuation only is hashed as it is."""
    return hashlib.blake2b((normalise(text) or text).encode("utf-8", "replace"), digest_size=16).hexdigest()
