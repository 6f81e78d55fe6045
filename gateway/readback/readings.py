"""Puts back what the model read of spilled outputs, which its client knows nothing of and so doesn't send.

Without it the model would forget what it has read, and the upstream's cached prefix would end there. What is put back
becomes ordinary items of the conversation: old results that may be snipped, skeletonised and compacted in pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gateway.body import as_object, decode
from gateway.conversation import Conversation, Reading
from gateway.message import Message, Messages, chain
from gateway.tenants import digest
from gateway.turn import Item
from gateway.types import ChatMessage, JsonObject

OWN_SEED = 1
"""Apart from the client's messages, so that no chain of theirs equals one of ours."""
READINGS_KEPT = 8
"""For one message: so many different replies to it, by regenerating, are told apart."""


def own_items(at: bytes, messages: Iterable[Message]) -> list[Item]:
    """Items for messages of the gateway's own that follow the message with chain `at`."""
    found: list[Item] = []
    for message in messages:
        at = chain(at, message.facts.identity, OWN_SEED)
        found.append(Item(at, message, message, own=True))
    return found


def reading_digest(text: str) -> str:
    """The mark of a reply's text; clients strip white space."""
    return digest("reply", text.strip())


def with_reading(readings: tuple[Reading, ...], new: Reading) -> tuple[Reading, ...]:
    """The readings with one more; those there are never change, since what was sent rests on them."""
    known = any((old.text, old.calls) == (new.text, new.calls) for old in readings)
    return readings if known or len(readings) >= READINGS_KEPT else (*readings, new)


def with_readings(
    messages: Messages, conversation: Conversation, items: list[Item], start: int, *, bypassed: bool = False
) -> list[Item]:
    """The items with what was read put back, from `start` on; the items before it have theirs."""
    if bypassed or not conversation.records or len(items) < 2:
        return items
    while start > 0 and items[start].own:
        start -= 1
    if not any(conversation.record(item.chain).readings for item in items[start:]):
        return items
    out = items[:start]
    index = start
    readings: tuple[Reading, ...] = ()
    while index < len(items):
        item = items[index]
        index += 1
        found = _reading_of(readings, item.original) if readings and not item.own else None
        if not item.own:
            readings = conversation.record(item.chain).readings
        if found is None:
            out.append(item)
            continue
        before = next(old.chain for old in reversed(out) if not old.own)
        out += own_items(before, (messages.read(text.encode()) for text in found.rounds))
        out.append(_whole_reply(messages, item, found))
        results: list[Item] = []
        while index < len(items) and items[index].original.facts.is_tool:
            results.append(items[index])
            index += 1
        out += _among(messages, out[-1], results, found)
        if results:
            readings = conversation.record(results[-1].chain).readings
    return out


def _reading_of(readings: Sequence[Reading], reply: Message) -> Reading | None:
    """The reading that led to this reply: by its calls and text; by its calls alone where the text was changed."""
    if reply.facts.role != "assistant":
        return None
    alike = [reading for reading in readings if reading.calls == reply.facts.calls]
    mark = reading_digest(reply.text)
    return next((reading for reading in alike if reading.text == mark), alike[0] if alike else None)


def _whole_reply(messages: Messages, item: Item, reading: Reading) -> Item:
    """The reply as the model made it: with its own calls, without the text of the rounds before it."""
    data = item.original.data
    content = _without(data.get("content"), reading.said)
    calls = list(data.get("tool_calls") or ())
    for at, call, _ in reading.beside:
        calls.insert(at, decode(call.encode()))
    whole: ChatMessage = dict(data)
    if content != data.get("content"):
        whole["content"] = content or (None if calls else "")
    if reading.beside:
        whole["tool_calls"] = calls
    if whole == data:
        return item
    made = messages.make(whole)
    return Item(item.chain, made, made, client=item.original)


def _without(content: object, said: str) -> object:
    """A message's content without the text it begins with."""
    if not said:
        return content
    if isinstance(content, str):
        return content.removeprefix(said)
    if isinstance(content, list) and content and isinstance(content[0], dict):
        first: JsonObject = content[0]
        text = first.get("text")
        if isinstance(text, str) and text.startswith(said):
            rest = [{**first, "text": text.removeprefix(said)}] if text != said else []
            return [*rest, *content[1:]]
    return content


def _among(messages: Messages, reply: Item, results: list[Item], reading: Reading) -> list[Item]:
    """The client's results with the gateway's among them, in the order of the calls."""
    places = {
        str(as_object(call).get("id") or ""): place
        for place, call in enumerate(reply.original.data.get("tool_calls") or ())
    }
    own = own_items(reply.chain, (messages.read(result.encode()) for _, _, result in reading.beside))
    out = list(results)
    for (place, _, _), item in zip(reading.beside, own, strict=True):
        later = (index for index, other in enumerate(out) if places.get(other.original.facts.reply_to, -1) > place)
        out.insert(next(later, len(out)), item)
    return out
