"""Chat requests as a client sends them, each test under a key of its own so that no memory leaks between tests."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any

import orjson

from tests.support.builders import Message
from tests.support.raw_http import RawReply, fetch
from tests.support.upstream import WAIT_S, Headers

CHAT = "/v1/chat/completions"
MODEL = "gpt-4o-mini"


def fresh_key() -> str:
    """An API key nobody has used before."""
    return f"sk-test-{uuid.uuid4().hex}"


def chat_body(messages: Any, **fields: Any) -> bytes:
    """A chat request's bytes."""
    return orjson.dumps({"model": MODEL, "messages": messages, **fields})


def auth(key: str, *more: tuple[str, str]) -> Headers:
    """The headers of a JSON request under a key."""
    return [("Authorization", f"Bearer {key}"), ("Content-Type", "application/json"), *more]


def send_chat(
    port: int, messages: list[Message], key: str | None = None, headers: Headers | None = None, **fields: Any
) -> RawReply:
    """One chat request over a connection of its own, and its whole reply."""
    return fetch(port, "POST", CHAT, chat_body(messages, **fields), auth(key or fresh_key(), *(headers or [])))


def eventually(condition: Callable[[], object], timeout: float = WAIT_S, every: float = 0.1) -> bool:
    """Try until it holds; False where it never does in `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(every)
    return True


def error_of(reply: RawReply) -> dict[str, Any]:
    """The `error` object, checked for OpenAI's shape."""
    document = orjson.loads(reply.body)
    assert set(document) == {"error"}, document
    error: dict[str, Any] = document["error"]
    assert isinstance(error["message"], str)
    assert error["message"]
    assert isinstance(error["type"], str)
    assert "param" in error
    assert "code" in error
    return error
