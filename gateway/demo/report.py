"""What the demo measured, added up: the two bills side by side, and whether the run was sound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from gateway.demo.drive import Turn
from gateway.demo.server import Samples
from gateway.demo.upstream import Books

COMPACTIONS = "gateway_compactions_total"
MEMORIES = "gateway_memories_total"


@dataclass(frozen=True, slots=True)
class Bill:
    """All that one caller sent, in tokens by the upstream's count."""

    requests: int
    prompt: int
    cached: int
    completion: int
    price: float
    """In fresh prompt tokens: a cached one counts a tenth, a written one eight."""
    largest: int
    """Tokens of the largest request."""
    refused: int
    """Requests over the window, or with a call parted from its reply."""
    side_calls: int
    """Summaries, which are in all the numbers above."""

    @classmethod
    def of(cls, books: Books) -> Bill:
        """Add up."""
        usages = [seen.usage for seen in books.seen]
        return cls(
            requests=len(usages),
            prompt=sum(usage.prompt for usage in usages),
            cached=sum(usage.cached for usage in usages),
            completion=sum(usage.completion for usage in usages),
            price=round(sum(usage.price for usage in usages), 1),
            largest=max((usage.prompt for usage in usages), default=0),
            refused=sum(seen.over or seen.broken for seen in books.seen),
            side_calls=sum(seen.side for seen in books.seen),
        )


@dataclass(slots=True)
class Report:
    """One run."""

    window: int
    exact: bool
    """Counted with tiktoken; else estimated."""
    turns: list[Turn] = field(default_factory=list)
    direct: Bill | None = None
    gateway: Bill | None = None
    compactions: dict[str, int] = field(default_factory=dict)
    memories: dict[str, int] = field(default_factory=dict)
    failed_stages: int = 0
    seconds: float = 0.0

    def settle(self, direct: Books, gateway: Books, samples: Samples) -> None:
        """Add up what both callers sent and what the gateway counted of its own work."""
        self.direct, self.gateway = Bill.of(direct), Bill.of(gateway)
        self.compactions = _labelled(samples, COMPACTIONS)
        self.memories = _labelled(samples, MEMORIES)
        self.failed_stages = sum(n for (name, _), n in samples.items() if name == "gateway_stage_failures_total")

    @property
    def users(self) -> int:
        """How many people asked."""
        return len({turn.user for turn in self.turns})

    @property
    def problems(self) -> list[str]:
        """What a sound run has none of."""
        found = [f"request {turn.number} failed: {turn.error}" for turn in self.turns if turn.error]
        if self.gateway is None or not self.turns:
            return [*found, "no request was answered"]
        if self.gateway.refused:
            found.append(f"{self.gateway.refused} requests of the gateway's were refused by the upstream")
        if self.failed_stages:
            found.append(f"{self.failed_stages} stages failed and were skipped")
        return found

    def as_json(self) -> dict[str, Any]:
        """For `--json`."""
        return {"ok": not self.problems, "problems": self.problems, **asdict(self)}


def _labelled(samples: Samples, name: str) -> dict[str, int]:
    return {label: count for (metric, label), count in sorted(samples.items()) if metric == name and count}


def percent(part: float, whole: float) -> str:
    """`part` of `whole`, such as `37 %`."""
    return f"{100 * part / whole:.0f} %" if whole else "–"


def change(before: float, after: float) -> str:
    """From `before` to `after`, such as `−37 %`; empty where nothing to speak of changed."""
    if not before or abs(after - before) / before < 0.005:
        return ""
    return f"{'−' if after < before else '+'}{abs(100 * (after - before) / before):.0f} %"


def actions_words(actions: dict[str, str], names: Sequence[str]) -> str:
    """Such as `fold 2 · snip 5 · compact reused`, in the order of the stages."""
    known = [name for name in names if name in actions]
    rest = [name for name in actions if name not in names]
    return " · ".join(f"{name} {actions[name]}" for name in [*known, *rest])
