"""Knows a conversation again by its first bytes, so that a turn costs what is new in it.

A client sends its whole history each turn, the same bytes and some more. What was worked out of these bytes on the turn
before (how they are cut, counted, hashed, in which form each message is sent) is kept under their hash: one pass of
xxh3 over the body stands in for parsing it. Everything here can be forgotten at any time; it is then worked out again.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import xxhash

from gateway.body import ChatBody
from gateway.conversation import Conversation, Cut, Pin
from gateway.message import Message
from gateway.turn import Item, Turn

PREFIX_BYTES = 64 * 1024 * 1024
"""Of what is kept, over all conversations."""
ITEM_WEIGHT = 800
"""Bytes that a message costs beside its JSON: item, two messages, hashes and places in lists, measured."""
LEAST_BYTES = 2_048
"""A shorter body is parsed faster than found."""
HEAD_BYTES = 1_024
SAMPLE_BYTES = 64
FIRST_SAMPLE = 11
"""The body's beginning is sampled at its first bytes and at 2^11, 2^12 … bytes."""
HALVINGS = 3
"""A prefix is found again while it is at least an eighth of the new body."""
SAME_SAMPLE = 6
"""Conversations kept that look alike in the sample."""


@dataclass(slots=True)
class Prefix:
    """A body as it was, up to the end of its last message, and what became of it."""

    digest: bytes
    head: tuple[int, int, bytes]
    """The same for its beginning before the newest messages: how many messages, how many bytes, their hash. A client
    that asks again with another last message still goes on from there."""
    body: ChatBody
    """Without its bytes: what is needed to read a body that goes on from it."""
    size: int
    items: list[Item]
    conversation: Conversation
    version: int
    """Of the conversation's decisions when the items were settled."""
    terms: tuple[object, ...]
    """Upstream, window and bypass they were settled for; others need other forms."""
    derived_session: str
    before_tokens: int
    sum: int | None
    cut: Cut | None
    cut_at: int
    summary: Message | None
    pinned: Pin | None
    mids: dict[int, Message]
    system: Message | None
    deeds: dict[str, int]
    """`Turn.deeds`."""


@dataclass(frozen=True, slots=True)
class Match:
    """A prefix that stands at the beginning of a new body: so many of its messages, so many bytes."""

    prefix: Prefix
    count: int
    end: int

    @property
    def whole(self) -> bool:
        """Whether all of the prefix stands there."""
        return self.count == len(self.prefix.body.messages)

    def items(self) -> list[Item]:
        """The prefix's items, as far as it matches."""
        return list(self.prefix.items) if self.whole else self.prefix.items[: self.count]


class Prefixes:
    """The prefixes at hand, the longest unused forgotten first."""

    def __init__(self, limit: int = PREFIX_BYTES) -> None:
        self._limit = limit
        self._bytes = 0
        self._kept: OrderedDict[tuple[str, bytes], list[Prefix]] = OrderedDict()

    def find(self, key_hash: str, raw: bytes) -> Match | None:
        """What is known of a body that begins like `raw`."""
        if len(raw) < LEAST_BYTES:
            return None
        top = len(raw).bit_length() - 1
        for power in range(top, max(FIRST_SAMPLE, top - HALVINGS) - 1, -1):
            key = (key_hash, _sample(raw, power))
            for prefix in reversed(self._kept.get(key, ())):
                found = _matching(prefix, raw)
                if found is not None:
                    self._kept.move_to_end(key)
                    return Match(prefix, *found)
        return None

    def keep(self, turn: Turn) -> None:
        """Remember a turn once its stages have run."""
        body = turn.body
        end = body.span[1]
        if end < LEAST_BYTES or turn.rounds:  # a later round stands for no body that a client could send
            return
        size = end
        for item in turn.items:
            item.original.release()
            item.sent.release()
            size += ITEM_WEIGHT + (len(item.sent.raw) if item.sent is not item.original else 0)
        digest, head = _digests(turn)
        prefix = Prefix(
            digest,
            head,
            body.without_bytes(),
            size,
            list(turn.items),
            turn.conversation,
            turn.conversation.version,
            terms_of(turn),
            turn.derived_session,
            turn.before_tokens,
            None if turn.encoding else turn.sum,
            turn.cut,
            turn.cut_at,
            turn.summary,
            turn.pinned,
            dict(turn.mids),
            turn.system,
            dict(turn.deeds or {}),
        )
        key = (turn.caller.key_hash, _sample(body.raw, end.bit_length() - 1))
        alike = self._kept.setdefault(key, [])
        alike[:] = [old for old in alike if not self._replaces(prefix, old)] + [prefix]
        if len(alike) > SAME_SAMPLE:
            self._bytes -= alike.pop(0).size
        self._kept.move_to_end(key)
        self._bytes += size
        while self._bytes > self._limit and self._kept:
            _, gone = self._kept.popitem(last=False)
            self._bytes -= sum(old.size for old in gone)

    def forget(self, tenant: str) -> None:
        """Drop all that is kept of a tenant."""
        for key, alike in list(self._kept.items()):
            left = [old for old in alike if old.conversation.tenant != tenant]
            self._bytes -= sum(old.size for old in alike) - sum(old.size for old in left)
            if left:
                self._kept[key] = left
            else:
                del self._kept[key]

    def _replaces(self, new: Prefix, old: Prefix) -> bool:
        """Whether the old one is a beginning of the new one, by its last message's chain, or only its end differs."""
        index = len(old.items) - 1
        gone = old.head == new.head or (index < len(new.items) and new.items[index].chain == old.items[index].chain)
        if gone:
            self._bytes -= old.size
        return gone


def terms_of(turn: Turn) -> tuple[object, ...]:
    """What the settled forms of a turn depend on beside its messages."""
    return turn.route, turn.limits.window, turn.bypass, turn.family


def take_over(turn: Turn, prefix: Prefix, count: int) -> None:
    """Let a turn go on from where the prefix was left, after `count` of its messages."""
    if prefix.cut is not None and prefix.cut_at >= count:
        return
    turn.items[:count] = prefix.items[:count]
    turn.settled = count
    turn.cut, turn.cut_at, turn.summary = prefix.cut, prefix.cut_at, prefix.summary
    if count < len(prefix.items):
        return  # what was pinned may have been at the message that is another now: the recall looks again
    turn.deeds = dict(prefix.deeds)
    turn.pins_known = count
    turn.pinned, turn.mids, turn.system = prefix.pinned, dict(prefix.mids), prefix.system
    if prefix.sum is not None:
        turn.sum = prefix.sum + sum(turn.tokens_of(item.sent) for item in turn.items[turn.settled :])


def _sample(raw: bytes, power: int) -> bytes:
    """A hash of some bytes among the first `2 ** power`."""
    parts = [raw[:HEAD_BYTES]]
    parts += [raw[1 << at : (1 << at) + SAMPLE_BYTES] for at in range(FIRST_SAMPLE, power)]
    return xxhash.xxh3_128_digest(b"".join(parts))


def _digests(turn: Turn) -> tuple[bytes, tuple[int, int, bytes]]:
    """The hash of the body up to the end of its messages, and what is to be known of it without the newest ones."""
    body = turn.body
    count = len(turn.items) - 1 if len(turn.items) == len(body.messages) else 0
    while count > 0 and turn.items[count].original.facts.is_tool:
        count -= 1
    newest = sum(map(len, body.messages[count:])) + (len(body.messages) - count) * len(_separator(body))
    end = body.span[1]
    middle = end - newest
    view = memoryview(body.raw)
    if count < 1 or not body.raw.startswith(_separator(body) + body.messages[count], middle):
        return xxhash.xxh3_128_digest(view[:end]), (0, 0, b"")
    hashed = xxhash.xxh3_128(view[:middle])
    head = (count, middle, hashed.digest())
    hashed.update(view[middle:end])
    return hashed.digest(), head


def _separator(body: ChatBody) -> bytes:
    return body.leads[1] if len(body.leads) > 1 else b","


def _matching(prefix: Prefix, raw: bytes) -> tuple[int, int] | None:
    """How many messages and bytes of the prefix stand at the beginning of `raw`; None where it begins otherwise."""
    count, middle, head = prefix.head
    end = prefix.body.span[1]
    view = memoryview(raw)
    if len(raw) < middle:
        return None
    hashed = xxhash.xxh3_128(view[:middle])
    if count and hashed.digest() != head:
        return None
    if end <= len(raw):
        hashed.update(view[middle:end])
        if hashed.digest() == prefix.digest:
            return len(prefix.body.messages), end
    return (count, middle) if count else None
