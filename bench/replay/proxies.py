"""Starting and stopping the proxies under test, each as a process of its own with an empty home."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

START_TIMEOUT_S = 120.0  # the slowest peer loads its models for some 15 s on an idle machine
STOP_TIMEOUT_S = 10.0
REPOSITORY = Path(__file__).resolve().parents[2]


class StartError(Exception):
    """The process ended, or never listened; the message carries the end of its output."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a proxy is started with: its port, the upstream without `/v1`, the window in tokens, an empty folder."""

    port: int
    upstream: str
    window: int
    home: Path


@dataclass(frozen=True, slots=True)
class Launch:
    """A command, and what to add to its environment."""

    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy in the table.

    `per_window`: whether it is told the window, so that each window is a run of its own. `tenants`: whether it keeps
    callers with different keys apart, so that sessions which begin alike can go through one process.
    """

    name: str
    per_window: bool
    launch: Callable[[Setup], Launch]
    tenants: bool = False


def breakwater() -> Proxy:
    """This package's gateway at its defaults, told only where the upstream is and how large the window is."""

    def launch(setup: Setup) -> Launch:
        config = setup.home / "config.yaml"
        settings = {
            "data_dir": str(setup.home / "data"),
            "upstreams": [{"name": "default", "base_url": f"{setup.upstream}/v1", "models": ["*"]}],
            "models": {"*": {"window": setup.window}},
        }
        config.write_text(json.dumps(settings))  # JSON is YAML
        argv = [sys.executable, "-m", "gateway", "serve", "--config", str(config), "--port", str(setup.port)]
        return Launch(argv, {"PYTHONPATH": str(REPOSITORY)})

    return Proxy("breakwater", True, launch, tenants=True)


@contextlib.contextmanager
def running(launch: Launch, port: int, home: Path, ready: str = "/v1/models") -> Iterator[str]:
    """Run a server until the block ends; gives its URL. Raises `StartError` where it does not come up."""
    home.mkdir(parents=True, exist_ok=True)
    log = home / "output.log"
    # No variable of the caller's but these: a key or a proxy setting would change what is measured.
    env = {key: os.environ[key] for key in ("PATH", "LANG", "TIKTOKEN_CACHE_DIR") if key in os.environ}
    env |= {"HOME": str(home), "NO_PROXY": "127.0.0.1,localhost", **launch.env}
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                launch.argv, env=env, cwd=home, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        except OSError as error:
            raise StartError(str(error)) from error
    try:
        _wait(process, port, log, ready)
        yield f"http://127.0.0.1:{port}"
    finally:
        _stop(process)


def _wait(process: subprocess.Popen[bytes], port: int, log: Path, ready: str) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise StartError(f"exit code {process.returncode}: {_tail(log)}")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", ready)
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            time.sleep(0.1)
        else:
            return
        finally:
            connection.close()
    raise StartError(f"silent for {START_TIMEOUT_S:.0f} s: {_tail(log)}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)  # its own session: itself and its workers, nothing else
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            continue
        return


def _tail(log: Path) -> str:
    return log.read_text("utf-8", "replace")[-500:].strip()
