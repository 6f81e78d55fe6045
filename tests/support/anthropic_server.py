"""A scripted server that speaks Anthropic's Messages protocol over real HTTP on loopback.

It checks each request as the real one does (roles alternate, every `tool_use` is answered by `tool_result` in the next
message, system text stands outside the messages, `max_tokens` is there) and answers 400 where it is wrong. Replies
are queued; each is sent plain or as the event stream, as the request asks. It records requests and disconnects.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

Block = dict[str, Any]


@dataclass
class Scripted:
    """One reply. `blocks` are Anthropic's content blocks, whole; streamed, their text goes out in small pieces.

    `status` other than 200 answers with `error`. `error_after` breaks the stream with an error event after that many
    events. `delay_s` waits before the head, `pace_s` between events.
    """

    blocks: list[Block] = field(default_factory=list)
    stop_reason: str = "end_turn"
    usage: dict[str, int] = field(default_factory=lambda: {"input_tokens": 10, "output_tokens": 5})
    status: int = 200
    error: dict[str, Any] | None = None
    error_after: int | None = None
    delay_s: float = 0.0
    pace_s: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)


def error_body(kind: str, message: str) -> dict[str, Any]:
    """Anthropic's error shape."""
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


class AnthropicServer:
    """See the module. `requests` are the bodies as they came, `disconnects` counts clients that hung up early."""

    def __init__(self) -> None:
        self.replies: deque[Scripted] = deque()
        self.requests: list[dict[str, Any]] = []
        self.request_headers: list[dict[str, str]] = []
        self.disconnects = 0
        self.arrived = threading.Event()
        self.disconnected = threading.Event()
        self.url = ""

    def say(self, *blocks: Block, **more: Any) -> None:
        """Queue a reply."""
        self.replies.append(Scripted(list(blocks), **more))

    async def messages(self, request: web.Request) -> web.StreamResponse:
        """POST /v1/messages."""
        body = orjson.loads(await request.read())
        self.requests.append(body)
        self.arrived.set()
        self.request_headers.append({name.lower(): value for name, value in request.headers.items()})
        fault = fault_in(body)
        if fault is not None:
            return web.json_response(error_body("invalid_request_error", fault), status=400)
        reply = self.replies.popleft()
        try:
            await asyncio.sleep(reply.delay_s)
            if reply.status != 200:
                return web.json_response(reply.error, status=reply.status, headers=reply.headers)
            if body.get("stream"):
                return await self._stream(request, body, reply)
        except (asyncio.CancelledError, ConnectionError):
            self.disconnects += 1
            self.disconnected.set()
            raise
        return web.json_response(plain_message(body, reply))

    async def _stream(self, request: web.Request, body: dict[str, Any], reply: Scripted) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        for number, event in enumerate(events_of(body, reply)):
            if number == reply.error_after:
                event = reply.error or error_body("overloaded_error", "Overloaded")
            data = b"event: " + event["type"].encode() + b"\ndata: " + orjson.dumps(event) + b"\n\n"
            await response.write(data)
            if event["type"] == "error":
                break
            await asyncio.sleep(reply.pace_s)
        await response.write_eof()
        return response


def fault_in(body: dict[str, Any]) -> str | None:
    """What the real server would refuse, in its words; None where the request is good."""
    if not isinstance(body.get("max_tokens"), int):
        return "max_tokens: Field required"
    system = body.get("system", [])
    if not isinstance(system, str | list):
        return "system: Input should be a valid string or list"
    waiting: set[str] = set()
    previous = "assistant"
    for index, message in enumerate(body["messages"]):
        role, content = message["role"], message["content"]
        if role not in ("user", "assistant"):
            return f'messages: Unexpected role "{role}". The Messages API accepts a top-level `system` parameter'
        if role == previous:
            return f"messages.{index}: roles must alternate"
        previous = role
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        results = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
        if waiting - results:
            return f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after"
        if results - waiting:
            return f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks"
        waiting = {block["id"] for block in blocks if block["type"] == "tool_use"}
        for block in blocks:
            if block["type"] == "text" and not block["text"]:
                return f"messages.{index}: text content blocks must be non-empty"
            if block["type"] == "tool_use" and not isinstance(block["input"], dict):
                return f"messages.{index}: tool_use.input: Input should be a valid dictionary"
    return None


def plain_message(body: dict[str, Any], reply: Scripted) -> dict[str, Any]:
    """The whole message."""
    return {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": reply.blocks,
        "stop_reason": reply.stop_reason,
        "stop_sequence": None,
        "usage": reply.usage,
    }


def events_of(body: dict[str, Any], reply: Scripted) -> Iterator[dict[str, Any]]:
    """The same message as a stream of events."""
    start = {
        **plain_message(body, reply),
        "content": [],
        "stop_reason": None,
        "usage": {**reply.usage, "output_tokens": 1},
    }
    yield {"type": "message_start", "message": start}
    yield {"type": "ping"}
    for index, block in enumerate(reply.blocks):
        yield {"type": "content_block_start", "index": index, "content_block": opening_of(block)}
        for delta in deltas_of(block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": reply.stop_reason, "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": reply.usage["output_tokens"]}}
    yield {"type": "message_stop"}


def opening_of(block: Block) -> Block:
    """A block as the stream opens it."""
    if block["type"] == "text":
        return {"type": "text", "text": ""}
    if block["type"] == "thinking":
        return {"type": "thinking", "thinking": "", "signature": ""}
    return {**block, "input": {}}


def deltas_of(block: Block) -> Iterator[dict[str, Any]]:
    """Its content in pieces."""
    if block["type"] == "text":
        yield from ({"type": "text_delta", "text": piece} for piece in pieces(block["text"]))
    elif block["type"] == "thinking":
        yield from ({"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"]))
        yield {"type": "signature_delta", "signature": block["signature"]}
    else:
        text = orjson.dumps(block["input"]).decode()
        yield from ({"type": "input_json_delta", "partial_json": piece} for piece in pieces(text))


def pieces(text: str, size: int = 7) -> Iterator[str]:
    """`text` in pieces of `size` characters."""
    for at in range(0, len(text), size):
        yield text[at : at + size]


@contextmanager
def anthropic_server() -> Iterator[AnthropicServer]:
    """Run a server in a thread of its own, on a free loopback port."""
    server = AnthropicServer()
    loop = asyncio.new_event_loop()
    started = threading.Event()
    stop = asyncio.Event()

    async def serve() -> None:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/messages", server.messages)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1.0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        started.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    started.wait(10)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()
