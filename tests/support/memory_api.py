"""The memory API as a caller sees it: one key, perhaps a user behind it, and JSON both ways."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import orjson

from tests.support.chat import auth, fresh_key
from tests.support.raw_http import RawReply, fetch
from tests.support.upstream import Headers

ROOT = "/v1/memory"


@dataclass
class Api:
    """Requests of one caller to the gateway on `port`."""

    port: int
    key: str = field(default_factory=fresh_key)
    user: str = ""

    def headers(self, *more: tuple[str, str]) -> Headers:
        """The credential, the user, and `more`."""
        return auth(self.key, *([("X-Memory-User", self.user)] if self.user else []), *more)

    def raw(self, method: str, path: str, body: bytes = b"", *more: tuple[str, str]) -> RawReply:
        """One request below `/v1/memory`."""
        return fetch(self.port, method, ROOT + path, body, self.headers(*more))

    def call(self, method: str, path: str, body: Any = None, *more: tuple[str, str], status: int = 200) -> Any:
        """The same with JSON; asserts the status and gives the answer's document."""
        reply = self.raw(method, path, b"" if body is None else orjson.dumps(body), *more)
        assert reply.status == status, (method, path, reply.status, reply.body)
        return orjson.loads(reply.body)

    def add(self, content: str, *more: tuple[str, str]) -> dict[str, Any]:
        """Remember a sentence; the entry."""
        entry: dict[str, Any] = self.call("POST", "/facts", {"content": content}, *more, status=201)["entry"]
        return entry

    def contents(self, query: str = "") -> list[str]:
        """What long-term memory holds, newest first."""
        return [entry["content"] for entry in self.call("GET", f"/facts{query}")["data"]]

    def search(self, text: str, **query: str) -> list[str]:
        """What a search finds, best first."""
        more = "".join(f"&{name}={quote(value, safe='')}" for name, value in query.items())
        found = self.call("GET", f"/search?q={quote(text, safe='')}{more}")
        return [hit["entry"]["content"] for hit in found["data"]]

    def export(self) -> bytes:
        """Everything, as JSON lines."""
        reply = self.raw("GET", "/export")
        assert reply.status == 200, reply.body
        return reply.body
