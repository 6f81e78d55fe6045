"""An exact count in a stand-in's tokens is held to what replies have taught of the model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.tokens import fast
from tests.support.builders import Message, system, user
from tests.support.engine import Engine

WINDOW = 8_000
TRUE_RATIO = 1.3
"""Tokens of a tokenizer nobody has, for each estimated one."""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """A gateway that adds nothing. The requests hold nothing to shrink, so what is sent is what was counted."""
    made = Engine(tmp_path, memory={"enabled": False})
    yield made
    made.close()


def lines(count: int) -> list[Message]:
    """About seven tokens a line by the estimate."""
    return [system("Be brief."), user(" ".join(f"word{number % 97} of line {number}" for number in range(count)))]


def estimate(messages: list[Message]) -> int:
    """The plain estimate of a request with those messages alone."""
    return sum(map(fast.message_tokens, messages)) + fast.request_overhead_tokens({})


def test_an_unknown_tokenizer_starts_from_the_calibrated_estimate(engine: Engine) -> None:
    messages = lines(640)
    expected = estimate(messages) * TRUE_RATIO
    assert 0.70 * WINDOW < expected < 0.90 * WINDOW, "past the soft limit, so counted exactly"
    for _ in range(3):
        engine.services.counting.calibration.observe("default", f"win-{WINDOW}", 1_000, 1_000 * TRUE_RATIO)
    sent = engine.send(messages, window=WINDOW)
    assert sent.turn.encoding
    assert sent.turn.tokens_after == pytest.approx(expected, rel=0.001)


def test_what_exact_counts_were_compared_with_comes_first(engine: Engine) -> None:
    messages, model = lines(840), f"win-{WINDOW}"
    calibration = engine.services.counting.calibration
    first = engine.send(messages, window=WINDOW).turn
    assert first.encoding
    plain = first.tokens_after
    calibration.observe("default", model, 1_000, 1_000 * TRUE_RATIO)

    async def replied() -> None:
        engine.services.counting.observe(first, int(plain * 1.1))
        await engine.settled()

    engine.run(replied())
    again = engine.send(messages, window=WINDOW).turn
    assert again.tokens_after == pytest.approx(plain * 1.1, rel=0.001)
