"""Wiring: what is built at the start, which path leads where, and the order in which things stop."""

from __future__ import annotations

import asyncio
import functools
import gc
import os
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import structlog
from starlette.applications import Starlette
from starlette.routing import BaseRoute
from starlette.routing import Route as Path
from starlette.types import Receive, Scope, Send

from gateway import logs
from gateway.api.admin import Admin
from gateway.api.chat import ChatEndpoint
from gateway.api.memory import MemoryEndpoint, MemoryRoute
from gateway.api.passthrough import Passthrough
from gateway.conversation import Conversations
from gateway.counting import Counting
from gateway.dashboard import dashboard_routes
from gateway.forms import Forms
from gateway.forward import Forwarder
from gateway.limits import LimitsBook
from gateway.memory.scribe import Scribe
from gateway.memory.service import MemoryService
from gateway.message import Messages, Recent
from gateway.metrics import Metrics
from gateway.pipeline import Pipeline
from gateway.prefixes import Prefixes
from gateway.services import Services
from gateway.settings import Settings
from gateway.store.open import open_store
from gateway.store.protocol import Limits, Store
from gateway.summarise import Summariser
from gateway.tasks import Tasks
from gateway.tenants import Caller, Gatekeeper, digest
from gateway.tokens import fast
from gateway.tokens.calibration import Calibration
from gateway.tokens.precise import Precise
from gateway.tokens.windows import ModelTable
from gateway.upstream.pool import Upstreams
from gateway.upstream.routes import Router

log = structlog.get_logger(__name__)

KEEP_ALIVE_S = 75
"""An idle client connection stays open so long; more than the pools of common clients keep theirs."""
SWITCH_S = 0.001
"""How long a thread may compute before the event loop gets its turn; Python's own 5 ms would show in every request."""
SPILLED_KEPT = 10_000
"""Texts of which it is remembered that the spill has them."""
GC_THRESHOLDS = (50_000, 20, 100)
"""The caches hold hundreds of thousands of objects that never form cycles: walking them at the default pace costs a
tenth of a large request (python -m bench.overhead)."""
GRACE_S = 600
"""How long shutdown waits for streams in flight."""
MULTIPROCESS_DIR = "PROMETHEUS_MULTIPROC_DIR"
"""prometheus-client's own variable, read by the workers when they import it."""
CHAT = "/v1/chat/completions"
ANY_METHOD = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
WARM_ENCODING = "o200k_base"


async def build(settings: Settings, *, multiprocess: bool = False) -> Services:
    """Build the parts. Must run inside the event loop that will serve."""
    metrics = Metrics(multiprocess=multiprocess)
    tasks = Tasks(lambda name: metrics.dropped_tasks.labels(name).inc())
    kept = Limits(max_spill_bytes=settings.spill.max_mb * 1024 * 1024)
    store = await open_store(settings.data_dir, settings.database_url, kept)
    table = ModelTable()
    await asyncio.to_thread(table.load)
    router = Router(settings, table)
    router.learned.update(await store.load_windows())
    seed = int.from_bytes((await store.seed())[:8], "big")
    messages = Messages(fast.message_tokens, seed)
    counting = Counting(Precise(), Calibration(), store, tasks)
    await counting.load()
    upstreams = Upstreams(settings.upstreams)
    summariser = Summariser(
        settings.compaction,
        router,
        upstreams,
        messages,
        metrics,
        asyncio.Semaphore(settings.compaction.concurrency),
    )
    return Services(
        settings=settings,
        store=store,
        tasks=tasks,
        metrics=metrics,
        gatekeeper=await _gatekeeper(settings, store),
        router=router,
        upstreams=upstreams,
        messages=messages,
        counting=counting,
        limits=LimitsBook(settings.limits),
        forms=Forms(settings, messages),
        conversations=Conversations(store, tasks),
        prefixes=Prefixes(),
        spilled=Recent(SPILLED_KEPT),
        summariser=summariser,
        memory=MemoryService(settings, store, router, upstreams, metrics),
    )


async def _gatekeeper(settings: Settings, store: Store) -> Gatekeeper:
    """The keys, with what those that have a budget have spent this month already."""
    gatekeeper = Gatekeeper(settings.auth.keys)
    for entry in settings.auth.keys:
        if entry.budget_usd is not None:
            caller = Caller("", digest("key", entry.key.get_secret_value()), entry)
            month = time.strftime("%Y-%m", time.gmtime())
            gatekeeper.spent(caller, month, await store.get_spend(caller.key_hash, month))
    return gatekeeper


class FrontDoor:
    """The ASGI application: chat requests go straight to their endpoint, all else through Starlette's router.

    Starlette's middleware and routing cost more than a tenth of a small request; the endpoint handles its own errors.
    """

    def __init__(self, settings: Settings, *, multiprocess: bool = False) -> None:
        self.chat: ChatEndpoint | None = None
        self._app = Starlette(lifespan=_lifespan(settings, self, multiprocess))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or run the lifespan."""
        if self.chat is not None and scope.get("path") == CHAT and scope.get("method") == "POST":
            await self.chat(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def create_app(settings: Settings, *, multiprocess: bool = False) -> FrontDoor:
    """The ASGI application; everything that needs an event loop is built when its lifespan begins."""
    return FrontDoor(settings, multiprocess=multiprocess)


def _lifespan(
    settings: Settings, door: FrontDoor, multiprocess: bool
) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        services = await build(settings, multiprocess=multiprocess)
        scribe = Scribe(services)
        pipeline = Pipeline(services)
        chat = ChatEndpoint(services, pipeline, Forwarder(services, pipeline), scribe)
        app.router.routes.extend(routes(services, scribe, chat))
        door.chat = chat
        _warm(services)
        scribe.start()
        try:
            yield
        finally:
            await scribe.stop()
            await services.tasks.drain()
            await services.counting.save()
            await services.upstreams.close()
            await services.store.close()

    return lifespan


def routes(services: Services, scribe: Scribe, chat: ChatEndpoint) -> list[BaseRoute]:
    """Which path leads where."""
    admin = Admin(services)
    paths: list[BaseRoute] = [
        Path(CHAT, chat, methods=["POST"]),
        Path("/healthz", admin.healthz),
        Path("/readyz", admin.readyz),
    ]
    paths.append(MemoryRoute(MemoryEndpoint(services, scribe)))
    if services.settings.metrics.enabled:
        paths += [Path("/metrics", admin.metrics), *dashboard_routes()]
    paths.append(Path("/v1/{path:path}", Passthrough(services), methods=ANY_METHOD))
    return paths


def _warm(services: Services) -> None:
    """Load in the background what the first request should not wait for."""
    spawn = services.tasks.spawn
    spawn("load tiktoken", asyncio.to_thread(services.counting.precise.load, WARM_ENCODING))
    if services.settings.memory.enabled:
        spawn("load dictionary", asyncio.to_thread(services.memory.warm))
    for provider in services.upstreams.warm():
        spawn("import litellm", provider.warm())


def _worker(settings: Settings, *, multiprocess: bool) -> FrontDoor:
    """Runs in the process that serves, which with several workers is not the one that was started."""
    logs.configure()
    sys.setswitchinterval(SWITCH_S)
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    return create_app(settings, multiprocess=multiprocess)


def serve(settings: Settings, workers: int = 1) -> None:
    """Run until told to stop. On SIGTERM streams in flight are finished and the scribe is drained."""
    import uvicorn

    config = uvicorn.Config(
        functools.partial(_worker, settings, multiprocess=workers > 1),
        factory=True,
        host=settings.server.host,
        port=settings.server.port,
        workers=workers,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
    )
    if workers == 1:

        class Server(uvicorn.Server):
            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                if self.started:
                    _say_where(settings, self.servers[0].sockets[0].getsockname()[1])

        Server(config).run()
        return
    from uvicorn.supervisors import Multiprocess

    with tempfile.TemporaryDirectory(prefix="gateway-metrics-") as shared:
        os.environ[MULTIPROCESS_DIR] = shared
        listening = config.bind_socket()
        logs.configure()
        _say_where(settings, listening.getsockname()[1])
        Multiprocess(config, sockets=[listening]).run()


def _say_where(settings: Settings, port: int) -> None:
    """The one line that a start is told by: `port` may have been 0, for any free one."""
    host = f"[{settings.server.host}]" if ":" in settings.server.host else settings.server.host
    names = [upstream.name for upstream in settings.upstreams]
    log.info("listening", base_url=f"http://{host}:{port}/v1", upstreams=names)
