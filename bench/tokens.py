"""How close and how fast the token counts are, by kind of text: prints the tables of `docs/counting.md`.

    python -m bench.tokens            needs the shared test data beside the repository for the corpora
    python -m bench.tokens --data DIR

Truth is tiktoken. Calibration is shown as a gateway would use it: pieces of documents come one after another;
each estimate is multiplied by the ratio learnt from those before, and the error is that of all after the tenth.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from pathlib import Path

from gateway.tokens.calibration import MIN_TOKENS, Calibration
from gateway.tokens.fast import text_tokens
from gateway.tokens.precise import Precise
from tests.tokens.corpora import corpora

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
ENCODINGS = ("o200k_base", "cl100k_base")
CHUNK_CHARS = 2_000
"""Of a request in the calibration run: a document is cut into such pieces, so that there are enough of them."""
LEARNT_AFTER = 10
SPEED_CHARS = 1_000_000
SIZES = (500, 2_000, 8_000, 32_000, 128_000, 1_000_000)


def plain_rule(text: str) -> int:
    """The rule to compare with: a quarter of a token per ASCII character, half of one for others."""
    ascii_chars = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    return int(ascii_chars / 4 + (len(text) - ascii_chars) / 2 + 1)


def calibrated(texts: list[str], exact: Callable[[str], int]) -> float | None:
    """Total of calibrated estimates over the truth, from the observation after `LEARNT_AFTER` on; None if too few."""
    pieces = [text[at : at + CHUNK_CHARS] for text in texts for at in range(0, len(text), CHUNK_CHARS)]
    pieces = [piece for piece in pieces if text_tokens(piece) >= MIN_TOKENS]
    random.Random(7).shuffle(pieces)
    if len(pieces) < 2 * LEARNT_AFTER:
        return None
    calibration = Calibration()
    estimated = true = 0.0
    for number, piece in enumerate(pieces[:200]):
        guess, truth = text_tokens(piece), exact(piece)
        if number >= LEARNT_AFTER:
            estimated += guess * calibration.ratio("bench", "model")
            true += truth
        calibration.observe("bench", "model", guess, truth)
    return estimated / true


def megabytes_per_second(count: Callable[[str], object], texts: list[str]) -> float:
    """Speed over `texts`, UTF-8 bytes, best of three passes."""
    size = sum(len(text.encode("utf-8", "replace")) for text in texts)
    best = min(_timed(count, texts) for _ in range(3))
    return size / best / 1e6


def _timed(count: Callable[[str], object], texts: list[str]) -> float:
    start = time.perf_counter()
    for text in texts:
        count(text)
    return time.perf_counter() - start


def accuracy(kinds: dict[str, list[str]], precise: Precise, name: str) -> None:
    """One row a corpus: estimate over truth for both rules, the spread by document, and calibrated."""
    print(f"\n### {name}\n")
    print("| corpus | documents | tokens | plain rule | fast | worst documents | calibrated |")
    print("|---|---|---|---|---|---|---|")

    def exact(text: str) -> int:
        return precise.text_tokens(text, name) or 0

    for kind, texts in kinds.items():
        truths = [exact(text) for text in texts]
        guesses = [text_tokens(text, name) for text in texts]
        total = sum(truths)
        each = [guess / max(1, truth) for guess, truth in zip(guesses, truths, strict=True)]
        learnt = calibrated(texts, exact)
        ratios = f"{sum(map(plain_rule, texts)) / total:.2f} | {sum(guesses) / total:.3f}"
        spread = f"{min(each):.2f} to {max(each):.2f}"
        after = "" if learnt is None else f"{learnt:.3f}"
        print(f"| {kind} | {len(texts)} | {total:,} | {ratios} | {spread} | {after} |")


def speed(kinds: dict[str, list[str]], precise: Precise) -> None:
    """MB/s by corpus, and by size on logs."""
    print("\n### Speed, MB/s on one core\n")
    print("| corpus | fast | tiktoken |")
    print("|---|---|---|")
    for kind, texts in kinds.items():
        some = [text[:SPEED_CHARS] for text in texts[:20]]
        rates = [
            megabytes_per_second(text_tokens, some),
            megabytes_per_second(lambda text: precise.text_tokens(text, "o200k_base"), some),
        ]
        print(f"| {kind} | {rates[0]:.0f} | {rates[1]:.0f} |")
    log = max((text for text in kinds["logs"] if text.isascii()), key=len)
    print("\n| characters of an ASCII log | fast, µs | MB/s |")
    print("|---|---|---|")
    for size in SIZES:
        texts = [log[at : at + size] for at in range(0, min(len(log), SPEED_CHARS), size)][:200]
        rate = megabytes_per_second(text_tokens, texts)
        print(f"| {size:,} | {size / rate:.0f} | {rate:.0f} |")


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="directory of the shared test data")
    args = parser.parse_args()
    if not args.data.is_dir():
        parser.error(f"no test data at {args.data}")
    precise = Precise()
    kinds = corpora(args.data)
    for name in ENCODINGS:
        if not precise.load(name):
            parser.error(f"{name} is not installed")
        accuracy(kinds, precise, name)
    speed(kinds, precise)


if __name__ == "__main__":
    main()
