"""A server on loopback that answers fixed JSON documents: for upstreams that are wrong in a simple way."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answers = dict[str, tuple[int, dict[str, str], Any]]
"""(status, headers, JSON document or raw bytes) by "METHOD path"; anything else is a 404."""
MODELS: Answers = {"GET /v1/models": (200, {}, {"object": "list", "data": [{"id": "gpt-4o"}, {"id": "gpt-5"}]})}
"""What OpenAI answers, with two models."""


@contextmanager
def json_server(answers: Answers) -> Iterator[tuple[str, list[tuple[str, str, str | None]]]]:
    """Gives the address, and a list that grows by (method, path, Authorization) with each request."""
    heard: list[tuple[str, str, str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            heard.append((self.command, self.path, self.headers.get("authorization")))
            status, headers, document = answers.get(f"{self.command} {self.path}", (404, {}, {"detail": "Not Found"}))
            body = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer

        def log_message(self, format: str, *args: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.server_port}", heard
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()
