"""`POST /v1/chat/completions`: read the turn, run the stages, forward, and hand the bytes back as they come."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

import structlog
from prometheus_client import Counter
from starlette.types import Receive, Scope, Send

from gateway.api.slash import SlashCommands
from gateway.api.wire import (
    ClientGone,
    cancelled_with_client,
    new_request_id,
    read_body,
    send_chunk,
    send_error,
    send_start,
)
from gateway.errors import GatewayError, UpstreamTimeout
from gateway.forward import Answer, Forwarder
from gateway.intake import read_turn
from gateway.memory.scribe import Scribe
from gateway.metrics import Metrics
from gateway.pipeline import Pipeline
from gateway.readback.follow import ReadBack
from gateway.services import Services
from gateway.turn import Turn
from gateway.upstream.http import Headers
from gateway.upstream.sse import PING, PING_EVERY_S

log = structlog.get_logger(__name__)

MIB = 1024 * 1024
CLIENT_CLOSED = 499
"""nginx's status for a client that hung up; never sent, only counted."""


@dataclass(slots=True)
class Exchange:
    """One request and what has been sent back of its answer."""

    send: Send
    request_id: str
    started_at: float = field(default_factory=time.perf_counter)
    turn: Turn | None = None
    started: bool = False
    status: int = 0
    phase: str = "waiting"


@dataclass(frozen=True, slots=True)
class ChatCounters:
    """The counters of one kind of answer, looked up once."""

    requests: Counter
    before: Counter
    after: Counter

    @classmethod
    def of(cls, metrics: Metrics, route: str, model: str, status: int, stream: bool) -> ChatCounters:
        """Those of an answer's labels."""
        return cls(
            metrics.requests.labels(route, model, str(status), "yes" if stream else "no"),
            metrics.tokens_before.labels(route, model),
            metrics.tokens_after.labels(route, model),
        )


class ChatEndpoint:
    """The ASGI application behind the route."""

    def __init__(self, services: Services, pipeline: Pipeline, forwarder: Forwarder, scribe: Scribe) -> None:
        self._services = services
        self._pipeline = pipeline
        self._forwarder = forwarder
        self._scribe = scribe
        self._slash = SlashCommands(services)
        self._readback = ReadBack(services, pipeline, forwarder)
        self._counters: dict[tuple[str, str, int, bool], ChatCounters] = {}
        self._most = services.settings.server.max_body_mb * MIB

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; no exception leaves."""
        exchange = Exchange(send, new_request_id())
        metrics = self._services.metrics
        metrics.in_flight.inc()
        try:
            raw = await read_body(scope, receive, self._most)
            async with cancelled_with_client(receive):
                turn = exchange.turn = await read_turn(self._services, exchange.request_id, scope["headers"], raw)
                await self._answer(exchange, turn)
        except ClientGone:
            exchange.status = CLIENT_CLOSED
            metrics.disconnects.labels(exchange.phase).inc()
        except GatewayError as error:
            await self._refuse(exchange, error)
        except Exception as error:
            log.error("request failed", request_id=exchange.request_id, error=type(error).__name__, exc_info=error)
            await self._refuse(exchange, GatewayError("The gateway failed on this request.", code="internal_error"))
        finally:
            metrics.in_flight.dec()
            self._account(exchange)

    async def _answer(self, exchange: Exchange, turn: Turn) -> None:
        own = await self._slash.answer(turn)
        if own is not None:
            exchange.started, exchange.status = True, 200
            await send_start(exchange.send, 200, [(b"content-type", own.content_type), *own_headers(turn)])
            await send_chunk(exchange.send, own.body, more=False)
            return
        turn.answered = asyncio.Event()
        try:
            answer = await self._with_pings(exchange, turn)
            if turn.offered:
                answer = await self._readback.follow(turn, answer)
            try:
                await self._relay(exchange, turn, answer)
            finally:
                answer.close()
                self._scribe.after(turn, answer)
        finally:
            turn.answered.set()

    async def _prepare(self, turn: Turn) -> Answer:
        return await self._forwarder.forward(turn, await self._pipeline.run(turn))

    async def _with_pings(self, exchange: Exchange, turn: Turn) -> Answer:
        """The upstream's answer; a stream's client gets a comment now and then while it waits for our own work."""
        if not turn.stream:
            return await self._prepare(turn)
        loop = asyncio.get_running_loop()
        pings: list[asyncio.Task[None]] = []
        timer = loop.call_later(PING_EVERY_S, lambda: pings.append(loop.create_task(self._ping(exchange, turn))))
        try:
            body = await self._pipeline.run(turn)
        finally:
            timer.cancel()
            if pings:
                pings[0].cancel()
                await asyncio.gather(*pings, return_exceptions=True)
        return await self._forwarder.forward(turn, body)

    async def _ping(self, exchange: Exchange, turn: Turn) -> None:
        if not exchange.started:
            exchange.started, exchange.status = True, 200
            await send_start(exchange.send, 200, [(b"content-type", b"text/event-stream"), *own_headers(turn)])
        while True:
            await send_chunk(exchange.send, PING)
            await asyncio.sleep(PING_EVERY_S)

    async def _relay(self, exchange: Exchange, turn: Turn, answer: Answer) -> None:
        exchange.phase = "streaming"
        send = exchange.send
        if not exchange.started:
            exchange.started, exchange.status = True, answer.status
            await send_start(send, answer.status, [*answer.headers, *own_headers(turn)])
        elif answer.status != 200:
            body = await answer.whole()
            await send_chunk(send, b"data: " + body.replace(b"\n", b" ") + b"\n\n", more=False)
            return
        if not answer.is_stream and answer.length is not None:
            await self._relay_known(send, answer, answer.length)
            return
        while chunk := await answer.read():
            await send_chunk(send, chunk)
        await send_chunk(send, b"", more=False)

    @staticmethod
    async def _relay_known(send: Send, answer: Answer, left: int) -> None:
        """A body of known length: its last piece ends the answer, so that a small one is sent at one go."""
        while left > 0 and (chunk := await answer.read()):
            left -= len(chunk)
            await send_chunk(send, chunk, more=left > 0)
        if left > 0 or answer.length == 0:
            await send_chunk(send, b"", more=False)

    async def _refuse(self, exchange: Exchange, error: GatewayError) -> None:
        self._services.metrics.refusals.labels(str(error.status), error.code or error.type).inc()
        if not exchange.started:
            exchange.started, exchange.status = True, error.status
            await send_error(exchange.send, error, [(b"x-gateway-request-id", exchange.request_id.encode())])
            return
        log.warning("reply broke off", request_id=exchange.request_id, error=error.message)
        if exchange.turn is not None and exchange.turn.stream:
            await send_chunk(exchange.send, b"data: " + error.body() + b"\n\n", more=False)
        elif isinstance(error, UpstreamTimeout):
            await send_chunk(exchange.send, b"", more=False)
        else:
            raise error

    def _account(self, exchange: Exchange) -> None:
        turn = exchange.turn
        if turn is None:
            return
        services = self._services
        route, model = turn.route.name, services.router.label(turn.model)
        key = (route, model, exchange.status, turn.stream)
        counters = self._counters.get(key)
        if counters is None:
            counters = self._counters[key] = ChatCounters.of(services.metrics, *key)
        counters.requests.inc()
        counters.before.inc(turn.tokens_before)
        counters.after.inc(turn.tokens_after)
        services.metrics.request_tokens.observe(turn.tokens_after)
        for stage, what in turn.new_actions().items():
            if isinstance(what, int):
                services.metrics.actions.labels(stage, "messages").inc(what)
            else:
                services.metrics.actions.labels(stage, what).inc()
        log.info(
            "chat",
            request_id=exchange.request_id,
            route=route,
            model=model,
            status=exchange.status,
            tokens_before=turn.tokens_before,
            tokens_after=turn.tokens_after,
            actions=actions_text(turn),
            ms=round((time.perf_counter() - exchange.started_at) * 1000, 2),
        )


def actions_text(turn: Turn) -> str:
    """Such as `snip:4,compact:reused,memory:3`."""
    return ",".join(f"{stage}:{what}" for stage, what in turn.actions.items())


def own_headers(turn: Turn) -> Headers:
    """What the gateway says about a request in the answer's headers."""
    return [
        (b"x-gateway-request-id", turn.request_id.encode()),
        (b"x-gateway-session", turn.session.encode("utf-8")),
        (b"x-gateway-tokens-before", str(turn.tokens_before).encode()),
        (b"x-gateway-tokens-after", str(turn.tokens_after).encode()),
        (b"x-gateway-actions", actions_text(turn).encode()),
    ]
