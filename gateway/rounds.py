"""Where a conversation may be cut: calls and their replies are one piece, and rounds are made of whole pieces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gateway.message import Facts


def pairs_whole(messages: Sequence[Facts]) -> bool:
    """Whether each tool call has exactly one reply, before any other role, and each reply its call."""
    waiting: Counter[str] = Counter()
    for message in messages:
        if message.is_tool:
            if waiting[message.reply_to] <= 0 and not (message.role == "function" and not message.reply_to):
                return False
            waiting[message.reply_to] -= 1
            continue
        if any(count > 0 for count in waiting.values()):
            return False
        waiting = Counter(message.calls)
    return not any(count > 0 for count in waiting.values())


def safe_cuts(messages: Sequence[Facts]) -> list[bool]:
    """For each index, whether everything before it is closed and a cut there separates no call from its reply."""
    waiting: Counter[str] = Counter()
    safe: list[bool] = []
    for message in messages:
        safe.append(not message.is_tool and not waiting)
        if message.is_tool:
            waiting[message.reply_to] -= 1
            waiting = +waiting
        else:
            waiting += Counter(message.calls)
    return safe


def round_starts(messages: Sequence[Facts]) -> list[int]:
    """The indices at which rounds begin.

    A round is a user message with the reply to it, or one more step of the agent: an assistant message and the replies
    to its calls. Instructions before the first of them belong to none.
    """
    starts: list[int] = []
    before = ""
    for index, message in enumerate(messages):
        if message.is_tool or message.is_instruction:
            continue
        if message.role == "assistant":
            if before != "user":
                starts.append(index)
        elif before != message.role:
            starts.append(index)
        before = message.role
    return starts


def recent_start(messages: Sequence[Facts], rounds: int) -> int:
    """The index from which the last `rounds` rounds stand; 0 where there are no more than these."""
    starts = round_starts(messages)
    return starts[-rounds] if len(starts) > rounds > 0 else (0 if rounds > 0 else len(messages))
