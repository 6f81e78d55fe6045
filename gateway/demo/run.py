"""One run of the demo: starts the scripted upstream and the gateway, holds the conversations, adds up."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from gateway.demo.drive import DIRECT_KEY, GATEWAY_KEY, Driver, Turn
from gateway.demo.report import Report
from gateway.demo.screen import Screen
from gateway.demo.script import Session, load_sessions
from gateway.demo.server import DemoGateway, GatewayFailed
from gateway.demo.upstream import MODEL, ScriptedUpstream

PAUSE_S = 0.08
"""What a tool takes where somebody watches: long enough to follow by eye."""


def run(window: int, *, turns: int | None = None, paced: bool = True, show: bool = True) -> Report:
    """Hold the conversations.

    Args:
        window: of the scripted model, tokens.
        turns: requests after which to stop; all of them where None.
        paced: pause between requests where the output is a terminal.
        show: print what happens.

    Raises:
        GatewayFailed: it did not start, or stopped answering.
        OSError: no loopback port, or no temporary directory.
    """
    import httpx

    started = time.perf_counter()
    sessions = load_sessions()
    total = min(turns or len(sessions) * 1_000, sum(session.requests for session in sessions))
    replies = {key: reply for session in sessions for key, reply in session.replies.items()}
    upstream = ScriptedUpstream(replies, window)
    report = Report(window, upstream.counter.exact)
    upstream.start()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="gateway-demo-") as folder,
            DemoGateway(Path(folder), upstream.url, MODEL, window) as gateway,
            Screen(total, show=show) as screen,
        ):
            driver = Driver(gateway.url, upstream, PAUSE_S if paced and screen.watched else 0.0)
            gateway.wait_ready()
            screen.ready(gateway.url, window)
            try:
                for turn in islice(_held(driver, sessions, screen), total):
                    report.turns.append(turn)
                    screen.turn(turn)
                samples = gateway.samples()
            except httpx.HTTPError as error:
                raise GatewayFailed(f"The gateway stopped answering ({error}):\n{gateway.log_tail()}") from error
            finally:
                driver.close()
            gateway.stop()
            report.settle(upstream.of(DIRECT_KEY), upstream.of(GATEWAY_KEY), samples)
            report.seconds = time.perf_counter() - started
    finally:
        upstream.stop()
    screen.finish(report)
    return report


def _held(driver: Driver, sessions: list[Session], screen: Screen) -> Iterator[Turn]:
    for session in sessions:
        screen.session(session)
        for turn in driver.hold(session):
            yield turn
            if turn.error:
                return
