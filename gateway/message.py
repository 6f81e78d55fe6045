"""One message on its way upstream: its raw bytes, and what the stages need to know of it without decoding it again.

A conversation is sent again and again, longer by a message or two each time. What is worked out of a message is kept
under the hash of its bytes, so that a request costs its new messages and little more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import xxhash

from gateway.body import as_object, decode, encode
from gateway.errors import BadRequest
from gateway.types import ChatMessage, Json

K = TypeVar("K")
V = TypeVar("V")

FACTS_KEPT = 20_000
"""Messages whose facts are kept: about 700 bytes each, 14 MB in all."""


class Recent(Generic[K, V]):
    """A bounded map that forgets the long unused: two generations, so a look-up costs a dict access and no list work.

    `limit` bounds the sum of the weights, which are 1 an entry unless `put` is told otherwise.
    """

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._weight = 0
        self._weights: dict[K, int] = {}
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """The value under `key`, or None."""
        value = self._young.get(key)
        if value is None and self._old:
            value = self._old.get(key)
            if value is not None:
                self.put(key, value, self._weights.get(key, 1))
        return value

    def put(self, key: K, value: V, weight: int = 1) -> None:
        """Keep `value` under `key`."""
        if self._weight >= self._half:
            self._weights = {old: self._weights[old] for old in self._young if old in self._weights}
            self._old, self._young, self._weight = self._young, {}, 0
        self._young[key] = value
        self._weight += weight
        if weight != 1:
            self._weights[key] = weight

    def clear(self) -> None:
        """Forget everything."""
        self._young, self._old, self._weights, self._weight = {}, {}, {}, 0

    def __len__(self) -> int:
        return len(self._young) + len(self._old)


@dataclass(slots=True)
class Facts:
    """What is known of a message.

    `identity` names what it says: it leaves out how its JSON is written and `cache_control`, which clients move from
    turn to turn. `key` names its very bytes.
    """

    role: str
    identity: bytes
    key: bytes
    tokens: int
    """The fast estimate, overhead included, for OpenAI's family of models."""
    calls: tuple[str, ...]
    """Ids of the tool calls it makes, in order; an id that is missing is the empty string."""
    reply_to: str
    """The id of the call that it answers, where its role is `tool` (or `function`)."""
    size: int
    """Characters of text in its content."""
    lines: int
    """Line breaks in its raw JSON."""
    has_image: bool
    precise: dict[tuple[str, str], int] = field(default_factory=dict)
    """Exact counts made so far, by (encoding, family)."""

    @property
    def is_instruction(self) -> bool:
        """System and developer messages are instructions: never summarised, never shrunk."""
        return self.role in ("system", "developer")

    @property
    def is_tool(self) -> bool:
        """Whether it is a tool's result."""
        return self.role in ("tool", "function")


class Message:
    """Raw JSON bytes and the facts of them. Never changed in place: a stage makes a new one."""

    __slots__ = ("_data", "facts", "raw")

    def __init__(self, raw: bytes, facts: Facts, data: ChatMessage | None = None) -> None:
        self.raw = raw
        self.facts = facts
        self._data = data

    @property
    def data(self) -> ChatMessage:
        """The decoded message. Shared: copy before changing anything in it."""
        data = self._data
        if data is None:
            data = self._data = decode(self.raw)
        return data

    def release(self) -> None:
        """Let the decoded form go, several times as large as the bytes; it is decoded again where needed."""
        self._data = None

    @property
    def text(self) -> str:
        """All text of its content, parts joined by newlines."""
        return text_of(self.data)

    @property
    def calls_something(self) -> bool:
        """Whether it calls tools, or a function in the old way (`function_call`)."""
        return bool(self.facts.calls) or (self.facts.role == "assistant" and b'"function_call"' in self.raw)


class Messages:
    """Makes messages, from bytes or from dicts, and remembers their facts."""

    def __init__(self, count: Callable[[ChatMessage], int], seed: int = 0) -> None:
        self._count = count
        self._seed = seed
        self._facts: Recent[bytes, Facts] = Recent(FACTS_KEPT)

    def read(self, raw: bytes, index: int = 0) -> Message:
        """The message written in `raw`, `messages[index]` of its request.

        Raises:
            BadRequest: its role, content or tool calls have a type that no chat API takes.
        """
        key = xxhash.xxh3_128_digest(raw, self._seed)
        facts = self._facts.get(key)
        if facts is not None:
            return Message(raw, facts)
        try:
            data = decode(raw)
        except (ValueError, RecursionError) as error:
            raise BadRequest(f"messages[{index}] can't be read: {error}.", param=f"messages[{index}]") from error
        _check(data, index)
        facts = self._study(data, raw, key)
        self._facts.put(key, facts)
        return Message(raw, facts, data)

    def make(self, data: ChatMessage) -> Message:
        """The message for a dict that a stage wrote."""
        raw = encode(data)
        key = xxhash.xxh3_128_digest(raw, self._seed)
        facts = self._facts.get(key)
        if facts is None:
            facts = self._study(data, raw, key)
            self._facts.put(key, facts)
        return Message(raw, facts, data)

    def _study(self, data: ChatMessage, raw: bytes, key: bytes) -> Facts:
        role = data.get("role")
        calls = data.get("tool_calls")
        said = _without_marks(data) if b'"cache_control"' in raw else data
        return Facts(
            role=role if isinstance(role, str) else "",
            identity=xxhash.xxh3_128_digest(encode(_plain(said)), self._seed),
            key=key,
            tokens=self._count(data),
            calls=tuple(str(as_object(call).get("id") or "") for call in calls) if isinstance(calls, list) else (),
            reply_to=str(data.get("tool_call_id") or "") if role in ("tool", "function") else "",
            size=len(text_of(data)),
            lines=raw.count(b"\\n"),
            has_image=_has_image(data),
        )


def chain(before: bytes, identity: bytes, seed: int = 0) -> bytes:
    """The 16-byte hash of a conversation's prefix, from that of the prefix before and the next message's identity."""
    return xxhash.xxh3_128_digest(before + identity, seed)


def text_of(data: ChatMessage) -> str:
    """All text of a message's content: a string, or its text parts joined by newlines."""
    content = data.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (part if isinstance(part, str) else as_object(part).get("text") for part in content)
    return "\n".join(text for text in texts if isinstance(text, str))


def functions_called(data: ChatMessage) -> list[tuple[str, ChatMessage]]:
    """Id, and name with arguments, of each call; one in the old way (`function_call`) has an empty id."""
    calls = data.get("tool_calls")
    found = [as_object(call) for call in calls] if isinstance(calls, list) else []
    functions = [(str(call.get("id") or ""), as_object(call.get("function"))) for call in found]
    legacy = as_object(data.get("function_call"))
    return [*functions, ("", legacy)] if legacy else functions


def _has_image(data: ChatMessage) -> bool:
    content = data.get("content")
    return isinstance(content, list) and any(
        str(as_object(part).get("type", "")) in ("image_url", "image", "input_image") for part in content
    )


def _without_marks(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _without_marks(item) for key, item in value.items() if key != "cache_control"}
    if isinstance(value, list):
        return [_without_marks(item) for item in value]
    return value


def _plain(data: ChatMessage) -> ChatMessage:
    """A single bare text part as the string it stands for: clients make one of a string to put a mark on it."""
    content = data.get("content")
    if isinstance(content, list) and len(content) == 1:
        part = as_object(content[0])
        if part.keys() == {"type", "text"} and part["type"] == "text":
            return {**data, "content": part["text"]}
    return data


def _check(data: ChatMessage, index: int) -> None:
    at = f"messages[{index}]"
    if "role" not in data:
        raise BadRequest(
            f"Missing required parameter: '{at}.role'.", param=f"{at}.role", code="missing_required_parameter"
        )
    if not isinstance(data["role"], str):
        raise BadRequest(f"'{at}.role' must be a string.", param=f"{at}.role", code="invalid_type")
    content = data.get("content")
    if content is not None and not isinstance(content, str | list | dict):
        raise BadRequest(
            f"'{at}.content' must be a string or an array of parts.", param=f"{at}.content", code="invalid_type"
        )
    calls = data.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        raise BadRequest(f"'{at}.tool_calls' must be an array.", param=f"{at}.tool_calls", code="invalid_type")
