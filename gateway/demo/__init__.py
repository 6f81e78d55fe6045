"""`gateway demo`: long conversations through the real gateway, with no key and no network.

The gateway is a process of its own, spoken to over HTTP by the openai SDK; only the model behind it is scripted. Every
number printed was measured in that run.
"""

from __future__ import annotations

import argparse
import io
import json
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

WINDOW = 16_384
"""Tokens: small, so that a conversation of minutes shows what takes hours with a large one."""
SIGNALLED = 128
"""Plus the signal's number: the exit code, as shells count it."""
LEAST_WINDOW = 4_096
"""The smallest that chat models have had."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; 0 where every request was answered and none was too long, else 1."""
    args = _parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a log file's encoding may know neither arrows nor Chinese
    from gateway.demo.run import run
    from gateway.demo.server import GatewayFailed

    try:
        with _stopped_cleanly():
            report = run(args.window, turns=args.turns, paced=not args.fast, show=not args.json)
        if args.json:
            print(json.dumps(report.as_json(), ensure_ascii=False, indent=2), flush=True)
    except (GatewayFailed, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 1 if report.problems else 0


@contextmanager
def _stopped_cleanly() -> Iterator[None]:
    """SIGTERM unwinds the block, so that the gateway's process and its directory go too, as they do on ctrl-c."""
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(SIGNALLED + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gateway demo", description="Long conversations through the real gateway.")
    parser.add_argument("--fast", action="store_true", help="no pauses between requests")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output, and nothing else")
    parser.add_argument("--turns", type=_positive, metavar="N", help="stop after N requests")
    parser.add_argument(
        "--window", type=_window, default=WINDOW, metavar="TOKENS", help="of the model; default %(default)s"
    )
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return value


def _window(text: str) -> int:
    value = int(text)
    if value < LEAST_WINDOW:
        raise argparse.ArgumentTypeError(f"at least {LEAST_WINDOW}")
    return value
