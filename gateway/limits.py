"""How much of a model's window a conversation may use, and where shrinking starts and stops."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.settings import LimitSettings

DEFAULT_WINDOW = 128_000
"""Tokens; for a model that neither the configuration nor litellm's table knows."""
SMALL_WINDOW_BUFFER = 0.10
"""Share of the window that stands in for `limits.buffer` where that is less: else none would be left of it."""
LARGEST_RESERVE = 0.75
"""Share of the window that a reply may ask for: clients that set `max_tokens` to the whole window still get a turn."""
SOFT_OF_HARD = 0.90
BOOK_MOST = 1_000
LEAST_GAIN = 0.05
"""Share of the window that a shrinking must win, where that is less than `limits.min_gain`."""


@dataclass(frozen=True, slots=True)
class Limits:
    """All in tokens of the model at hand."""

    window: int
    hard: int
    """A request over this is compacted before it leaves."""
    soft: int
    """A request over this is shrunk."""
    low: int
    """What shrinking aims for."""
    speculative: int
    """A request over this has its summary made ahead of need."""
    min_gain: int
    """A shrinking that wins less than this is left undone."""

    def shrunk_to(self, tokens: int) -> Limits:
        """The same shares of a smaller size: what an upstream that refused a request said it would take."""
        share = min(1.0, max(1, tokens) / self.hard)
        return Limits(
            window=max(1, int(self.window * share)),
            hard=max(1, int(self.hard * share)),
            soft=max(1, int(self.soft * share)),
            low=max(1, int(self.low * share)),
            speculative=max(1, int(self.speculative * share)),
            min_gain=1,
        )


class LimitsBook:
    """The limits of a configuration, each worked out once."""

    def __init__(self, settings: LimitSettings) -> None:
        self._settings = settings
        self._kept: dict[tuple[int, int | None], Limits] = {}

    def limits(self, window: int, max_output: int | None) -> Limits:
        """As `limits_for`."""
        found = self._kept.get((window, max_output))
        if found is None:
            found = limits_for(window, max_output, self._settings)
            if len(self._kept) < BOOK_MOST:
                self._kept[window, max_output] = found
        return found


def limits_for(window: int, max_output: int | None, settings: LimitSettings) -> Limits:
    """The limits for a request.

    Args:
        window: the model's context window, tokens.
        max_output: the request's `max_tokens` or `max_completion_tokens`, where it has one.
    """
    reserve = max(min(settings.buffer, int(SMALL_WINDOW_BUFFER * window)), max_output or 0)
    hard = max(2, window - min(reserve, int(LARGEST_RESERVE * window)))
    soft = max(1, min(int(settings.soft * window), int(SOFT_OF_HARD * hard)))
    return Limits(
        window=window,
        hard=hard,
        soft=soft,
        low=max(1, min(int(settings.low_watermark * window), int(settings.low_watermark / settings.soft * soft))),
        speculative=min(hard, max(1, int(settings.speculative * hard))),
        min_gain=min(settings.min_gain, int(LEAST_GAIN * window)),
    )
