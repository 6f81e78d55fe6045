"""The baselines: what people do without a gateway, each a pure function from messages to messages.

Every one keeps system messages and never sends a `tool` message whose call is gone. `no_gateway` and
`sliding_window` and `snip_all` know no window; `drop_oldest` fills it up to the room left for a reply.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Messages = list[dict[str, Any]]
Strategy = Callable[[Messages], Messages]

SLIDING_MESSAGES = 20
SNIP_CHARS, SNIP_HEAD, SNIP_TAIL = 3000, 1500, 1000
REPLY_SHARE, REPLY_TOKENS = 0.10, 13_000  # room kept for the reply: the lesser of the two, as in the gateway's limits


def no_gateway(messages: Messages) -> Messages:
    """The request as the agent sent it."""
    return messages


def sliding_window(messages: Messages) -> Messages:
    """System messages and the last 20 others, less replies at the front whose call slid out."""
    system, rest = _split(messages)
    return system + _without_orphans(rest[-SLIDING_MESSAGES:])


def snip_all(messages: Messages) -> Messages:
    """Every tool result over 3,000 characters keeps its first 1,500 and its last 1,000."""
    return [_snip(message) for message in messages]


def drop_oldest(window: int, size: Callable[[dict[str, Any]], int]) -> Strategy:
    """A strategy that drops the oldest messages until what is left fits `window` tokens less room for the reply.

    `size` gives a message's tokens. The newest message and system messages always stay, even where they don't fit.
    """
    budget = window - min(REPLY_TOKENS, int(REPLY_SHARE * window))

    def strategy(messages: Messages) -> Messages:
        system, rest = _split(messages)
        room = budget - sum(size(message) for message in system)
        start = len(rest)
        while start > 0:
            room -= size(rest[start - 1])
            if room < 0 and start < len(rest):
                break
            start -= 1
        return system + _without_orphans(rest[start:])

    return strategy


def _split(messages: Messages) -> tuple[Messages, Messages]:
    system = [m for m in messages if m.get("role") in ("system", "developer")]
    return system, [m for m in messages if m.get("role") not in ("system", "developer")]


def _without_orphans(rest: Messages) -> Messages:
    start = 0
    while start < len(rest) and rest[start].get("role") == "tool":
        start += 1
    return rest[start:]


def _snip(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    if message.get("role") != "tool" or not isinstance(content, str) or len(content) <= SNIP_CHARS:
        return message
    cut = len(content) - SNIP_HEAD - SNIP_TAIL
    return {**message, "content": f"{content[:SNIP_HEAD]}\n[{cut} characters snipped]\n{content[-SNIP_TAIL:]}"}
