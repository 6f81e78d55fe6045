"""Many thousand generated conversations through every stage, and a real gateway under varied load for its memory.

    python bench/soak.py [--count 100000] [--seed 1] [--jobs 2] [--requests 20000]

Prints how many conversations and requests went through, what the stages did, and everything that went wrong: orphaned
pairs, exceptions, requests over their window, words lost that must stay. None of these may be: the exit status is 1
then, and the seed and the number of a conversation make it again. `--requests 0` leaves the memory out, `--count 0`
the conversations.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from bench.soaking.memory import rss
from bench.soaking.run import Tally, soak

COUNT = 100_000
"""Conversations: the target of 0 orphans is set on so many."""
REQUESTS = 20_000
SHARE = 1_000
"""Conversations of one piece of work: a process starts anew after it, so caches are met both cold and warm."""


def conversations(count: int, seed: int, jobs: int) -> Tally:
    """All of them, over `jobs` processes; a line of progress on a terminal."""
    total = Tally()
    pieces = [(first, min(first + SHARE, count)) for first in range(0, count, SHARE)]
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for done in as_completed([pool.submit(soak, seed, first, last) for first, last in pieces]):
            total.add(done.result())
            if sys.stderr.isatty():
                print(f"\r{total.conversations:,} of {count:,}", end="", file=sys.stderr, flush=True)
    return total


def report(tally: Tally, seed: int, seconds: float) -> None:
    """The counts, for people."""
    print(f"{tally.conversations:,} conversations, {tally.requests:,} requests in {seconds:.0f} s, seed {seed}")
    print(f"{tally.bytes_in / 1e6:,.0f} MB in, {tally.bytes_out / 1e6:,.0f} MB out")
    print("requests on which a stage acted: " + ", ".join(f"{what} {n:,}" for what, n in tally.actions.most_common()))
    for kind in ("orphaned pairs", "exceptions", "over the window", "stages that failed"):
        print(f"{kind}: {tally.wrong.pop(kind, 0):,}")
    for kind, times in sorted(tally.wrong.items()):
        print(f"{kind}: {times:,}")
    for line in tally.named:
        print(f"  {line}")


def main() -> int:
    """Run both; 1 where anything went wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=COUNT, help="conversations")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "--requests", type=int, default=REQUESTS, help="requests to a real gateway, whose memory is read"
    )
    given = parser.parse_args()
    wrong = 0
    if given.count:
        started = time.perf_counter()
        tally = conversations(given.count, given.seed, given.jobs)
        wrong = tally.wrong.total()
        report(tally, given.seed, time.perf_counter() - started)
    if given.requests:
        wrong += rss(given.requests, given.seed)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
