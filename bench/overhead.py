"""What the gateway costs: requests a second and delay, beside bare relays, over one upstream and one load.

Direct, a bare aiohttp relay, a bare httpx relay, ours with every stage on (with and without memories to recall) and
ours bypassed take turns, in rounds, in one run, so that what the machine does in the meantime falls on all alike;
ratios are medians of each round's own ratio to the aiohttp relay. What stands in front of the upstream has processor 0
to itself, the load generator and the upstream share processor 1 (where there are two; `--no-pin` leaves it to the
kernel).

    python -m bench.overhead [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.bodies import CONVERSATIONS, SIZES, USER_TURN_EVERY
from bench.load import LOOK_EVERY
from bench.processes import LoadGenerator, Pins, Running, start_gateway, start_relay, start_upstream, startup

YARDSTICK = "aiohttp relay"
STRANGER = "ours, nothing remembered"
"""Every stage on, for a caller of whom nothing has been told: recall has nothing to find."""
TARGETS = ("direct", YARDSTICK, "httpx relay", "ours", STRANGER, "ours, bypassed")
CONCURRENCIES = (1, 32)
PERCENTILES = (50, 95, 99)
FACTS = (
    "I prefer short answers with code first.",
    "Our production database is PostgreSQL 15.",
    "I prefer tabs for indentation in Python.",
    "We deploy the importer from Frankfurt every night.",
    "My name is Ana.",
)
"""Told before the load, so that recall has something to find."""


@dataclass(frozen=True)
class Scenario:
    """One kind of load."""

    size: str
    stream: bool
    concurrency: int

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.size} {'streamed' if self.stream else 'plain'} c={self.concurrency}"


@dataclass
class Series:
    """One target under one load: each round's figures."""

    rates: list[float] = field(default_factory=list)
    latency_ms: list[float] = field(default_factory=list)
    first_byte_ms: list[float] = field(default_factory=list)
    errors: int = 0

    def add(self, result: dict[str, Any]) -> None:
        """Take in a round."""
        self.rates.append(result["requests"] / result["seconds"])
        self.latency_ms += result["latency_ms"]
        self.first_byte_ms += result["first_byte_ms"]
        self.errors += result["errors"]


def percentile(values: list[float], percent: int) -> float:
    """Nearest rank; 0.0 of nothing."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] if ordered else 0.0


def tell_facts(url: str) -> None:
    """Make the gateway remember a few things about the load's caller."""
    for fact in FACTS:
        body = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": fact}]}).encode()
        headers = {"Authorization": "Bearer sk-bench", "Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(f"{url}/v1/chat/completions", body, headers)):
            pass


def asked(target: str) -> dict[str, bool]:
    """How the load differs for a target."""
    return {"bypass": target.endswith("bypassed"), "stranger": target == STRANGER}


def measure(
    load: LoadGenerator, addresses: dict[str, Running], scenarios: list[Scenario], rounds: int, seconds: float
) -> tuple[dict[Scenario, dict[str, Series]], dict[str, int]]:
    """All rounds of all scenarios; and what the gateway says it did meanwhile."""
    series = {scenario: {target: Series() for target in TARGETS} for scenario in scenarios}
    actions: dict[str, int] = {}
    for scenario in scenarios:
        for target in TARGETS:
            load.run(addresses[target].url, scenario, seconds / 2, at_least=2 * CONVERSATIONS, **asked(target))
        for turn in range(rounds):
            order = TARGETS[turn % len(TARGETS) :] + TARGETS[: turn % len(TARGETS)]
            for target in order:
                result = load.run(addresses[target].url, scenario, seconds, **asked(target))
                series[scenario][target].add(result)
                if target == "ours":
                    for action, count in result["actions"].items():
                        actions[action] = actions.get(action, 0) + count
        print(f"  {scenario.name}: done", file=sys.stderr, flush=True)
    return series, actions


def summary(series: dict[Scenario, dict[str, Series]]) -> list[dict[str, Any]]:
    """A row a scenario and target."""
    rows = []
    for scenario, by_target in series.items():
        for target, one in by_target.items():
            pairs = zip(one.rates, by_target[YARDSTICK].rates, strict=True)
            row: dict[str, Any] = {
                "load": scenario.name,
                "target": target,
                "requests_per_s": round(statistics.median(one.rates), 1),
                "ratio": round(statistics.median(mine / max(theirs, 1e-9) for mine, theirs in pairs), 3),
                "errors": one.errors,
            }
            for percent in PERCENTILES:
                row[f"p{percent}_ms"] = round(percentile(one.latency_ms, percent), 3)
            row["first_byte_p50_ms"] = round(percentile(one.first_byte_ms, 50), 3)
            rows.append(row)
    return rows


def print_table(rows: list[dict[str, Any]]) -> None:
    """The rows for people."""
    names = ("req/s", "× relay", "p50 ms", "p95 ms", "p99 ms", "1st byte", "errors")
    head = f"{'load':<24}{'target':<16}" + "".join(f"{name:>9}" for name in names)
    print(head)
    print("-" * len(head))
    last = ""
    for row in rows:
        load = row["load"] if row["load"] != last else ""
        last = row["load"]
        print(
            f"{load:<24}{row['target']:<16}{row['requests_per_s']:>9.0f}{row['ratio']:>9.2f}{row['p50_ms']:>9.2f}"
            f"{row['p95_ms']:>9.2f}{row['p99_ms']:>9.2f}{row['first_byte_p50_ms']:>9.2f}{row['errors']:>9}"
        )


def version_seconds(times: int) -> float:
    """Median wall time of `gateway --version`."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "gateway", "--version"], check=True, capture_output=True)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def conditions(pins: Pins) -> str:
    """What a reader must know to read the table."""
    small, large = SIZES["1KB"], SIZES["200KB"]
    return (
        f"{CONVERSATIONS} conversations in rotation, about {small:,} and {large:,} bytes (100 messages).\n"
        "Each request is one of them with a newest message never seen before; each was seen twice before the measure.\n"
        "Small ones end in a user's message, so memory is recalled; of the large "
        f"one in {USER_TURN_EVERY} does, the others in a tool's result.\n"
        "A quarter of all tool results is indented JSON, which folds.\n"
        f"Everything on uvloop, one process each. {pins.describe()}\n"
        "Ratio: to the bare aiohttp relay, median of rounds."
    )


def main() -> int:
    """Run it all and print it."""
    parser = argparse.ArgumentParser(description="Overhead of the gateway against bare relays.")
    parser.add_argument("--quick", action="store_true", help="one round of one second each")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measured run")
    parser.add_argument("--only", default="", help="only loads whose name holds this")
    parser.add_argument("--no-pin", action="store_true", help="let the kernel place the processes")
    parser.add_argument("--json", type=Path, default=Path(".bench") / "overhead.json", help="where the figures go")
    options = parser.parse_args()
    rounds, seconds = (1, 1.0) if options.quick else (options.rounds, options.seconds)
    pins = Pins(enabled=not options.no_pin)
    every = [Scenario(size, stream, c) for size in SIZES for stream in (False, True) for c in CONCURRENCIES]
    scenarios = [scenario for scenario in every if options.only in scenario.name]
    with tempfile.TemporaryDirectory(prefix="bench-overhead-") as scratch:
        report = run_all(Path(scratch), pins, scenarios, rounds, seconds)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(report, indent=1), encoding="utf-8")
    print(f"\nFigures: {options.json}")
    return 1 if any(row["errors"] for row in report["rows"]) else 0


def run_all(scratch: Path, pins: Pins, scenarios: list[Scenario], rounds: int, seconds: float) -> dict[str, Any]:
    """Start everything, measure, stop everything; the report."""
    with start_upstream(pins) as upstream, LoadGenerator(pins) as load:
        with (
            start_relay("aiohttp", upstream.url, pins) as aiohttp_relay,
            start_relay("httpx", upstream.url, pins) as httpx_relay,
            start_gateway(upstream.url, scratch / "load", pins) as ours,
        ):
            tell_facts(ours.url)
            rss_before = ours.rss_mb()
            addresses = dict(zip(TARGETS, (upstream, aiohttp_relay, httpx_relay, ours, ours, ours), strict=True))
            series, actions = measure(load, addresses, scenarios, rounds, seconds)
            memory = {"start": rss_before, "end": ours.rss_mb(), "aiohttp relay": aiohttp_relay.rss_mb()}
        starts = [startup(upstream.url, scratch / f"start-{turn}", pins) for turn in range(3 if rounds == 1 else 5)]
    rows = summary(series)
    report = {
        "conditions": conditions(pins),
        "rows": rows,
        "actions": actions,
        "start_s": round(statistics.median(starts), 3),
        "version_s": round(version_seconds(len(starts)), 3),
        "rss_mb": memory,
    }
    print_table(rows)
    print(f"\n{report['conditions']}")
    print(f"Stages that acted (one request in {LOOK_EVERY} looked at): {actions or 'none'}")
    print(
        f"Start to first answer: {report['start_s']:.2f} s; `gateway --version`: {report['version_s']:.2f} s (medians)"
    )
    print(f"RSS of ours: {memory['start']:.0f} MB at the start, {memory['end']:.0f} MB at the end of the load")
    return report


if __name__ == "__main__":
    sys.exit(main())
