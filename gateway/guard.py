"""What goes first and what goes last when old messages shrink.

First the reads that a later read or edit of the same path has overtaken; last what the agent must quote back exactly:
the newest read of a file that it has been editing, and its plan.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.levels import calls_by_result
from gateway.shrink.reads import Call, classify_reads
from gateway.turn import Turn


def by_worth(turn: Turn, indices: Sequence[int], protected: frozenset[str]) -> list[int]:
    """`indices` of a turn's items in the order in which they may shrink: overtaken reads, others by age, then guarded.

    A call stands with its result: what guards one guards the other.
    """
    answers = calls_by_result(turn)
    calls = [
        Call(index, name, arguments, turn.items[index].original.text) for index, (_, name, arguments) in answers.items()
    ]
    reads = classify_reads(calls)
    last = set(reads.guarded) | {index for index, (_, name, _) in answers.items() if name.lower() in protected}
    last |= {answers[index][0] for index in last if index in answers}
    ranks = dict.fromkeys(reads.superseded, 0) | dict.fromkeys(last, 2)
    return sorted(indices, key=lambda index: (ranks.get(index, 1), index))
