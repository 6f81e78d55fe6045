"""What folding, pointers, the tool-result budget and snipping win and keep on recorded tool results.

    python -m bench.shrink [--data ../shared/data]

Tokens are counted with tiktoken's o200k_base, whose rank file comes with litellm: nothing is fetched. Seconds are this
process's own CPU time.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.replay.counting import load_encoding
from gateway.shrink.budget import cut_output
from gateway.shrink.fold import fold
from gateway.shrink.repeats import against_earlier
from gateway.shrink.skeleton import skeleton_result
from gateway.shrink.snip import snip

DATA = Path(__file__).parents[2] / "shared" / "data"
BUDGETS = (40_000, 25_600, 12_800)


def counter() -> Callable[[str], int]:
    """A function that counts a text's o200k_base tokens."""
    encoding = load_encoding()
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def conversations(path: Path) -> Iterator[list[tuple[str, str, str]]]:
    """(function, arguments, result) of each tool call, conversation by conversation."""
    for trace in json.loads(path.read_text()):
        calls: dict[str, dict[str, Any]] = {}
        results = []
        for message in trace["request"]["messages"]:
            calls.update({call["id"]: call["function"] for call in message.get("tool_calls") or []})
            if message["role"] == "tool":
                function = calls[message["tool_call_id"]]
                results.append((function["name"], function["arguments"], message["content"]))
        yield results


def text_of(path: Path) -> str:
    """A file's text, decompressed, its line ends as they are."""
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8", "replace")


def trajectories(data: Path, count: Callable[[str], int]) -> None:
    """Prints tokens of all tool results: as they came, folded, with pointers, as skeletons."""
    print("\ntool results            tokens   folded          + pointers      skeletons")
    for path in sorted((data / "trajectories").glob("*.json")):
        before = folded = pointed = bones = 0
        for results in conversations(path):
            earlier: list[tuple[str, str]] = []
            for number, (name, arguments, result) in enumerate(results):
                text = fold(result)
                short = against_earlier(text, earlier) or text
                earlier.append((f"result {number}", short))
                before, folded, pointed = before + count(result), folded + count(text), pointed + count(short)
                bones += count(skeleton_result(name, arguments, result))
        shares = "  ".join(f"{tokens:6,} (-{1 - tokens / before:.1%})" for tokens in (folded, pointed, bones))
        print(f"{path.stem:22}  {before:6,}  {shares}")


def outputs(data: Path, count: Callable[[str], int]) -> None:
    """Prints what folding wins on each long tool output, and how fast."""
    print("\nlong outputs                       tokens   folded            MB/s")
    totals: dict[str, list[int]] = {}
    for path in sorted((data / "tool_outputs").rglob("*")):
        if not path.is_file() or path.name.endswith(".errors.json") or path.name.startswith("LICENSE"):
            continue
        text = text_of(path)
        start = time.process_time()
        short = fold(text)
        seconds = time.process_time() - start
        before, after = count(text), count(short)
        total = totals.setdefault(path.parent.name, [0, 0])
        total[0], total[1] = total[0] + before, total[1] + after
        print(f"{path.name:32} {before:8,} {after:8,} (-{1 - after / before:5.1%}) {len(text) / 1e6 / seconds:6.1f}")
    for name, (before, after) in totals.items():
        print(f"{name + '/':32} {before:8,} {after:8,} (-{1 - after / before:5.1%})")


def labelled(data: Path) -> None:
    """Prints how many labelled error lines of the CI logs the budget keeps, and if snipping keeps the outer two."""
    for max_chars in BUDGETS:
        print(f"\nbudget {max_chars:,} characters: labelled error lines kept whole")
        kept = total = 0
        for labels in sorted((data / "tool_outputs" / "ci_logs").glob("*.errors.json")):
            text = text_of(labels.with_name(labels.name.replace(".errors.json", ".log.gz")))
            errors = [error["line"] for error in json.loads(labels.read_text())["errors"]]
            start = time.process_time()
            cut = cut_output(text, max_chars=max_chars) or text
            seconds = time.process_time() - start
            short = snip(text) or text
            found = sum(error in cut for error in errors)
            kept, total = kept + found, total + len(errors)
            ends = f"{'first' if errors[0] in short else '-':5} {'last' if errors[-1] in short else '-':4}"
            print(f"{labels.name:36} {found:3} of {len(errors):3}  snip: {ends}  {seconds * 1e3:4.0f} ms")
        print(f"{'all':36} {kept:3} of {total:3}")


def main() -> None:
    """Runs all three tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    data: Path = parser.parse_args().data
    count = counter()
    trajectories(data, count)
    outputs(data, count)
    labelled(data)


if __name__ == "__main__":
    main()
