"""How well extraction without a model tells what to remember: `python -m bench.extraction`.

The labelled sentences of tests/memory/data/candidates.jsonl, through the filter alone (each offered as a fact) and end
to end (rules, then the filter), beside two plain schemes. `tune` was looked at while the rules were written, `held`
(every third of the first 350) was not, `fresh` was written after them: quote the figure for `fresh`.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gateway.memory.filters import Judge
from gateway.memory.proposals import Proposal
from gateway.memory.rules import extract_rules

LABELLED = Path(__file__).parents[1] / "tests" / "memory" / "data" / "candidates.jsonl"
_FIRST_PERSON_RE = re.compile(r"\b(?:i|i'm|my|we|our)\b|我|咱", re.IGNORECASE)
_TASK_OR_DOUBT_RE = re.compile(
    r"\b(?:help me|can you|please|may|might|maybe)\b|[?？]|帮我|请|可能|也许|吗", re.IGNORECASE
)

Row = dict[str, Any]


def schemes() -> dict[str, Callable[[str], bool]]:
    """Name → whether a user's sentence is kept."""
    judge = Judge()
    judge.warm()

    def filtered(text: str) -> bool:
        return judge.judge(Proposal("fact", text), source_text=text, source_role="user").keep

    def rules(text: str) -> bool:
        return any(judge.judge(p, source_text=text, source_role="user").keep for p in extract_rules(text))

    def keywords(text: str) -> bool:
        return bool(_FIRST_PERSON_RE.search(text)) and not _TASK_OR_DOUBT_RE.search(text)

    return {
        "rules + filter": rules,
        "filter alone": filtered,
        "first person, no task or doubt word": keywords,
        "keep all": lambda text: True,
    }


def score(rows: Sequence[Row], keeps: Callable[[str], bool]) -> tuple[float, float, float, int]:
    """Precision, recall, milliseconds of CPU a sentence, and planted sentences kept."""
    begun = time.process_time()
    kept = [row for row in rows if keeps(row["text"])]
    cost = (time.process_time() - begun) / max(len(rows), 1) * 1e3
    good = sum(row["label"] == "keep" for row in kept)
    wanted = sum(row["label"] == "keep" for row in rows)
    planted = sum(row["label"] == "quarantine" for row in kept)
    return good / max(len(kept), 1), good / max(wanted, 1), cost, planted


def main() -> None:
    """Print one table; `--wrong` adds the sentences that rules + filter get wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wrong", action="store_true")
    options = parser.parse_args()
    rows: list[Row] = [json.loads(line) for line in LABELLED.read_text(encoding="utf-8").splitlines()]
    groups = [("all", rows)]
    groups += [(name, [row for row in rows if row["part"] == name]) for name in ("tune", "held", "fresh")]
    groups += [(name, [row for row in rows if row["language"] == name]) for name in ("en", "zh")]
    groups += [("other languages", [row for row in rows if row["language"] not in ("en", "zh")])]
    print("| sentences | n | scheme | precision | recall | planted kept | ms each |\n|---|---|---|---|---|---|---|")
    for name, group in groups:
        for scheme, keeps in schemes().items():
            precision, recall, cost, planted = score(group, keeps)
            print(f"| {name} | {len(group)} | {scheme} | {precision:.3f} | {recall:.3f} | {planted} | {cost:.2f} |")
    if options.wrong:
        keeps = schemes()["rules + filter"]
        for row in rows:
            if keeps(row["text"]) != (row["label"] == "keep"):
                print(f"{row['part']} {row['label']}: {row['text']}")


if __name__ == "__main__":
    main()
