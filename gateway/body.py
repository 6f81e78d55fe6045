"""A chat request's body, cut at its messages without rewriting any of them.

The gateway edits requests by splicing bytes: whatever no stage changed reaches the upstream exactly as the client wrote
it, white space, key order, number forms and duplicate keys included. So the body is never decoded as a whole; it is cut
into `lead + value` pieces whose concatenation is the body, and a message is decoded only when somebody has to read it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import orjson

from gateway.errors import BadRequest
from gateway.types import Json, JsonObject

_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ANY = msgspec.json.Decoder()
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_KEY = re.compile(rb'[ \t\r\n]*[{,][ \t\r\n]*("(?:[^"\\]|\\.)*")[ \t\r\n]*:[ \t\r\n]*')
_SEPARATOR = re.compile(rb"[ \t\r\n]*[\[,][ \t\r\n]*")
_KEY_TEXT = re.compile(_KEY.pattern.decode())
_SEPARATOR_TEXT = re.compile(_SEPARATOR.pattern.decode())
_PLAIN = json.JSONDecoder()


@dataclass(slots=True)
class Piece:
    """One key of an object or one item of an array: the bytes before it (punctuation included) and its own."""

    name: str
    lead: bytes
    value: bytes


def decode(raw: bytes) -> Json:
    """The value of a JSON text, large integers whole; lone surrogates and NaN, which strict decoders refuse, pass."""
    try:
        return _ANY.decode(raw)
    except RecursionError:
        return orjson.loads(raw)  # takes a little more nesting than the others
    except msgspec.DecodeError:
        return json.loads(raw)


def encode(value: Json) -> bytes:
    """Compact JSON in UTF-8; integers of any size and lone surrogates are written by the standard library."""
    try:
        return orjson.dumps(value)
    except (orjson.JSONEncodeError, TypeError):
        return json.dumps(value, separators=(",", ":")).encode()


@dataclass(slots=True)
class ChatBody:
    """The body of a `/v1/chat/completions` request. `messages` are raw JSON bytes, one an entry, in order."""

    raw: bytes
    fields: list[Piece]
    tail: bytes
    messages: list[bytes]
    leads: list[bytes]
    """What stands before each message; of a body made by `extended` before the first two only."""
    close: bytes
    span: tuple[int, int] = (-1, -1)
    """Offsets in `raw` of the first message's beginning and the last one's end; -1 where they were not kept."""
    _decoded: dict[str, Json] = field(default_factory=dict)
    _raw_values: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def parse(cls, raw: bytes) -> ChatBody:
        """Cut `raw`.

        Raises:
            BadRequest: not UTF-8, not JSON, not an object, or `messages` missing or not a non-empty array of objects.
        """
        if not raw.strip():
            raise BadRequest("The request body is empty; expected a JSON object with `model` and `messages`.")
        if not raw.isascii():
            _check_utf8(raw)
        fields, tail = _cut_object(raw)
        array = next((piece.value for piece in reversed(fields) if piece.name == "messages"), None)
        if array is None:
            raise BadRequest(
                "Missing required parameter: 'messages'.", param="messages", code="missing_required_parameter"
            )
        if not array.startswith(b"["):
            raise BadRequest("'messages' must be an array of objects.", param="messages", code="invalid_type")
        leads, messages, close = _cut_array(array)
        if not messages:
            raise BadRequest("'messages' must hold at least one message.", param="messages", code="empty_array")
        for index, message in enumerate(messages):
            if message[:1] != b"{":
                raise BadRequest("Each message must be an object.", param=f"messages[{index}]", code="invalid_type")
        return cls(raw, fields, tail, messages, leads, close, _span(raw, fields, tail, leads, close))

    def extended(self, raw: bytes, count: int, end: int) -> ChatBody | None:
        """The body in `raw`, which is known to begin like this one up to `end`, the end of its `count`-th message.

        Only what follows is read. None where it has to be read as a whole: what follows can't stand there.
        """
        first = self.span[0]
        rest = raw[end:].lstrip()
        if not rest.startswith((b",", b"]")):
            return None
        added = ChatBody._tail(b'{"messages":[' + (rest[1:] if rest.startswith(b",") else rest))
        head: list[Piece] = []
        for piece in self.fields:
            if piece.name == "messages":
                head.append(Piece("messages", piece.lead, b""))
                break
            head.append(piece)
        if added is None or {piece.name for piece in head} & {piece.name for piece in added.fields[1:]}:
            return None
        last = len(raw) - len(added.tail) - sum(len(p.lead) + len(p.value) for p in added.fields[1:]) - len(added.close)
        return ChatBody(
            raw,
            [*head, *added.fields[1:]],
            added.tail,
            self.messages[:count] + added.messages,
            self.leads[:2] if len(self.leads) > 1 else [*self.leads, *_second(raw, end, added)],
            added.close,
            (first, last),
        )

    def without_bytes(self) -> ChatBody:
        """What `extended` needs, for keeping: the body itself is let go."""
        fields = [Piece(piece.name, piece.lead, b"") if piece.name == "messages" else piece for piece in self.fields]
        return ChatBody(b"", fields, self.tail, self.messages, self.leads[:2], self.close, self.span)

    @staticmethod
    def _tail(raw: bytes) -> ChatBody | None:
        try:
            if not raw.isascii():
                raw.decode()
            fields, tail = _cut_object(raw)
        except (BadRequest, UnicodeDecodeError):
            return None
        if fields[0].name != "messages" or any(piece.name == "messages" for piece in fields[1:]):
            return None
        leads, messages, close = _cut_array(fields[0].value)
        if any(message[:1] != b"{" for message in messages):
            return None
        return ChatBody(raw, fields, tail, messages, leads, close if messages else fields[0].value[1:])

    def get(self, name: str) -> Json:
        """The decoded value of a top-level field, or None where it is absent (or null)."""
        if name not in self._decoded:
            value = self._values().get(name)
            self._decoded[name] = None if value is None else decode(value)
        return self._decoded[name]

    def has(self, name: str) -> bool:
        """Whether the field is written in the body, even as null."""
        return name in self._values()

    def raw_field(self, name: str) -> bytes:
        """The field's bytes as written; empty where absent."""
        return self._values().get(name, b"")

    def _values(self) -> dict[str, bytes]:
        if not self._raw_values:
            self._raw_values = {piece.name: piece.value for piece in self.fields}
        return self._raw_values

    def rebuild(
        self, messages: Sequence[bytes] | None = None, changes: Mapping[str, bytes | None] | None = None
    ) -> bytes:
        """The body with other messages and fields in place.

        Args:
            messages: raw JSON of each message, or None to leave the array as it is.
            changes: field name to raw JSON; None takes the field out. Fields that are new go to the end.
        """
        if messages is not None and messages != self.messages:
            changes = {**(changes or {}), "messages": self._array(messages)}
        if not changes:
            return self.raw
        if "messages" not in changes and self.span[0] >= 0:
            changes = {**changes, "messages": self.leads[0] + self.raw[self.span[0] : self.span[1]] + self.close}
        last = {piece.name: index for index, piece in enumerate(self.fields)}
        parts: list[bytes] = []
        for index, piece in enumerate(self.fields):
            if piece.name not in changes or last[piece.name] != index:
                parts += _lead(piece.lead, first=not parts), piece.value
            elif (value := changes[piece.name]) is not None:
                parts += _lead(piece.lead, first=not parts), value
        for name, value in changes.items():
            if name not in last and value is not None:
                parts += (b"{" if not parts else b",") + encode(name) + b":", value
        return b"".join(parts) + self.tail

    def _array(self, messages: Sequence[bytes]) -> bytes:
        separator = self.leads[1] if len(self.leads) > 1 else b","
        return self.leads[0] + separator.join(messages) + self.close


def _span(raw: bytes, fields: list[Piece], tail: bytes, leads: list[bytes], close: bytes) -> tuple[int, int]:
    """Where the messages stand in `raw`; -1 where the pieces are not all of it (a byte order mark), or stand twice."""
    position = 0
    found = (-1, -1)
    for piece in fields:
        position += len(piece.lead)
        if piece.name == "messages":
            if found[0] >= 0:
                return -1, -1
            found = position + len(leads[0]), position + len(piece.value) - len(close)
        position += len(piece.value)
    return found if position + len(tail) == len(raw) else (-1, -1)


def _second(raw: bytes, end: int, added: ChatBody) -> list[bytes]:
    """The lead of the second message, where the body before had but one."""
    if not added.messages:
        return []
    return [raw[end : raw.index(added.messages[0], end)]]


def with_field(raw: bytes, name: str, value: bytes) -> bytes:
    """A JSON object that has no field `name`, with one put at its end."""
    end = raw.rstrip()
    comma = b"" if end[:-1].rstrip().endswith(b"{") else b","
    return end[:-1] + comma + encode(name) + b":" + value + b"}"


def _lead(lead: bytes, *, first: bool) -> bytes:
    """A field's lead, its comma turned into the opening brace where the fields before it were taken out."""
    return lead.replace(b",", b"{", 1) if first and b"{" not in lead.split(b'"', 1)[0] else lead


def _check_utf8(raw: bytes) -> None:
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        raise BadRequest(f"The request body is not valid UTF-8 (byte {error.start}).", code="invalid_utf8") from error


def _cut_object(raw: bytes) -> tuple[list[Piece], bytes]:
    try:
        values = _FIELDS.decode(raw)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
        return _cut_object_plainly(raw)
    pieces: list[Piece] = []
    position = 0
    for name, view in values.items():
        match = _KEY.match(raw, position)
        value = bytes(view)
        if match is None or not raw.startswith(value, match.end()) or decode(match[1]) != name:
            return _cut_object_plainly(raw)
        pieces.append(Piece(name, raw[position : match.end()], value))
        position = match.end() + len(value)
    tail = raw[position:]
    return (pieces, tail) if tail.strip() in (b"}", b"{}") else _cut_object_plainly(raw)


def _cut_array(array: bytes) -> tuple[list[bytes], list[bytes], bytes]:
    try:
        views = _ITEMS.decode(array)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
        return _cut_array_plainly(array.decode())
    leads: list[bytes] = []
    values: list[bytes] = []
    position = 0
    for view in views:
        value = bytes(view)
        start = position + 1
        if not array.startswith(value, start):
            match = _SEPARATOR.match(array, position)
            start = match.end() if match else start
        leads.append(array[position:start])
        values.append(value)
        position = start + len(value)
    return leads, values, array[position:]


def _malformed(error: Exception) -> BadRequest:
    return BadRequest(f"We could not parse the JSON body of your request: {error}.", code="invalid_json")


def _cut_object_plainly(raw: bytes) -> tuple[list[Piece], bytes]:
    """The slow road, for duplicate keys and for what strict decoders refuse; also says what is wrong with bad JSON."""
    text = raw.decode("utf-8-sig")
    pieces: list[Piece] = []
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _malformed(error) from error
    if not isinstance(whole, dict):
        raise BadRequest("The request body must be a JSON object.", code="invalid_type")
    position = 0
    while found := _KEY_TEXT.match(text, position):
        _, end = _PLAIN.raw_decode(text, found.end())
        pieces.append(
            Piece(json.loads(found[1]), text[position : found.end()].encode(), text[found.end() : end].encode())
        )
        position = end
    return pieces, text[position:].encode()


def _cut_array_plainly(text: str) -> tuple[list[bytes], list[bytes], bytes]:
    leads: list[bytes] = []
    values: list[bytes] = []
    position = 0
    while (found := _SEPARATOR_TEXT.match(text, position)) and not text.startswith("]", found.end()):
        _, end = _PLAIN.raw_decode(text, found.end())
        leads.append(text[position : found.end()].encode())
        values.append(text[found.end() : end].encode())
        position = end
    return leads, values, text[position:].encode()


def as_object(value: Any) -> JsonObject:
    """`value` where it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}
