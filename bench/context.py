"""What the gateway does to the bill of an agent, beside its peers and the usual makeshifts.

    python -m bench.context                               the gateway and the baselines, every conversation and window
    python -m bench.context --peers                       its peers from PyPI as well, through the same mock upstream
    python -m bench.context --only 'swe-6' --windows 32k  one session at one window
    python -m bench.context --proxy name=http://127.0.0.1:9000 --upstream-port 9100   whatever listens there

Conversations are replayed turn by turn over HTTP: each assistant turn is one request with all before it, and the agent
goes on as recorded. What reaches the mock upstream is counted and billed there (`bench/replay/ledger.py` has the rule).
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import json
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench import peers
from bench.processes import free_port
from bench.replay import proxies, strategies
from bench.replay.conversations import TRACE, Conversation, load_all
from bench.replay.counting import TokenCounter
from bench.replay.ledger import Bill
from bench.replay.report import DIRECT, Report
from bench.replay.runner import Outcome, Replay, replay_baseline

DATA = proxies.REPOSITORY.parent / "shared" / "data"
WINDOWS = "8k,16k,32k,128k"


class Bench:
    """One run: the conversations chosen, the mock upstream, and the outcomes as they come."""

    def __init__(self, options: argparse.Namespace, conversations: Sequence[Conversation], work: Path) -> None:
        self._options = options
        self._conversations = conversations
        self._work = work
        self.windows: list[int] = options.windows
        self.outcomes: list[Outcome] = []

    def run(self) -> Report:
        """The baselines, then every proxy."""
        self._baselines()
        with self._upstream() as upstream:
            for name, url in self._options.proxy:
                for window in self.windows:
                    self._replay(name, window, url, upstream, self._conversations)
            for proxy in self._proxies():
                runs: list[int | None] = [*self.windows] if proxy.per_window else [None]
                for told in runs:
                    self._start_and_replay(proxy, told, upstream)
        return Report(self.outcomes, self.windows)

    def _baselines(self) -> None:
        counter = TokenCounter()
        fixed: dict[str, strategies.Strategy] = {
            DIRECT: strategies.no_gateway,
            "sliding window of 20": strategies.sliding_window,
            "snip over 3,000": strategies.snip_all,
        }
        for conversation in self._conversations:
            for name, strategy in fixed.items():
                self.outcomes.append(replay_baseline(conversation, name, strategy, counter))
            for window in self.windows:
                dropping = strategies.drop_oldest(window, lambda message: counter.message(message).rendered)
                self.outcomes.append(replay_baseline(conversation, "drop oldest", dropping, counter, window))

    def _proxies(self) -> Iterator[proxies.Proxy]:
        if not self._options.no_ours:
            yield proxies.breakwater()
        for peer in peers.chosen(self._options.peers or []):
            _say(f"{peer.name}: installing into {peers.ENVIRONMENTS / peer.name}")
            problem = peers.install(peer)
            if not problem:
                _say(f"{peer.name} {peers.version(peer)}")
            for proxy in peer.proxies:
                if problem:
                    self._failed(proxy.name, problem, None, self._conversations)
                else:
                    yield proxy

    def _start_and_replay(self, proxy: proxies.Proxy, window: int | None, upstream: str) -> None:
        for number, conversations in enumerate(self._apart(proxy)):
            port = free_port()
            home = self._work / f"{proxy.name}-{window}-{number}".replace(" ", "_")
            home.mkdir(parents=True)
            try:
                launch = proxy.launch(proxies.Setup(port, upstream, window or max(self.windows), home))
                with proxies.running(launch, port, home) as url:
                    self._replay(proxy.name, window, url, upstream, conversations)
            except proxies.StartError as error:
                self._failed(proxy.name, f"not started: {error}", window, conversations)

    def _apart(self, proxy: proxies.Proxy) -> list[Sequence[Conversation]]:
        """Which conversations share a process: one that knew `tau-all` has a summary of `tau-6` for nothing."""
        if proxy.tenants:
            return [self._conversations]
        traces = [conversation for conversation in self._conversations if conversation.kind == TRACE]
        others = [[conversation] for conversation in self._conversations if conversation.kind != TRACE]
        return [*([traces] if traces else []), *others]

    def _replay(
        self, name: str, window: int | None, url: str, upstream: str, conversations: Sequence[Conversation]
    ) -> None:
        replay = Replay(name, window, url, upstream, self._options.think_ms / 1000, self._options.budget_s)
        for conversation in conversations:
            outcome = replay.run(conversation)
            self.outcomes.append(outcome)
            note = f"; {outcome.problem}" if outcome.problem else ""
            _say(f"{name} at {window or 'any window'}: {conversation.name}, {outcome.seconds:.1f} s{note}")

    def _failed(self, name: str, problem: str, window: int | None, conversations: Sequence[Conversation]) -> None:
        """A proxy that could not run keeps its rows, with the reason in place of figures."""
        _say(f"{name}: {problem}")
        self.outcomes += [
            Outcome(c.name, c.kind, name, window, Bill(), problem=problem, proxy=True) for c in conversations
        ]

    @contextlib.contextmanager
    def _upstream(self) -> Iterator[str]:
        port = self._options.upstream_port or free_port()
        argv = [sys.executable, "-m", "bench.upstream", "--port", str(port), "--delay-ms", str(self._options.delay_ms)]
        launch = proxies.Launch(argv, {"PYTHONPATH": str(proxies.REPOSITORY)})
        with proxies.running(launch, port, self._work / "upstream") as url:
            yield url


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as told; exit code 1 where `--check` is given and a target is missed."""
    options = _parser().parse_args(arguments)
    if options.peers == []:
        options.peers = [peer.name for peer in peers.peers()]
    if not options.data.is_dir():
        sys.exit(f"no test data at {options.data}: name its folder with --data")
    patterns = options.only.split(",")
    conversations = [c for c in load_all(options.data) if any(fnmatch.fnmatch(c.name, p) for p in patterns)]
    if not conversations:
        sys.exit(f"no conversation is called {options.only}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is stopped
    with tempfile.TemporaryDirectory(prefix="bench-context-", ignore_cleanup_errors=True) as work:
        bench = Bench(options, conversations, Path(work))
        report = bench.run()
    print(report.markdown())
    if options.json:
        options.json.write_text(json.dumps(report.as_json(), indent=1) + "\n")
    if options.plots:
        from bench.replay.plots import draw

        draw(bench.outcomes, bench.windows, options.plots)
    return 1 if options.check and report.missed() else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [peer.name for peer in peers.peers()]
    parser.add_argument(
        "--only", default="*", metavar="NAMES", help="conversations, as names or globs with commas between"
    )
    parser.add_argument("--windows", type=_windows, default=WINDOWS, help=f"in tokens, by default {WINDOWS}")
    parser.add_argument("--peers", nargs="*", metavar="PEER", help=f"these peers, or all: {', '.join(names)}")
    parser.add_argument("--no-ours", action="store_true", help="leave the gateway out")
    parser.add_argument("--proxy", type=_proxy, action="append", default=[], metavar="NAME=URL", help="a running proxy")
    parser.add_argument("--upstream-port", type=int, default=0, help="the mock's port, by default a free one")
    parser.add_argument("--delay-ms", type=float, default=0.0, help="how long the mock takes to answer")
    parser.add_argument("--think-ms", type=float, default=20.0, help="the agent's pause before each turn")
    parser.add_argument("--budget-s", type=float, default=600.0, help="longest a conversation may take a proxy")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with trajectories/ and tool_outputs/")
    parser.add_argument("--json", type=Path, help="write every outcome here")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="draw tokens per turn (matplotlib)")
    parser.add_argument("--check", action="store_true", help="exit 1 where a target is missed")
    return parser


def _windows(text: str) -> list[int]:
    return [
        int(part.lower().removesuffix("k")) * (1000 if part.lower().endswith("k") else 1) for part in text.split(",")
    ]


def _proxy(text: str) -> tuple[str, str]:
    name, found, url = text.partition("=")
    if not found:
        raise argparse.ArgumentTypeError(f"{text} is not NAME=URL")
    return name, url.rstrip("/").removesuffix("/v1")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
