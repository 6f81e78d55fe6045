"""One way to count tokens for every strategy in the bench, cached per distinct message.

Two counts are kept of each message, both in o200k_base:

- **billed**: the message's content and tool calls as the JSON they travel as. This is the count behind the sizes quoted
  for the four long sessions (82K, 47K, 123K and 64K), and longest common prefixes are taken over these tokens.
- **rendered**: the plain text of the content, name and arguments of each call, and a fixed overhead, which is what a
  model's window holds. Only this one decides whether a request is over its window.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import xxhash

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import tiktoken

ENCODING = "o200k_base"
MESSAGE_OVERHEAD = 4  # tokens a chat template spends around one message: OpenAI's cookbook gives 3 to 4
CALL_OVERHEAD = 10  # tokens around the name and arguments of one tool call


@dataclass(frozen=True, slots=True)
class Counted:
    """A message as the ledger needs it: its identity, its billed tokens and its size in a window."""

    digest: bytes
    ids: npt.NDArray[np.uint32]
    rendered: int

    @property
    def billed(self) -> int:
        """Tokens billed for this message."""
        return len(self.ids)


def load_encoding(name: str = ENCODING) -> tiktoken.Encoding:
    """tiktoken's encoding, from the rank files that litellm's wheel carries, so that nothing is fetched.

    A `TIKTOKEN_CACHE_DIR` set by the user is respected.
    """
    if "TIKTOKEN_CACHE_DIR" not in os.environ:
        spec = importlib.util.find_spec("litellm")
        if spec is not None and spec.submodule_search_locations:
            folder = Path(spec.submodule_search_locations[0]) / "litellm_core_utils" / "tokenizers"
            if folder.is_dir():
                os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    import tiktoken

    return tiktoken.get_encoding(name)


def content_text(content: object) -> str:
    """The plain text of a message's content: a string, or the text parts of a list, joined by newlines."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, dict))
        return "\n".join(text for text in texts if isinstance(text, str))
    return ""


def wire_text(message: dict[str, Any]) -> str:
    """What is billed of a message: its content and its tool calls, as JSON."""
    calls = message.get("tool_calls")
    return _json(message.get("content")) + (_json(calls) if calls else "")


class TokenCounter:
    """Counts messages; a message seen before costs one hash of its bytes."""

    def __init__(self, encoding: tiktoken.Encoding | None = None) -> None:
        self._encoding = encoding or load_encoding()
        self._known: dict[bytes, Counted] = {}

    def message(self, message: dict[str, Any]) -> Counted:
        """Both counts of one message."""
        digest = xxhash.xxh3_128_digest(_bytes(message))
        known = self._known.get(digest)
        if known is None:
            known = Counted(digest, self._encode(wire_text(message)), self._rendered(message))
            self._known[digest] = known
        return known

    def request(self, messages: Iterable[dict[str, Any]], tools: Sequence[Any] | None = None) -> list[Counted]:
        """A whole request in the order a model reads it: the tool definitions, if any, then the messages."""
        counted = [self.message(message) for message in messages]
        if tools:
            listing = self.message({"content": _json(list(tools))})
            counted.insert(0, listing)
        return counted

    def text(self, text: str) -> int:
        """Tokens of a plain text."""
        return len(self._encode(text))

    def _encode(self, text: str) -> npt.NDArray[np.uint32]:
        # Special tokens in a log are text to the provider as well: they are encoded as ordinary characters.
        return self._encoding.encode_to_numpy(text, disallowed_special=())

    def _rendered(self, message: dict[str, Any]) -> int:
        total = MESSAGE_OVERHEAD + self.text(content_text(message.get("content")))
        for call in message.get("tool_calls") or []:
            function = call.get("function") or {}
            total += CALL_OVERHEAD + self.text(str(function.get("name") or ""))
            total += self.text(str(function.get("arguments") or ""))
        return total


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _bytes(message: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(message)
    except TypeError:  # a lone surrogate: not UTF-8, but a message all the same
        return json.dumps(message).encode()
