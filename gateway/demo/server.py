"""The demo's gateway: the real one, `gateway serve` in a process of its own, with a data directory of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Self

START_S = 30.0
STOP_S = 15.0
LOG_LINES = 15
"""Of the gateway's log, shown where it failed."""
_OURS = ("GATEWAY_", "OPENAI_", "PROMETHEUS_")
"""Variables that would make the demo's gateway, or its client, another than the one described here."""

Samples = Counter[tuple[str, str]]
"""Values of counters by (name, value of the label of interest)."""


class GatewayFailed(Exception):
    """The gateway did not start, or died; carries the end of its log."""


class DemoGateway:
    """Starts on entry, stops on exit."""

    def __init__(self, directory: Path, upstream_url: str, model: str, window: int) -> None:
        self._directory = directory
        self._log = directory / "gateway.log"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        self.url = f"http://127.0.0.1:{port}"
        self._config = {
            "server": {"port": port},
            "data_dir": str(directory / "data"),
            "upstreams": [{"name": "scripted", "base_url": upstream_url, "include_usage": True}],
            "models": {model: {"window": window, "encoding": "o200k_base"}},
        }
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        config = self._directory / "config.yaml"
        config.write_text(json.dumps(self._config), encoding="utf-8")  # JSON is YAML
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gateway", "serve", "--config", str(config)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        return self

    def wait_ready(self) -> None:
        """Until it answers.

        Raises:
            GatewayFailed: it ended, or took longer than `START_S`.
        """
        import httpx

        deadline = time.monotonic() + START_S
        with httpx.Client(trust_env=False, timeout=2.0) as client:
            while time.monotonic() < deadline:
                if self._process is None or self._process.poll() is not None:
                    raise GatewayFailed(f"The gateway ended before it was ready:\n{self.log_tail()}")
                try:
                    if client.get(f"{self.url}/readyz").status_code == 200:
                        return
                except httpx.HTTPError:
                    pass
                time.sleep(0.03)
        raise GatewayFailed(f"The gateway was not ready after {START_S:.0f} s:\n{self.log_tail()}")

    def stop(self) -> None:
        """Let it finish its background work and end."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.stop()

    def log_tail(self) -> str:
        """The end of its log."""
        text = self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""
        return "\n".join(text.splitlines()[-LOG_LINES:])

    def samples(self) -> Samples:
        """Its counters, as `/metrics` tells them, summed over all labels but `how` and `outcome`."""
        import httpx
        from prometheus_client.parser import text_string_to_metric_families

        text = httpx.get(f"{self.url}/metrics", trust_env=False).text
        found: Samples = Counter()
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if family.type == "counter" and sample.name.endswith("_total"):
                    label = sample.labels.get("how") or sample.labels.get("outcome") or ""
                    found[sample.name, label] += int(sample.value)
        return found
