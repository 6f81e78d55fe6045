"""What the estimates of a model have to be multiplied by, learnt from the `usage` its replies report.

No tokenizer of Claude, Gemini, Qwen, GLM or DeepSeek is at hand, and they differ from OpenAI's by up to a third,
steadily. So a few replies are enough: the ratio is the centre of the last observations, without those that don't fit.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass

MIN_RATIO, MAX_RATIO = 0.25, 4.0
"""No tokenizer in use is further from o200k_base; an observation beyond is a provider that counts something else."""
MIN_TOKENS = 200
"""Below, the overheads outweigh the text; such requests teach nothing about it."""
KEPT = 24
"""Observations per model: enough to outvote outliers, few enough to follow a change of tokenizer soon."""
SEEDED = 8
"""A stored ratio counts as this many observations: it holds against an outlier and yields to news."""
FULL_WEIGHT = 4_000
"""Estimated tokens from which a request counts fully; a smaller one by its share."""
INLIER = math.log(1.15)
"""Observations further than this from the median have no say in the mean."""
MAX_KEYS = 1_000
"""Models kept; the one longest not used goes first."""


@dataclass(frozen=True, slots=True)
class CalibrationRow:
    """What is stored of one model on one route."""

    route: str
    model: str
    ratio: float
    observations: int


class _Series:
    """The last observations of one model, as pairs of log ratio and weight."""

    __slots__ = ("centre", "seen", "values")

    def __init__(self) -> None:
        self.values: deque[tuple[float, float]] = deque(maxlen=KEPT)
        self.seen = 0
        self.centre = 0.0

    def add(self, value: float, weight: float) -> None:
        self.values.append((value, weight))
        self.seen += 1
        self.centre = self._robust_mean()

    def _robust_mean(self) -> float:
        """The weighted mean of what lies near the weighted median."""
        ordered = sorted(self.values)
        half = sum(weight for _, weight in ordered) / 2
        below = 0.0
        median = ordered[-1][0]
        for value, weight in ordered:
            below += weight
            if below >= half:
                median = value
                break
        near = [(value, weight) for value, weight in ordered if abs(value - median) <= INLIER]
        return sum(value * weight for value, weight in near) / sum(weight for _, weight in near)


class Calibration:
    """Ratios of true to estimated tokens by route and model; all methods may be called from any thread.

    The estimate given to `observe` is the plain one, not one already multiplied by `ratio`.
    """

    def __init__(self, max_keys: int = MAX_KEYS) -> None:
        self._series: OrderedDict[tuple[str, str], _Series] = OrderedDict()
        self._max_keys = max_keys
        self._lock = threading.Lock()

    def ratio(self, route: str, model: str) -> float:
        """The factor for an estimate, between `MIN_RATIO` and `MAX_RATIO`; 1.0 for a model not yet heard of."""
        with self._lock:
            series = self._series.get((route, model))
            if series is None:
                return 1.0
            self._series.move_to_end((route, model))
            return math.exp(series.centre)

    def knows(self, route: str, model: str) -> bool:
        """Whether anything has been observed, or loaded, of the model."""
        with self._lock:
            return (route, model) in self._series

    def observe(self, route: str, model: str, estimated: float, actual: float) -> None:
        """Learn from one reply: `estimated` tokens of the request, `actual` by `usage.prompt_tokens`."""
        if not (estimated >= MIN_TOKENS and actual >= 1 and math.isfinite(estimated) and math.isfinite(actual)):
            return
        value = math.log(min(max(actual / estimated, MIN_RATIO), MAX_RATIO))
        with self._lock:
            self._get(route, model).add(value, min(1.0, estimated / FULL_WEIGHT))

    def _get(self, route: str, model: str) -> _Series:
        key = (route, model)
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = _Series()
            while len(self._series) > self._max_keys:
                self._series.popitem(last=False)
        self._series.move_to_end(key)
        return series

    def rows(self) -> list[CalibrationRow]:
        """All that has been learnt, the longest unused first, for the store."""
        with self._lock:
            return [
                CalibrationRow(route, model, math.exp(series.centre), series.seen)
                for (route, model), series in self._series.items()
            ]

    def load(self, rows: Iterable[CalibrationRow]) -> None:
        """Take up stored ratios; a model already observed since the start keeps what it has."""
        with self._lock:
            for row in rows:
                if (row.route, row.model) in self._series or not (row.ratio > 0 and row.observations > 0):
                    continue
                value = math.log(min(max(row.ratio, MIN_RATIO), MAX_RATIO))
                series = self._get(row.route, row.model)
                for _ in range(min(row.observations, SEEDED)):
                    series.add(value, 1.0)
                series.seen = row.observations
