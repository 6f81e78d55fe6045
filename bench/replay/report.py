"""The tables that the bench prints, in Markdown, and the same as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from bench.replay.conversations import LONG, TRACE
from bench.replay.ledger import Bill, add_up, geometric_mean
from bench.replay.runner import Outcome

DIRECT = "no gateway"
OURS = "breakwater"
TARGETS = {8_000: 0.30, 16_000: 0.36, 32_000: 0.45, 128_000: 0.90}
"""Highest geometric mean of the billed-cost ratio over the long sessions that counts as reached, by window."""
STABLE_TARGET, STABLE_WINDOW = 0.95, 32_000
UNCACHED_TARGET, UNCACHED_WINDOW = 0.15, 8_000

COLUMNS = (
    "conversation",
    "strategy",
    "tokens direct",
    "tokens sent",
    "cached",
    "side calls in + out",
    "billed ratio",
    "ratio, no cache",
    "compactions",
    "over window",
    "prefix stable",
    "errors kept",
    "largest",
    "note",
)


class Report:
    """Outcomes against those of no gateway."""

    def __init__(self, outcomes: Sequence[Outcome], windows: Sequence[int]) -> None:
        self._outcomes = outcomes
        self._windows = windows
        self._direct = {outcome.conversation: outcome.bill for outcome in outcomes if outcome.strategy == DIRECT}

    def ratio(self, outcome: Outcome) -> float:
        """Billed-cost ratio of one outcome to no gateway, with the cache."""
        return outcome.bill.cost / self._direct[outcome.conversation].cost

    def ratio_uncached(self, outcome: Outcome) -> float:
        """The same where nothing is cached."""
        return outcome.bill.cost_uncached / self._direct[outcome.conversation].cost_uncached

    def markdown(self) -> str:
        """Everything: a table for each window, then the summary and the targets."""
        parts = [f"## Window {_short(window)}\n\n{self.window_table(window)}" for window in self._windows]
        return "\n\n".join([*parts, f"## Summary\n\n{self.summary_table()}", f"## Targets\n\n{self.targets()}"]) + "\n"

    def window_table(self, window: int) -> str:
        """A row per conversation and strategy; the short traces one by one for proxies, in total for all."""
        here = [outcome for outcome in self._outcomes if outcome.window in (None, window)]
        strategies = _names(here)
        shown = [o for o in here if o.kind != TRACE or o.proxy]
        rows = [self._row(o, window) for c in _conversations(shown) for o in shown if o.conversation == c]
        for kind, title in ((TRACE, "all traces"), (LONG, "all long sessions")):
            for strategy in strategies:
                some = [o for o in here if o.strategy == strategy and o.kind == kind]
                if some:
                    rows.append(self._total_row(title, strategy, some, window))
        return table(COLUMNS, rows)

    def summary_table(self) -> str:
        """Geometric mean of the long sessions by strategy and window, and the worst conversation of all."""
        header = ["strategy"]
        for window in self._windows:
            header += [f"{_short(window)}: long sessions", "worst", "over window", "stable"]
        rows = []
        for strategy in _names(self._outcomes):
            row = [strategy]
            for window in self._windows:
                row += self._summary_cells(strategy, window)
            rows.append(row)
        return table(header, rows)

    def targets(self) -> str:
        """A line per target: what was reached, and whether that is enough."""
        lines = []
        for window in self._windows:
            some = self._select(OURS, window)
            long = [self.ratio(o) for o in some if o.kind == LONG]
            if not some:
                continue
            if long and window in TARGETS:
                lines.append(_verdict(f"{_short(window)}: long sessions", geometric_mean(long), TARGETS[window]))
            lines.append(_verdict(f"{_short(window)}: worst conversation", max(map(self.ratio, some)), 1.0))
            above = [f"{o.conversation} {self.ratio(o):.3f}" for o in some if self.ratio(o) > 1.0]
            lines += [f"  above 1.000: {', '.join(above)}"] if above else []
            over = sum(o.bill.over(window) for o in some)
            lines.append(_verdict(f"{_short(window)}: turns over the window", over, 0))
            lines.append(_verdict(f"{_short(window)}: turns lost", sum(o.lost for o in some), 0))
            if long and window == UNCACHED_WINDOW:
                uncached = geometric_mean([self.ratio_uncached(o) for o in some if o.kind == LONG])
                lines.append(_verdict(f"{_short(window)}: long sessions, no cache", uncached, UNCACHED_TARGET))
            if window == STABLE_WINDOW:
                moved = 1 - _stable(some)
                lines.append(
                    _verdict(f"{_short(window)}: share of turns with a changed prefix", moved, 1 - STABLE_TARGET)
                )
            lines += self._against_peers(window, long)
        return "\n".join(lines) if lines else "The gateway was not in this run."

    def missed(self) -> bool:
        """Whether any target was missed."""
        return "MISSED" in self.targets()

    def as_json(self) -> dict[str, Any]:
        """Every outcome with its ratios, for tools."""
        return {
            "windows": list(self._windows),
            "outcomes": [
                {
                    **dataclasses.asdict(outcome),
                    "ratio": self.ratio(outcome),
                    "ratio_uncached": self.ratio_uncached(outcome),
                    "cached_share": outcome.bill.cached_share,
                    "stable_share": outcome.bill.stable_share,
                    "largest": outcome.bill.largest,
                    "over": {str(w): outcome.bill.over(w) for w in self._windows if outcome.window in (None, w)},
                }
                for outcome in self._outcomes
            ],
        }

    def _against_peers(self, window: int, ours: list[float]) -> list[str]:
        lines = []
        names = {name for name in _names(self._outcomes) if any(o.proxy for o in self._select(name, window))}
        for name in sorted(names - {OURS}):
            theirs = [self.ratio(o) for o in self._select(name, window) if o.kind == LONG]
            if ours and len(theirs) == len(ours):
                lines.append(
                    _verdict(
                        f"{_short(window)}: long sessions against {name}", geometric_mean(ours), geometric_mean(theirs)
                    )
                )
        return lines

    def _select(self, strategy: str, window: int) -> list[Outcome]:
        return [o for o in self._outcomes if o.strategy == strategy and o.window in (None, window) and o.bill.turns]

    def _summary_cells(self, strategy: str, window: int) -> list[str]:
        some = self._select(strategy, window)
        if not some:
            return ["-"] * 4
        long = [self.ratio(o) for o in some if o.kind == LONG]
        worst = max(some, key=self.ratio)
        mean = f"{geometric_mean(long):.3f}" if long else "-"
        if any(o.lost or o.problem for o in some if o.kind == LONG):
            mean += " (incomplete)"
        over = sum(o.bill.over(window) for o in some)
        cut = sum(bool(o.lost or o.problem) for o in some)
        unfinished = f" ({cut} not to the end)" if cut else ""
        return [mean, f"{self.ratio(worst):.2f} {worst.conversation}{unfinished}", str(over), f"{_stable(some):.1%}"]

    def _row(self, outcome: Outcome, window: int) -> list[str]:
        kept = f"{outcome.kept}/{outcome.labelled}" if outcome.labelled else ""
        direct = self._direct[outcome.conversation]
        return self._cells(
            outcome.conversation,
            outcome.strategy,
            outcome.bill,
            direct,
            outcome.bill.over(window),
            kept,
            _note(outcome),
        )

    def _total_row(self, title: str, strategy: str, some: list[Outcome], window: int) -> list[str]:
        total = add_up(o.bill for o in some)
        direct = add_up(self._direct[o.conversation] for o in some)
        cells = self._cells(title, strategy, total, direct, total.over(window), "", "")
        cells[COLUMNS.index("prefix stable")] = f"{_stable(some):.1%}"
        return cells

    @staticmethod
    def _cells(title: str, strategy: str, bill: Bill, direct: Bill, over: int, kept: str, note: str) -> list[str]:
        side = f"{bill.side_calls}: {bill.side_tokens:,} + {bill.side_output:,}" if bill.side_calls else "0"
        ratio = f"{bill.cost / direct.cost:.3f}" if bill.turns else "-"
        uncached = f"{bill.cost_uncached / direct.cost_uncached:.3f}" if bill.turns else "-"
        share, stable = f"{bill.cached_share:.1%}", f"{bill.stable_share:.1%}"
        sent = [f"{direct.tokens:,}", f"{bill.tokens:,}", share, side, ratio, uncached]
        return [title, strategy, *sent, str(bill.compactions), str(over), stable, kept, f"{bill.largest:,}", note]


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _verdict(what: str, reached: float, limit: float) -> str:
    return f"- {'reached' if reached <= limit else 'MISSED '} {what}: {reached:.3f} (at most {limit:.3f})"


def _stable(some: Sequence[Outcome]) -> float:
    after_first = sum(max(o.bill.turns - 1, 0) for o in some)
    return sum(o.bill.stable for o in some) / after_first if after_first else 1.0


def _names(outcomes: Sequence[Outcome]) -> list[str]:
    return list(dict.fromkeys(outcome.strategy for outcome in outcomes))


def _conversations(outcomes: Sequence[Outcome]) -> list[str]:
    return list(dict.fromkeys(outcome.conversation for outcome in outcomes))


def _note(outcome: Outcome) -> str:
    notes = [outcome.problem.replace("|", "/").replace("\n", " ")[:160]] if outcome.problem else []
    if outcome.lost:
        notes.append(f"{outcome.lost} turns lost")
    return "; ".join(notes)


def _short(window: int) -> str:
    return f"{window // 1000}K"
