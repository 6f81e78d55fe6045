"""A real gateway: `python -m gateway serve` in a process of its own, on a free loopback port, with a configuration
file.

The front-door tests know it only by its command line, its YAML and its HTTP surface, as a stranger would.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import yaml

START_S = 40.0
"""Longest wait for the first 200 from /readyz, in seconds: a loaded 2-core machine, not a target."""
STOP_S = 30.0
"""Longest wait for the process to end after SIGTERM, in seconds."""

PORTS = (10_000, 32_000)
"""Linux gives outgoing connections ports from 32,768 on, others from 49,152 on."""

_OURS = ("GATEWAY_", "OPENAI_", "ANTHROPIC_")
_PROXIES = {"http_proxy", "https_proxy", "all_proxy", "no_proxy"}


class GatewayDied(AssertionError):
    """The process ended, or never answered; carries what it printed."""


def free_port() -> int:
    """A loopback port nobody listens on right now, nor is likely to until the gateway does.

    Below the range that systems give to outgoing connections, which could take it in between; drawn by the system,
    since hypothesis seeds `random` alike in every process.
    """
    drawn = random.SystemRandom()
    while True:
        port = drawn.randrange(*PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def clean_environment(home: Path, extra: dict[str, str] | None = None) -> dict[str, str]:
    """This environment without keys, proxies and gateway settings of the machine, with a home of its own."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(_OURS) and name.lower() not in _PROXIES
    }
    return {**kept, "HOME": str(home), "PYTHONUNBUFFERED": "1", **(extra or {})}


def default_config(upstream_url: str, data_dir: Path, **changes: Any) -> dict[str, Any]:
    """The least configuration that points at one upstream; `changes` replace whole sections."""
    return {
        "server": {"host": "127.0.0.1", "port": free_port()},
        "data_dir": str(data_dir),
        "upstreams": [{"name": "default", "base_url": f"{upstream_url}/v1", "models": ["*"]}],
        **changes,
    }


def run_command(*arguments: str, home: Path, timeout: float = START_S) -> subprocess.CompletedProcess[str]:
    """`python -m gateway …` to its end, output captured."""
    return subprocess.run(
        [sys.executable, "-m", "gateway", *arguments],
        env=clean_environment(home),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


class GatewayProcess:
    """Start, look at, and stop one gateway. Use as a context manager."""

    def __init__(
        self,
        config: dict[str, Any],
        directory: Path,
        environment: dict[str, str] | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.config = config
        self.directory = directory
        self.config_path = directory / "config.yaml"
        self.log_path = directory / "output.log"
        self.environment = environment
        self.arguments = arguments
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.config["server"]["port"])

    @property
    def url(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def data_dir(self) -> Path:
        """Where it keeps its files."""
        return Path(self.config["data_dir"])

    def command(self) -> list[str]:
        """What is run."""
        return [sys.executable, "-m", "gateway", "serve", "--config", str(self.config_path), *self.arguments]

    def start_only(self) -> None:
        """Run it, and wait for nothing."""
        self.config_path.write_text(yaml.safe_dump(self.config, allow_unicode=True, sort_keys=False), encoding="utf-8")
        environment = clean_environment(self.directory, self.environment)
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(), env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def start(self) -> None:
        """Run it and wait until it is ready. Raises GatewayDied with its output."""
        self.start_only()
        assert self.process is not None
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise GatewayDied(f"exit status {self.process.returncode} before it was ready:\n{self.output()}")
            if self._ready():
                return
            time.sleep(0.05)
        self.kill()
        raise GatewayDied(f"not ready after {START_S:.0f} s:\n{self.output()}")

    def stop(self) -> int:
        """SIGTERM, then wait for the end; returns the exit status. Raises GatewayDied where it does not end."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Wait for the end; returns the exit status."""
        assert self.process is not None
        try:
            return self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise GatewayDied(f"still running {STOP_S:.0f} s after SIGTERM:\n{self.output()}") from None

    def kill(self) -> None:
        """SIGKILL to it and its workers."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def output(self) -> str:
        """All it has printed."""
        return self.log_path.read_text(encoding="utf-8", errors="replace") if self.log_path.exists() else ""

    def __enter__(self) -> GatewayProcess:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill() if self.process is None else self._end()

    def _end(self) -> None:
        try:
            self.stop()
        finally:
            self.kill()

    def _ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", timeout=2.0, trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False
