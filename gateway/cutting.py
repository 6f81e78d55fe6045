"""Where a compaction cuts, what stays word for word on the other side, and how a cut is laid on a turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.conversation import Cut
from gateway.message import Facts, Messages
from gateway.prompts import summary_message
from gateway.rounds import round_starts, safe_cuts
from gateway.turn import Turn

EVICTION_LINE = 60
"""Tokens of the line that says what went."""


@dataclass(frozen=True, slots=True)
class Place:
    """A safe cut: everything before `at` goes, but for `before` and `after` (indices, see `Cut`)."""

    at: int
    before: tuple[int, ...]
    after: tuple[int, ...]


def places(facts: Sequence[Facts], rounds: int, since: int = 0) -> list[Place]:
    """Safe cuts that leave `rounds`, then fewer, whole rounds after them; the mildest first.

    Args:
        facts: of the client's messages.
        since: where the last cut was: a new one must lie past it.
    """
    starts = round_starts(facts)
    safe = safe_cuts(facts)
    found: list[Place] = []
    for keep in range(min(rounds, len(starts)), 0, -1):
        at = starts[-keep]
        while at > since and not safe[at]:
            at -= 1
        place = place_at(facts, at)
        lost = at - since - sum(1 for index in (*place.before, *place.after) if since <= index < at)
        if at > since and lost > 0 and all(other.at != at for other in found):
            found.append(place)
    return found


def place_at(facts: Sequence[Facts], at: int) -> Place:
    """The cut before index `at`: instructions, the first user message, the newest one and the newest image stay."""
    users = [index for index, message in enumerate(facts) if message.role == "user"]
    before = {index for index in range(at) if facts[index].is_instruction}
    if users and users[0] < at:
        before.add(users[0])
    newest = users[-1] if users else at
    image = max(
        (index for index, message in enumerate(facts) if message.has_image and message.role == "user"), default=at
    )
    after = {index for index in (newest, image) if index < at} - before
    return Place(at, tuple(sorted(before)), tuple(sorted(after)))


def oldest_out(turn: Turn, facts: Sequence[Facts], target: int) -> Place | None:
    """The cut that takes out the fewest of the oldest rounds to come to `target` tokens; at least one round stays."""
    safe = safe_cuts(facts)
    starts = [at for at in round_starts(facts) if at > turn.cut_at and safe[at]]
    if not starts:
        return None
    after = [0] * (len(facts) + 1)
    for index in range(len(facts) - 1, -1, -1):
        after[index] = after[index + 1] + turn.tokens_of(turn.items[index].sent)
    for at in starts:
        place = place_at(facts, at)
        kept = sum(turn.tokens_of(turn.items[index].sent) for index in (*place.before, *place.after))
        if (turn.fixed_tokens + kept + after[at]) * turn.ratio + EVICTION_LINE <= target:
            return place
    return place_at(facts, starts[-1])


def lay(turn: Turn, messages: Messages, at: int, cut: Cut) -> None:
    """Make the cut on a turn."""
    turn.cut, turn.cut_at = cut, at
    text = summary_message(cut.summary) if cut.summarised else cut.summary
    turn.summary = messages.make({"role": "user", "content": text})
    turn.mids = {index: message for index, message in turn.mids.items() if index >= at}
    turn.deeds = None
    turn.changed()
