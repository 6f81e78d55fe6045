"""An upstream that costs next to nothing: canned bytes, no parsing beyond what finds a request's end.

A request whose body holds `"stream":true` gets an event stream of 32 chunks, any other a plain completion; both
carry `usage`.

    python bench/canned_upstream.py --port 9000
"""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any, cast

EVENTS = 32
"""Chunks of a streamed reply: a short answer."""
TEXT = "The importer drops the last row because the reader stops one line early; the fix is in the loop's bound. "


def _frame(status_line: bytes, kind: bytes, body: bytes) -> bytes:
    head = b"HTTP/1.1 %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n" % (status_line, kind, len(body))
    return head + body


def plain_reply() -> bytes:
    """A completion of about 900 bytes with its head."""
    message = {"role": "assistant", "content": TEXT * 5, "refusal": None}
    document: dict[str, Any] = {
        "id": "chatcmpl-canned",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "gpt-4o",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 250, "completion_tokens": 105, "total_tokens": 355},
    }
    return _frame(b"200 OK", b"application/json", json.dumps(document).encode())


def stream_reply() -> list[bytes]:
    """The head and each event of a streamed completion, chunked; one write each."""
    common = {"id": "chatcmpl-canned", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "gpt-4o"}
    words = (TEXT * 3).split(" ")[:EVENTS]
    chunks: list[dict[str, Any]] = [
        {**common, "choices": [{"index": 0, "delta": {"content": f"{word} "}, "finish_reason": None}]} for word in words
    ]
    chunks.append({**common, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    lines = [*(json.dumps(chunk) for chunk in chunks), "[DONE]"]
    events = [f"data: {line}\n\n".encode() for line in lines]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return [head, *(b"%x\r\n%b\r\n" % (len(event), event) for event in events), b"0\r\n\r\n"]


PLAIN = plain_reply()
STREAM = stream_reply()


class Canned(asyncio.Protocol):
    """One kept-alive connection; requests come one after another, Content-Length or chunked."""

    def __init__(self) -> None:
        self.head = b""
        self.missing = 0
        self.chunked = False
        self.streamed = False
        self.tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's own class does not inherit from it

    def data_received(self, data: bytes) -> None:
        if self.missing == 0 and not self.chunked:
            data = self._begin(self.head + data)
            if data is None:
                return
        self._body(data)

    def _begin(self, data: bytes) -> Any:
        end = data.find(b"\r\n\r\n")
        if end < 0:
            self.head = data
            return None
        self.head, self.streamed, self.tail = b"", False, b""
        head = data[:end].lower()
        self.chunked = b"transfer-encoding: chunked" in head
        at = head.find(b"content-length:")
        self.missing = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        return data[end + 4 :]

    def _body(self, data: bytes) -> None:
        # The mark may be split across two reads: the tail of the last one is looked at again.
        joined = self.tail + data
        self.streamed = self.streamed or b'"stream":true' in joined
        self.tail = joined[-16:]
        if self.chunked:
            self.chunked = not joined.endswith(b"0\r\n\r\n")
            done = not self.chunked
        else:
            self.missing -= len(data)
            done = self.missing <= 0
        if done:
            self.missing = 0
            self._answer()

    def _answer(self) -> None:
        if self.streamed:
            for piece in STREAM:
                self.transport.write(piece)
        else:
            self.transport.write(PLAIN)


async def serve(port: int) -> None:
    """Answer until ended."""
    server = await asyncio.get_running_loop().create_server(Canned, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


def main() -> None:
    """Run it."""
    import uvloop

    parser = argparse.ArgumentParser(description="An upstream of canned bytes.")
    parser.add_argument("--port", type=int, required=True)
    uvloop.run(serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
