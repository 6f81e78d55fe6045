"""Start, find and end the process that litellm lives in (`provider_worker.py`)."""

from __future__ import annotations

import asyncio
import secrets
import subprocess
import sys
from dataclasses import dataclass
from typing import Final

import orjson

from gateway.errors import UpstreamUnreachable

ANSWERED: Final = "x-provider-answer"
"""A header on every deliberate answer of the process, which tells one from a crash."""

_STOP_S: Final = 5.0
"""How long a process that was asked to end may take, before it is killed."""

_BOOT: Final = (
    "import json, sys; start = json.loads(sys.stdin.buffer.readline()); sys.path[:] = start['path']; "
    "from gateway.upstream.provider_worker import main; main(start['token'])"
)
"""The parent's import path is handed over, so that the child finds the same gateway from any directory."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where the process listens, and what it wants to see."""

    url: str
    authorization: str


class ProviderProcess:
    """One child process, started when it is first needed and again if it died. Share one among all providers."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._address: Address | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._child.pid if self._child is not None and self._child.poll() is None else None

    async def address(self) -> Address:
        """Where it listens; starts it where it doesn't run.

        Raises:
            UpstreamUnreachable: it can't be started, or was closed.
        """
        if self._address is not None and self.pid is not None:
            return self._address
        async with self._lock:
            if self._address is None or self.pid is None:
                if self._closed:
                    raise UpstreamUnreachable("The gateway is shutting down.")
                self._address = await asyncio.to_thread(self._start)
            return self._address

    async def close(self) -> None:
        """End it; what it still does is cut off."""
        self._closed = True
        async with self._lock:
            if self._child is not None:
                await asyncio.to_thread(_end, self._child)
                self._child = None

    def _start(self) -> Address:
        if self._child is not None:
            _end(self._child)  # it died; its pipes are still ours
        token = secrets.token_urlsafe(32)
        child = subprocess.Popen(
            [sys.executable, "-c", _BOOT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self._child = child
        try:
            if child.stdin is None or child.stdout is None:
                raise UpstreamUnreachable("The provider process has no pipes.")
            child.stdin.write(orjson.dumps({"path": sys.path, "token": token}) + b"\n")
            child.stdin.flush()
            port = int(child.stdout.readline())
        except (OSError, ValueError) as error:
            _end(child)
            raise UpstreamUnreachable("The provider process did not start.") from error
        return Address(f"http://127.0.0.1:{port}", f"Bearer {token}")


def _end(child: subprocess.Popen[bytes]) -> None:
    """Close its input, which ends it; then make sure."""
    if child.stdin is not None:
        child.stdin.close()
    try:
        child.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    if child.stdout is not None:
        child.stdout.close()
