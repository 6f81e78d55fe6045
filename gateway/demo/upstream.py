"""The demo's model: an OpenAI-compatible server on loopback that answers from a script and keeps the books.

It is as strict as a real one: a request over its window, or with a tool call parted from its reply, is refused with a
400. Each caller key has its own books, so that the same conversation can be sent through the gateway and past it.
What the script does not know is a side call of the gateway's, and gets a summary made of the request's own words.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from gateway.demo.meter import Counter, Meter, Usage
from gateway.demo.script import newest_key
from gateway.types import ChatMessage

MODEL = "demo-model"
START_S = 10.0
WORDS_A_CHUNK = 4
"""A streamed reply comes in pieces of so many words."""
SUMMARY_CHARS = 900
_PATH = re.compile(r"(?<![\w/.])(?:[\w.-]*/)+[\w-]+\.\w{1,5}\b")
_TROUBLE = re.compile(r"[^\n]*(?:[Ee]rror|FAILED|failed|错误)[^\n]*")


@dataclass(slots=True)
class Seen:
    """One request that arrived."""

    messages: list[ChatMessage]
    usage: Usage
    side: bool
    """A summary that the gateway asked for."""
    over: bool
    broken: bool


@dataclass(slots=True)
class Books:
    """What one caller sent."""

    meter: Meter
    seen: list[Seen] = field(default_factory=list)


class ScriptedUpstream:
    """The server; `start` and `stop` run it in a thread."""

    def __init__(self, replies: Mapping[str, ChatMessage], window: int) -> None:
        self.window = window
        self.counter = Counter()
        self.books: dict[str, Books] = {}
        self._replies = replies
        self._server: Any = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Its base URL, once started."""
        host, port = self._server.servers[0].sockets[0].getsockname()[:2]
        return f"http://{host}:{port}/v1"

    def start(self) -> None:
        """Listen on a free loopback port."""
        import uvicorn

        app = Starlette(routes=[Route("/v1/chat/completions", self._chat, methods=["POST"])])
        config = uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, access_log=False, lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, name="scripted upstream", daemon=True)
        self._thread.start()
        deadline = time.monotonic() + START_S
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise OSError("the scripted upstream could not listen on 127.0.0.1")
            time.sleep(0.01)

    def stop(self) -> None:
        """Stop listening."""
        if self._thread is not None:
            self._server.should_exit = True
            self._thread.join(START_S)

    def of(self, key: str) -> Books:
        """The books of one caller."""
        return self.books.setdefault(key, Books(Meter(self.counter)))

    async def _chat(self, request: Request) -> Response:
        body = await request.json()
        messages: list[ChatMessage] = body["messages"]
        books = self.of(request.headers.get("authorization", "").removeprefix("Bearer "))
        reply = self._replies.get(newest_key(messages))
        side = reply is None
        said = reply or {"role": "assistant", "content": summary_of(messages)}
        prompt, cached = books.meter.prompt(messages, body.get("tools") or ())
        seen = Seen(messages, Usage(prompt, cached, self._written(said)), side, prompt > self.window, False)
        seen.broken = not pairs_whole(messages)
        books.seen.append(seen)
        if seen.over or seen.broken:
            return self._refusal(seen)
        if body.get("stream"):
            usage = bool((body.get("stream_options") or {}).get("include_usage"))
            return StreamingResponse(_events(said, seen.usage if usage else None), media_type="text/event-stream")
        finish = "tool_calls" if said.get("tool_calls") else "stop"
        choice = {"index": 0, "message": said, "finish_reason": finish}
        return JSONResponse(_completion("chat.completion", [choice], seen.usage))

    def _written(self, said: ChatMessage) -> int:
        calls = said.get("tool_calls")
        return self.counter.text(str(said.get("content") or "")) + (
            self.counter.text(json.dumps(calls)) if calls else 0
        )

    def _refusal(self, seen: Seen) -> Response:
        error = {"type": "invalid_request_error", "param": "messages", "code": None, "message": ""}
        if seen.over:
            error["code"] = "context_length_exceeded"
            error["message"] = (
                f"This model's maximum context length is {self.window} tokens. However, your messages resulted in "
                f"{seen.usage.prompt} tokens. Please reduce the length of the messages."
            )
        else:
            error["message"] = "An assistant message with 'tool_calls' must be followed by tool messages for each."
        return JSONResponse({"error": error}, status_code=400)


def pairs_whole(messages: Sequence[ChatMessage]) -> bool:
    """Whether each tool call is answered right after it, and each tool message answers one."""
    waiting: set[str] = set()
    for message in messages:
        if message.get("role") == "tool":
            if message.get("tool_call_id") not in waiting:
                return False
            waiting.discard(message["tool_call_id"])
        elif waiting:
            return False
        waiting |= {call["id"] for call in message.get("tool_calls") or ()}
    return not waiting


def summary_of(messages: Sequence[ChatMessage]) -> str:
    """What a summariser would keep: the goal, the files, the last trouble and the state, in the texts' own words."""
    texts = [message["content"] for message in messages[:-1] if isinstance(message.get("content"), str)]
    told = "\n".join(texts)
    asked = [str(message["content"]) for message in messages[:-1] if message.get("role") == "user"]
    calls = [call["function"]["arguments"] for message in messages for call in message.get("tool_calls") or ()]
    files = list(dict.fromkeys(_PATH.findall("\n".join([*calls, *asked]))))[-12:]
    trouble = list(dict.fromkeys(line.strip()[:120] for line in _TROUBLE.findall(told)))[-4:]
    said = [str(m["content"]) for m in messages[:-1] if m.get("role") == "assistant" and m.get("content")]
    chinese = sum("一" <= sign <= "鿿" for sign in (asked[0] if asked else "")) > 10
    heads = ("目标", "文件", "错误", "进展") if chinese else ("Goal", "Files", "Errors", "Progress")
    parts = (asked[0][:300] if asked else "", ", ".join(files), "; ".join(trouble), " ".join(said[-3:])[-400:])
    text = "\n".join(f"{head}: {part}" for head, part in zip(heads, parts, strict=True) if part)
    return text[:SUMMARY_CHARS] or "Nothing so far."


def _completion(kind: str, choices: list[Any], usage: Usage | None) -> dict[str, Any]:
    told = usage and {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }
    body = {"id": "chatcmpl-demo", "object": kind, "created": int(time.time()), "model": MODEL, "choices": choices}
    return {**body, "usage": told} if told else body


def _deltas(said: ChatMessage) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    words = re.findall(r"\S+\s*", str(said.get("content") or ""))
    for start in range(0, len(words), WORDS_A_CHUNK):
        yield {"content": "".join(words[start : start + WORDS_A_CHUNK])}
    for index, call in enumerate(said.get("tool_calls") or ()):
        yield {"tool_calls": [{"index": index, **call}]}


async def _events(said: ChatMessage, usage: Usage | None) -> Any:
    def event(choices: Iterable[Any], usage: Usage | None = None) -> bytes:
        body = _completion("chat.completion.chunk", list(choices), usage)
        return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"

    for delta in _deltas(said):
        yield event([{"index": 0, "delta": delta, "finish_reason": None}])
    yield event([{"index": 0, "delta": {}, "finish_reason": "tool_calls" if said.get("tool_calls") else "stop"}])
    if usage is not None:
        yield event([], usage)
    yield b"data: [DONE]\n\n"
