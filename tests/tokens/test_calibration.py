from __future__ import annotations

import random
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.tokens.calibration import Calibration, CalibrationRow


def taught(ratio: float, observations: int, noise: float = 0.0, seed: int = 1) -> Calibration:
    rng = random.Random(seed)
    calibration = Calibration()
    for _ in range(observations):
        estimated = rng.randint(500, 50_000)
        calibration.observe("r", "m", estimated, estimated * ratio * (1 + rng.uniform(-noise, noise)))
    return calibration


def test_unheard_of_is_one() -> None:
    assert Calibration().ratio("r", "m") == 1.0


@pytest.mark.parametrize("ratio", [0.6, 1.0, 1.33, 2.5])
@pytest.mark.parametrize("seed", range(20))
def test_within_three_percent_after_ten(ratio: float, seed: int) -> None:
    assert taught(ratio, 10, noise=0.06, seed=seed).ratio("r", "m") == pytest.approx(ratio, rel=0.03)


def test_outliers_have_no_say() -> None:
    calibration = taught(1.3, 10, noise=0.02)
    for actual in (100_000, 100, 40_000):
        calibration.observe("r", "m", 10_000, actual)
    assert calibration.ratio("r", "m") == pytest.approx(1.3, rel=0.03)


def test_a_first_outlier_is_outvoted() -> None:
    calibration = Calibration()
    calibration.observe("r", "m", 10_000, 39_000)
    for _ in range(4):
        calibration.observe("r", "m", 10_000, 12_000)
    assert calibration.ratio("r", "m") == pytest.approx(1.2, rel=0.01)


def test_it_follows_a_change_of_tokenizer() -> None:
    calibration = taught(1.0, 100)
    for _ in range(24):
        calibration.observe("r", "m", 10_000, 14_000)
    assert calibration.ratio("r", "m") == pytest.approx(1.4, rel=0.01)


def test_small_requests_teach_nothing() -> None:
    calibration = Calibration()
    calibration.observe("r", "m", 199, 400)
    assert calibration.ratio("r", "m") == 1.0 and not calibration.rows()


@given(st.lists(st.tuples(st.floats(allow_nan=True), st.floats(allow_nan=True)), max_size=30))
def test_always_within_its_bounds(pairs: list[tuple[float, float]]) -> None:
    calibration = Calibration()
    for estimated, actual in pairs:
        calibration.observe("r", "m", estimated, actual)
    assert 0.25 * (1 - 1e-9) <= calibration.ratio("r", "m") <= 4 * (1 + 1e-9)


def test_routes_and_models_are_apart() -> None:
    calibration = Calibration()
    calibration.observe("a", "m", 1_000, 2_000)
    assert [calibration.ratio("a", "m"), calibration.ratio("b", "m"), calibration.ratio("a", "n")] == [
        pytest.approx(2.0),
        1.0,
        1.0,
    ]


def test_persisting() -> None:
    rows = taught(1.4, 30).rows()
    assert [(row.route, row.model, row.observations) for row in rows] == [("r", "m", 30)]
    restored = Calibration()
    restored.load([*rows, CalibrationRow("r", "bad", -1.0, 3), CalibrationRow("r", "far", 90.0, 3)])
    assert restored.ratio("r", "m") == pytest.approx(1.4)
    assert restored.ratio("r", "bad") == 1.0
    assert restored.ratio("r", "far") == pytest.approx(4.0)
    # One outlier doesn't undo what was stored.
    restored.observe("r", "m", 10_000, 30_000)
    assert restored.ratio("r", "m") == pytest.approx(1.4, rel=0.01)


def test_loading_keeps_what_was_observed_since_the_start() -> None:
    calibration = taught(1.2, 5)
    calibration.load([CalibrationRow("r", "m", 3.0, 100)])
    assert calibration.ratio("r", "m") == pytest.approx(1.2)


def test_bounded_number_of_keys() -> None:
    calibration = Calibration(max_keys=3)
    for model in "abc":
        calibration.observe("r", model, 1_000, 2_000)
    assert calibration.ratio("r", "a") == pytest.approx(2.0)  # used, so "b" is now the oldest
    calibration.observe("r", "d", 1_000, 2_000)
    assert {row.model for row in calibration.rows()} == {"a", "c", "d"}


def test_threads() -> None:
    calibration = Calibration()

    def work() -> None:
        for _ in range(500):
            calibration.observe("r", "m", 10_000, 15_000)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calibration.rows()[0].observations == 2_000
    assert calibration.ratio("r", "m") == pytest.approx(1.5)
