"""A client that sends exactly the bytes it is given and shows exactly the bytes that come back.

Real client libraries tidy paths, headers and framing; the tests on transparency must not.
"""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from types import TracebackType

import httptools

from tests.support.upstream import WAIT_S, Headers


@dataclass
class RawReply:
    """Status, headers in order with their case, and the body without its framing."""

    status: int
    headers: Headers
    body: bytes
    complete: bool
    """False where the connection ended inside the message."""

    def header_all(self, name: str) -> list[str]:
        """Every value of a header, matched without case."""
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def header(self, name: str) -> str | None:
        """The first value of a header, or None."""
        return next(iter(self.header_all(name)), None)


class RawClient:
    """One connection to a loopback port. Times out after WAIT_S of silence."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port = port
        self._headers: Headers = []
        self._body = bytearray()
        self._complete = False
        self._parser = httptools.HttpResponseParser(self)

    def __enter__(self) -> RawClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Put bytes on the wire."""
        self.socket.sendall(data)

    def request(self, method: str, target: str, body: bytes = b"", headers: Headers | None = None) -> None:
        """Send one whole request, Content-Length framed, with these headers and no others but Host."""
        given = headers if headers is not None else [("Content-Type", "application/json")]
        self.send(request_head(method, target, [*given, ("Content-Length", str(len(body)))], self.port) + body)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        self._complete = True

    def read_some(self) -> bool:
        """One read from the wire; False at the end of the message or of the connection."""
        try:
            data = b"" if self._complete else self.socket.recv(65_536)
        except ConnectionResetError:
            return False
        if data:
            self._parser.feed_data(data)
        return bool(data)

    def read_until(self, mark: bytes) -> bytes:
        """Read on until the body holds `mark`; the body so far. Raises TimeoutError where it does not come."""
        deadline = time.monotonic() + WAIT_S
        while mark not in self._body:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{mark!r} did not come; the body so far: {bytes(self._body)!r}")
            if not self.read_some():
                raise TimeoutError(f"the connection ended before {mark!r}; the body: {bytes(self._body)!r}")
        return bytes(self._body)

    def reply(self) -> RawReply:
        """Read to the end of the message, or of the connection."""
        while self.read_some():
            pass
        status = self._parser.get_status_code()
        return RawReply(status, list(self._headers), bytes(self._body), self._complete)


def request_head(method: str, target: str, headers: Headers, port: int) -> bytes:
    """A request's head with Host first."""
    lines = [f"{method} {target} HTTP/1.1", f"Host: 127.0.0.1:{port}", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def fetch(port: int, method: str, target: str, body: bytes = b"", headers: Headers | None = None) -> RawReply:
    """One request on a connection of its own."""
    with RawClient(port) as client:
        client.request(method, target, body, headers)
        return client.reply()
