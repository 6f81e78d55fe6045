"""The tables and the verdicts, from outcomes made by hand."""

from __future__ import annotations

import pytest

from bench.context import main
from bench.replay.conversations import LONG, TRACE
from bench.replay.ledger import Bill
from bench.replay.report import COLUMNS, DIRECT, OURS, Report
from bench.replay.runner import Outcome


def spent(tokens: int, **fields: int) -> Bill:
    """Two turns that sent so many tokens in all, the second with the first as its prefix."""
    values = {"turns": 2, "stable": 1, **fields}
    return Bill(tokens=tokens, per_turn=[tokens // 2] * 2, sizes=[tokens // 2] * 2, **values)


def outcomes(ours: int, **fields: int) -> list[Outcome]:
    return [
        Outcome("talk", TRACE, DIRECT, None, spent(1000)),
        Outcome("long", LONG, DIRECT, None, spent(10_000)),
        Outcome("talk", TRACE, OURS, 8000, spent(1000), proxy=True),
        Outcome("long", LONG, OURS, 8000, spent(ours, **fields), proxy=True),
        Outcome("long", LONG, "rival", None, spent(4000), proxy=True),
    ]


def test_targets_reached() -> None:
    report = Report(outcomes(1200), [8000])
    assert not report.missed()
    assert "reached 8K: long sessions: 0.120 (at most 0.300)" in report.targets()
    assert "reached 8K: long sessions against rival: 0.120 (at most 0.400)" in report.targets()


@pytest.mark.parametrize(
    ("ours", "fields", "what"),
    [
        (5000, {}, "8K: long sessions: 0.500 (at most 0.300)"),
        (5000, {}, "8K: long sessions against rival: 0.500"),
        (1200, {"side_output": 2500}, "8K: worst conversation: 1.120"),
        (18_000, {}, "8K: turns over the window: 2.000"),
    ],
)
def test_targets_missed(ours: int, fields: dict[str, int], what: str) -> None:
    report = Report(outcomes(ours, **fields), [8000])
    assert report.missed()
    assert f"MISSED  {what}" in report.targets()
    # 18,000 tokens of 10,000 are above, 5,000 are not; 1,200 and 2,500 of output at 4 each make 11,200.
    above = {18_000: "above 1.000: long 1.800", 5000: "", 1200: "above 1.000: long 1.120"}[ours]
    assert above in report.targets()
    assert ("above" in report.targets()) == bool(above)


def test_a_proxy_that_could_not_run_keeps_its_rows_with_the_reason() -> None:
    failed = Outcome("long", LONG, "absent", None, Bill(), problem="not installed: no | such\npackage", proxy=True)
    report = Report([*outcomes(1200), failed], [8000])
    row = next(line for line in report.window_table(8000).splitlines() if "absent" in line and "not installed" in line)
    assert row.count("|") == len(COLUMNS) + 1
    assert "absent" not in report.targets()


def test_what_did_not_run_to_its_end_is_marked() -> None:
    cut = [Outcome("talk", TRACE, "cut", None, spent(500), lost=3, proxy=True)]
    cut.append(Outcome("long", LONG, "cut", None, spent(5000), proxy=True))
    row = next(line for line in Report([*outcomes(1200), *cut], [8000]).summary_table().splitlines() if "cut" in line)
    assert row.startswith("| cut | 0.500 | 0.50 talk (1 not to the end) |")
    cut[1].problem = "given up"
    row = next(line for line in Report([*outcomes(1200), *cut], [8000]).summary_table().splitlines() if "cut" in line)
    assert row.startswith("| cut | 0.500 (incomplete) | 0.50 talk (2 not to the end) |")


def test_a_row_has_the_figures_of_its_bill() -> None:
    report = Report(outcomes(1200, cached=200, side_calls=1, side_tokens=100, side_output=25), [8000])
    row = next(line for line in report.window_table(8000).splitlines() if line.startswith("| long | breakwater"))
    # (1200 - 200) + 0.1 * 200 + 100 + 4 * 25 = 1220 of 10,000; without a cache 1200 + 100 + 100 = 1400.
    assert "| 0.122 | 0.140 |" in row
    assert "| 16.7% | 1: 100 + 25 |" in row


def test_json_has_every_outcome_with_its_ratio() -> None:
    report = Report(outcomes(1200), [8000]).as_json()
    assert [one["ratio"] for one in report["outcomes"]] == pytest.approx([1.0, 1.0, 1.0, 0.12, 0.4])


def test_an_unknown_conversation_or_folder_is_named() -> None:
    with pytest.raises(SystemExit, match="no test data at /nowhere"):
        main(["--data", "/nowhere"])
