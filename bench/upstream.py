"""A mock OpenAI upstream that counts what reaches it: `python -m bench.upstream --port 9100`.

It answers plain and streamed chat completions and `/v1/models`. An agent's turn gets the recorded reply announced for
it; any other request is a side call and gets a summary of about 250 tokens, or JSON where it asks for JSON.
The bench steers it over `/__lane` (begin), `/__expect` (announce a turn), `/__kept` (lines that arrived) and
`/__settle` (the bill); `/__stats` and `/__reset` are for people. A lane is named by the caller's key, `Bearer NAME`;
a key that names none belongs to the lane begun last.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
from typing import Any

import orjson
from aiohttp import web

from bench.replay import replies
from bench.replay.counting import TokenCounter
from bench.replay.lanes import Expected, Lane, Seen

MAX_BODY = 1 << 30
_FINISH_WAIT_S = 10.0  # for side calls under way when a lane is settled


class Upstream:
    """The mock's state: its lanes and its counter. Handlers count on the event loop: one replay runs at a time."""

    def __init__(self, delay_s: float = 0.0) -> None:
        self._counter = TokenCounter()
        self._lanes: dict[str, Lane] = {}
        self._active = ""
        self._number = 0
        self._delay_s = delay_s

    def app(self) -> web.Application:
        """The aiohttp application."""
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_post("/v1/chat/completions", self.chat)
        app.router.add_get("/v1/models", self.models)
        app.router.add_post("/__lane", self.begin)
        app.router.add_post("/__expect", self.expect)
        app.router.add_post("/__kept", self.kept)
        app.router.add_post("/__settle", self.settle)
        app.router.add_get("/__stats", self.stats)
        app.router.add_post("/__reset", self.reset)
        return app

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """One chat completion."""
        try:
            body = _loads(await request.read())
            messages = body["messages"]
        except (ValueError, KeyError, TypeError):
            error = {"message": "bad request", "type": "invalid_request_error", "param": "messages", "code": None}
            return web.json_response({"error": error}, status=400)
        lane = self._lane(request)
        self._number += 1
        number = self._number
        counted = self._counter.request(messages, body.get("tools"))
        turn = lane.expected is not None and lane.expected.matches(messages)
        message = lane.expected.reply if turn and lane.expected else {"content": self._side_answer(body)}
        output = self._counter.text(json.dumps(message.get("tool_calls") or "") + str(message.get("content") or ""))
        prompt = sum(one.rendered for one in counted)
        model = str(body.get("model"))
        answer = replies.completion(number, model, message, prompt, lane.cached(counted), output)
        lane.seen.append(Seen(number, counted, turn, output))
        if turn:
            lane.keep_text(number, messages)
        lane.open += 1
        try:
            if self._delay_s:
                await asyncio.sleep(self._delay_s)
            return await _send(request, body, answer)
        finally:
            lane.open -= 1

    async def models(self, _: web.Request) -> web.Response:
        """A list of one model."""
        return web.json_response({"object": "list", "data": [{"id": "gpt-4o", "object": "model", "owned_by": "bench"}]})

    async def begin(self, request: web.Request) -> web.Response:
        """Start a lane afresh: `{"lane"}`."""
        name = (await request.json())["lane"]
        self._lanes[name] = Lane()
        self._active = name
        return web.json_response({})

    async def expect(self, request: web.Request) -> web.Response:
        """Announce a turn: `{"lane", "newest", "reply"}`, the newest message of the request and the recorded answer."""
        body = await request.json()
        self._lanes[body["lane"]].expected = Expected.of(body["newest"], body["reply"])
        return web.json_response({})

    async def kept(self, request: web.Request) -> web.Response:
        """How many of `lines` arrived in the turn answered by `id`: `{"lane", "id", "lines"}`."""
        body = await request.json()
        return web.json_response({"kept": self._lanes[body["lane"]].kept_lines(body["id"], body["lines"])})

    async def settle(self, request: web.Request) -> web.Response:
        """The bill of a lane, `{"lane", "turns": [reply id or null]}`; the lane is forgotten."""
        body = await request.json()
        lane = self._lanes[body["lane"]]
        waited = 0.0
        while lane.open and waited < _FINISH_WAIT_S:
            await asyncio.sleep(0.05)
            waited += 0.05
        total, by_guess = lane.settle(body["turns"])
        del self._lanes[body["lane"]]
        return web.json_response({"bill": dataclasses.asdict(total), "by_guess": by_guess, "requests": len(lane.seen)})

    async def stats(self, _: web.Request) -> web.Response:
        """Requests, and how many of them looked like turns, by lane."""
        lanes = {
            name: {"requests": len(lane.seen), "turns": sum(seen.guess for seen in lane.seen)}
            for name, lane in self._lanes.items()
        }
        return web.json_response({"active": self._active, "requests": self._number, "lanes": lanes})

    async def reset(self, _: web.Request) -> web.Response:
        """Forget every lane."""
        self._lanes.clear()
        self._active = ""
        return web.json_response({})

    def _lane(self, request: web.Request) -> Lane:
        key = request.headers.get("Authorization", "").removeprefix("Bearer ")
        name = key if key in self._lanes else self._active
        return self._lanes.setdefault(name, Lane())

    def _side_answer(self, body: dict[str, Any]) -> str:
        return replies.extraction(body) if replies.wants_json(body) else replies.summary(body, self._counter.text)


def _loads(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:  # lone surrogates, which the standard library takes
        return json.loads(raw)


async def _send(request: web.Request, body: dict[str, Any], answer: dict[str, Any]) -> web.StreamResponse:
    if not body.get("stream"):
        return web.json_response(answer)
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for event in replies.stream(answer, bool((body.get("stream_options") or {}).get("include_usage"))):
        await response.write(event)
    await response.write_eof()
    return response


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9100)
    parser.add_argument("--delay-ms", type=float, default=0.0, help="wait before each answer")
    options = parser.parse_args()
    app = Upstream(options.delay_ms / 1000).app()
    web.run_app(app, host=options.host, port=options.port, print=None)


if __name__ == "__main__":
    main()
