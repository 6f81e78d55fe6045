"""Sends a turn upstream and watches the head of the answer: fallbacks, one reactive retry, the copy for the scribe."""

from __future__ import annotations

import asyncio
import time
from urllib.parse import urlsplit

import structlog
from prometheus_client import Histogram

from gateway.body import as_object, decode, with_field
from gateway.errors import GatewayError, UpstreamTimeout, UpstreamUnreachable
from gateway.intake import max_output
from gateway.limits import limits_for
from gateway.pipeline import Pipeline
from gateway.services import Services
from gateway.turn import Turn
from gateway.upstream.decode import decoder_for
from gateway.upstream.http import Headers, UpstreamReply
from gateway.upstream.overflow import Overflow, context_overflow
from gateway.upstream.reply import first_event_error
from gateway.upstream.routes import Route
from gateway.upstream.sse import EventSplitter
from gateway.upstream.strip import UsageChunkFilter
from gateway.upstream.usage import Usage, find_usage, read_usage

log = structlog.get_logger(__name__)

COPY_MOST = 16 * 1024 * 1024
"""Bytes of a reply kept for the scribe, as they came; a longer one is forwarded all the same."""
ERROR_MOST = 1024 * 1024
HEAD_MOST = 64 * 1024
"""Bytes of a stream held back at most until its first data event is whole."""
HEAD_S = 10.0
"""How long they are held at most: a slow upstream's keep-alive comments must reach the client."""
RETRYABLE = frozenset((408, 409, 429, 500, 502, 503, 504, 529))
"""Statuses for which a fallback is tried, where the model has one."""
ASKS_USAGE = ("api.openai.com",)
"""Hosts known to take `stream_options.include_usage`."""
UNKNOWN_SIZE = 0.75
"""Of the size that was refused: what to try where the upstream doesn't name its window."""


class Answer:
    """An upstream's reply on its way to the client: bytes in, the same bytes out, a copy kept for reading later."""

    def __init__(self, reply: UpstreamReply, silence_s: float, *, drop_usage: bool = False) -> None:
        self.status = reply.status
        self.headers: Headers = reply.headers
        self.first_byte_at = time.perf_counter()
        self.complete = False
        self.is_stream = _header(reply.headers, b"content-type").startswith("text/event-stream")
        self.encoding = _header(reply.headers, b"content-encoding")
        length = _header(reply.headers, b"content-length")
        self.length = int(length) if length.isdigit() else None
        """Of the whole body in bytes, where the upstream said so."""
        self._reply = reply
        self._head: list[bytes] = []
        self._copy: list[bytes] = []
        self.copied = 0
        self._silence_s = silence_s
        self._data_at = time.monotonic()
        self._filter = UsageChunkFilter() if drop_usage and self.is_stream and not self.encoding else None

    async def read(self) -> bytes:
        """The next bytes for the client; empty at the end.

        Raises:
            UpstreamUnreachable, UpstreamTimeout: the reply broke off, or has sent nothing but keep-alives for too long.
        """
        while self._head or not self.complete:
            chunk = self._head.pop(0) if self._head else await self._next()
            if self._filter is None:
                return chunk
            kept = self._filter.feed(chunk) if chunk else self._filter.finish()
            if kept:
                return kept
        return b""

    async def peek(self) -> Overflow | None:
        """Look at a stream's first data event, holding nothing back for longer than that takes."""
        splitter, decoder = EventSplitter(), decoder_for(self.encoding)
        held = 0
        try:
            async with asyncio.timeout(HEAD_S):
                while held < HEAD_MOST and decoder is not None and (chunk := await self._next()):
                    self._head.append(chunk)
                    held += len(chunk)
                    for event in splitter.feed(decoder.feed(chunk)):
                        error = first_event_error(event)
                        return context_overflow(self.status, {"error": error}) if error is not None else None
        except TimeoutError:
            pass
        return None

    async def whole(self, most: int = ERROR_MOST) -> bytes:
        """The rest of the body, as it came (at most about `most` bytes), put back so that `read` gives it again."""
        while sum(map(len, self._head)) < most and (chunk := await self._next()):
            self._head.append(chunk)
        return b"".join(self._head)

    async def text(self) -> bytes:
        """`whole`, decoded."""
        raw = await self.whole()
        decoder = decoder_for(self.encoding)
        return decoder.feed(raw) if decoder is not None else raw

    def usage(self) -> Usage | None:
        """Tokens by the upstream's own count: of a stream only the events that speak of usage are read."""
        data = b"".join(self._copy)
        if self.encoding:
            decoder = decoder_for(self.encoding)
            data = decoder.feed(data) if decoder is not None else b""
        if not self.is_stream:
            found = find_usage(as_object(_json(data)))
            return read_usage(found) if found is not None else None
        usage: Usage | None = None
        for line in data.splitlines():
            if line.startswith(b"data:") and b'"usage' in line:
                found = find_usage(as_object(_json(line[5:])))
                usage = read_usage(found) if found is not None else usage
        return usage

    def close(self) -> None:
        """Let the upstream go; an unfinished reply is cancelled there."""
        self._reply.close()

    async def _next(self) -> bytes:
        chunk = await self._reply.read()
        if not chunk:
            self.complete = True
            return chunk
        if self.copied < COPY_MOST:
            self._copy.append(chunk)
            self.copied += len(chunk)
        if self.is_stream and not self.encoding:
            self._watch(chunk)
        return chunk

    def _watch(self, chunk: bytes) -> None:
        """Keep-alive comments must not hide a dead stream: what counts is the time since the last data."""
        if b"data" in chunk or b"event" in chunk:
            self._data_at = time.monotonic()
        elif time.monotonic() - self._data_at > self._silence_s:
            raise UpstreamTimeout("The upstream sends keep-alives but no data.")


class Forwarder:
    """Forwards turns."""

    def __init__(self, services: Services, pipeline: Pipeline) -> None:
        self._services = services
        self._pipeline = pipeline
        self._histograms: dict[str, Histogram] = {}

    async def forward(self, turn: Turn, body: bytes) -> Answer:
        """The head of the answer, from the model's upstream or from a fallback.

        Raises:
            GatewayError: no upstream could be reached.
        """
        routes = self._services.router.routes(turn.model)
        for index, route in enumerate(routes):
            last = index == len(routes) - 1
            try:
                if index:
                    body = await self._rerouted(turn, route)
                answer = await self._with_retry(turn, body)
            except (UpstreamUnreachable, UpstreamTimeout):
                if last:
                    raise
                continue
            if last or answer.status not in RETRYABLE:
                return answer
            answer.close()
        raise GatewayError("No upstream is configured for this model.")

    async def _rerouted(self, turn: Turn, route: Route) -> bytes:
        self._services.metrics.fallbacks.labels(turn.route.name).inc()
        log.warning("falling back", request_id=turn.request_id, to=route.name, model=route.model)
        turn.route = route
        return await self._pipeline.rendered(turn)

    async def _with_retry(self, turn: Turn, body: bytes) -> Answer:
        answer = await self._send(turn, body)
        overflow = await self._overflow(turn, answer)
        if overflow is None:
            return answer
        await self._services.counting.settle(turn)
        smaller = await self._pipeline.again(turn, self._learn(turn, overflow))
        if smaller is None:
            return answer
        answer.close()
        turn.actions["compact"] = "reactive"
        self._services.metrics.compactions.labels("reactive").inc()
        return await self._send(turn, smaller)

    async def _send(self, turn: Turn, body: bytes) -> Answer:
        asks = self._asks_usage(turn)
        headers = turn.headers
        if asks or turn.offered:  # what has to be read on its way comes uncompressed
            headers = [(name, value) for name, value in headers if name != b"accept-encoding"]
        if turn.offered:
            headers = [*headers, (b"accept-encoding", b"identity")]
        if asks:
            body = with_field(body, "stream_options", b'{"include_usage":true}')
        started = time.perf_counter()
        reply = await self._services.upstreams.chat(turn.route, headers, body, stream=turn.stream)
        answer = Answer(reply, turn.route.upstream.read_timeout_s, drop_usage=asks)
        self._seconds(turn.route.name).observe(answer.first_byte_at - started)
        return answer

    async def _overflow(self, turn: Turn, answer: Answer) -> Overflow | None:
        if answer.status >= 400:
            found, where = context_overflow(answer.status, await answer.text()), "status"
        elif answer.is_stream and turn.stream:
            found, where = await answer.peek(), "stream"
        else:
            return None
        if found is not None:
            self._services.metrics.overflows.labels(turn.route.name, where).inc()
        return found if found is not None and found.shrinkable else None

    def _learn(self, turn: Turn, overflow: Overflow) -> int:
        """Tokens that the retry may have; the window and the true count that the refusal named are remembered."""
        counted = turn.count(turn.dialect)
        if overflow.unit == "bytes" or overflow.limit is None:
            return int(counted * UNKNOWN_SIZE)
        if overflow.requested and counted:
            prompt = overflow.requested - (overflow.output or 0)
            turn.ratio *= max(1.0, prompt / counted)
        if overflow.limit < turn.limits.window:
            route, window = turn.route, overflow.limit
            self._services.router.learn(route, window)
            if route.settings.window is None:
                self._services.tasks.spawn("window", self._services.store.save_window(route.name, route.model, window))
        output = overflow.output or max_output(turn.body)
        return limits_for(overflow.limit, output, self._services.settings.limits).hard

    def _seconds(self, route: str) -> Histogram:
        found = self._histograms.get(route)
        if found is None:
            found = self._histograms[route] = self._services.metrics.upstream_seconds.labels(route)
        return found

    def _asks_usage(self, turn: Turn) -> bool:
        """Whether the gateway itself asks for the stream's usage."""
        upstream = turn.route.upstream
        if not turn.stream or upstream.provider is not None or "all" in turn.bypass or turn.body.has("stream_options"):
            return False
        if upstream.include_usage is None:
            return urlsplit(upstream.base_url or "").hostname in ASKS_USAGE
        return upstream.include_usage


def _header(headers: Headers, wanted: bytes) -> str:
    return next((value.decode("latin-1").lower() for name, value in headers if name == wanted), "")


def _json(raw: bytes) -> object:
    try:
        parsed: object = decode(raw)
    except ValueError:
        return None
    return parsed
