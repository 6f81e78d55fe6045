"""The processes of the overhead bench: started, pinned, waited for, asked for their memory, ended."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).resolve().parents[1]
START_S = 60.0
"""Longest wait for a process to answer, in seconds."""
POLL_S = 0.002
"""Between two looks at whether it answers: small beside a start of a second."""


class LoadShape(Protocol):
    """What the load generator must know of a scenario."""

    @property
    def size(self) -> str: ...
    @property
    def stream(self) -> bool: ...
    @property
    def concurrency(self) -> int: ...


@dataclass(frozen=True)
class Pins:
    """Which processor a role runs on; none where there is only one, or it is turned off."""

    enabled: bool = True

    @property
    def active(self) -> bool:
        """Whether processes are pinned at all."""
        return self.enabled and hasattr(os, "sched_setaffinity") and len(os.sched_getaffinity(0)) >= 2

    def pin(self, process: int, *, middle: bool) -> None:
        """Put a process just started on its processor; `middle`: it stands between load and upstream."""
        if self.active:
            first, second, *_ = sorted(os.sched_getaffinity(0))
            os.sched_setaffinity(process, {first if middle else second})

    def describe(self) -> str:
        """For the report."""
        if not self.active:
            return "Processes are not pinned."
        return "What is measured has one processor, the load and the upstream share another."


def free_port() -> int:
    """A loopback port nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Running:
    """A server process on a loopback port. Use as a context manager."""

    def __init__(
        self, command: Sequence[str], port: int, probe: bytes, pins: Pins, *, middle: bool, log: Path | None = None
    ) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.started_at = time.perf_counter()
        sink: Any = log.open("ab") if log is not None else subprocess.DEVNULL
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=sink, stderr=sink, env=_environment())
        pins.pin(self.process.pid, middle=middle)
        if log is not None:
            sink.close()
        self.log = log
        self.probe = probe

    def __enter__(self) -> Running:
        self.wait_for_answer()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def wait_for_answer(self) -> float:
        """Seconds from the start to the first answer of status 200 to the probe."""
        while time.perf_counter() - self.started_at < START_S:
            if self.process.poll() is not None:
                said = self.log.read_text(errors="replace") if self.log is not None else ""
                raise RuntimeError(f"{self.process.args!r} ended with {self.process.returncode}: {said[-2000:]}")
            if self._answers():
                return time.perf_counter() - self.started_at
            time.sleep(POLL_S)
        raise RuntimeError(f"{self.process.args!r} gave no answer in {START_S:.0f} s")

    def _answers(self) -> bool:
        headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-bench-start"}
        request = urllib.request.Request(f"{self.url}/v1/chat/completions", self.probe, headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as reply:
                return int(reply.status) == 200 and b'"usage"' in reply.read()
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    def rss_mb(self) -> float:
        """Resident memory of the process, MB."""
        status = Path(f"/proc/{self.process.pid}/status")
        lines = status.read_text().splitlines() if status.exists() else []
        kilobytes = next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)
        return round(kilobytes / 1024, 1)


PROBE = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]}).encode()


def start_upstream(pins: Pins) -> Running:
    """The canned upstream."""
    port = free_port()
    command = [sys.executable, "-m", "bench.canned_upstream", "--port", str(port)]
    return Running(command, port, PROBE, pins, middle=False)


def start_relay(engine: str, upstream: str, pins: Pins) -> Running:
    """A bare relay in front of the upstream."""
    port = free_port()
    command = [sys.executable, "-m", "bench.relays", engine, "--upstream", upstream, "--port", str(port)]
    return Running(command, port, PROBE, pins, middle=True)


def start_gateway(upstream: str, directory: Path, pins: Pins) -> Running:
    """The gateway at its defaults, with a store of its own."""
    port = free_port()
    directory.mkdir(parents=True)
    flags = ["--upstream", f"{upstream}/v1", "--port", str(port), "--data-dir", str(directory / "data")]
    command = [sys.executable, "-m", "gateway", "serve", *flags]
    return Running(command, port, PROBE, pins, middle=True, log=directory / "gateway.log")


def startup(upstream: str, directory: Path, pins: Pins) -> float:
    """Seconds from starting a fresh gateway to its first answered chat request."""
    gateway = start_gateway(upstream, directory, pins)
    try:
        return gateway.wait_for_answer()
    finally:
        gateway.__exit__()


class LoadGenerator:
    """The load process: one command, one result. Use as a context manager."""

    def __init__(self, pins: Pins) -> None:
        command = [sys.executable, "-m", "bench.load"]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_environment()
        )
        pins.pin(self.process.pid, middle=False)

    def __enter__(self) -> LoadGenerator:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(15)

    def run(
        self,
        url: str,
        load: LoadShape,
        seconds: float,
        *,
        bypass: bool = False,
        stranger: bool = False,
        at_least: int = 0,
    ) -> dict[str, Any]:
        """One run; see `bench.load` for what comes back."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        command = {
            "url": url,
            "size": load.size,
            "stream": load.stream,
            "concurrency": load.concurrency,
            "seconds": seconds,
            "at_least": at_least,
            "headers": {"X-Gateway-Bypass": "all"} if bypass else {"X-Memory-User": "stranger"} if stranger else {},
        }
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        result: dict[str, Any] = json.loads(self.process.stdout.readline())
        return result


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GATEWAY_", "OPENAI_"))}
    return {**kept, "no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}
