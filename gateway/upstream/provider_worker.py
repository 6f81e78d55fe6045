"""The process in which litellm lives: the one module that imports it.

litellm's import takes 4–9 s and 200 MB, and each of its calls works for some 10 ms in Python. In a thread of the
gateway all of that would hold the interpreter lock, and so stall every other request. Here it can stall only itself.
The gateway starts this process at the first request that needs it and speaks HTTP to it over loopback, which brings
back-pressure, and cancellation by hanging up, for nothing. `providers.py` is the other end.

It ends by itself when its standard input closes, that is when the gateway ends, however that happens.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from typing import Any, Final

import orjson
from aiohttp import web

from gateway.types import JsonObject
from gateway.upstream.provider_errors import error_reply
from gateway.upstream.provider_process import ANSWERED

MAX_REQUEST_BYTES: Final = 256 * 1024 * 1024
"""The gateway has already refused what is over its own limit; this only bounds the process."""

_KEPT_NULLS: Final = frozenset({"content", "finish_reason", "logprobs"})
"""Fields that OpenAI's replies carry as null; litellm's own nulls are left out."""


class Worker:
    """Answers the gateway's calls."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()
        self._import = asyncio.Lock()
        self._module: Any = None

    def app(self) -> web.Application:
        """The two paths: `/warm` imports litellm, `/complete` asks a provider."""
        app = web.Application(client_max_size=MAX_REQUEST_BYTES)
        app.router.add_post("/warm", self.warm)
        app.router.add_post("/complete", self.complete)
        return app

    async def warm(self, request: web.Request) -> web.StreamResponse:
        """Import litellm now, so that the first request needn't wait for it."""
        self._authorise(request)
        await self._litellm()
        return web.json_response({}, headers={ANSWERED: "1"})

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """One chat completion. The body is `{"call": keyword arguments of acompletion}`."""
        self._authorise(request)
        call: JsonObject = orjson.loads(await request.read())["call"]
        litellm = await self._litellm()
        failures = _failures()
        try:
            answer = await litellm.acompletion(**call)
            if not call.get("stream"):
                return _json(200, pruned(answer.model_dump()))
            # Closed however this ends, also by a client that hangs up: that closes the provider's connection.
            async with aclosing(answer):
                chunks = aiter(answer)
                first = await anext(chunks, None)
                return await self._stream(request, first, chunks, failures)
        except failures as error:
            status, body, headers = error_reply(error)
            return _json(status, body, headers)

    async def _stream(
        self, request: web.Request, first: Any, chunks: AsyncIterator[Any], failures: tuple[type[Exception], ...]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={ANSWERED: "1", "content-type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        try:
            if first is not None:
                await response.write(_event(pruned(first.model_dump())))
            async for chunk in chunks:
                await response.write(_event(pruned(chunk.model_dump())))
        except failures as error:
            await response.write(_event(error_reply(error)[1]))
        else:
            await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    def _authorise(self, request: web.Request) -> None:
        given = request.headers.get("authorization", "").encode()
        if not hmac.compare_digest(given, b"Bearer " + self._token):
            raise web.HTTPForbidden

    async def _litellm(self) -> Any:
        async with self._import:
            if self._module is None:
                self._module = await asyncio.to_thread(_import_litellm)
            return self._module


def _import_litellm() -> Any:
    """Import litellm and set what it does by itself: no telemetry, no fetching, no retries, no bodies in logs."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # its price table is the file it ships, not a download
    os.environ["MAX_IMAGE_URL_DOWNLOAD_SIZE_MB"] = "0"
    os.environ["LITELLM_LOG"] = "ERROR"
    import litellm

    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # below that it logs parts of requests
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.turn_off_message_logging = True
    litellm.redact_user_api_key_info = True
    litellm.disable_hf_tokenizer_download = True
    litellm.num_retries = 0  # retries and fallbacks are the gateway's
    # A knob that a provider lacks (seed, logit_bias) must not fail an agent that was written for another.
    litellm.drop_params = True
    # After a compaction a conversation may hold calls without declaring tools, or begin with the assistant.
    litellm.modify_params = True
    _fetch_nothing()
    return litellm


def _fetch_nothing() -> None:
    """Keep litellm from asking the addresses of files that a message only names: only upstreams are called.

    Its own switch (`MAX_IMAGE_URL_DOWNLOAD_SIZE_MB`) stops downloads, but not a look at whether one is a PDF; both go
    through these two names.
    """
    from litellm.litellm_core_utils.prompt_templates import image_handling
    from litellm.litellm_core_utils.url_utils import SSRFError

    def refuse(*_: Any, **__: Any) -> Any:
        raise SSRFError("the gateway fetches nothing by itself; send it as a data URL")

    async def refuse_too(*_: Any, **__: Any) -> Any:
        refuse()

    vars(image_handling).update(safe_get=refuse, async_safe_get=refuse_too)


def _failures() -> tuple[type[Exception], ...]:
    """What a provider call may raise: litellm's own errors are OpenAI's; the rest escapes from its translations."""
    import httpx
    import openai

    escaped = (ValueError, TypeError, LookupError, AttributeError, RuntimeError, OSError, ImportError)
    return (openai.OpenAIError, httpx.HTTPError, TimeoutError, *escaped)


def pruned(value: Any) -> Any:
    """`value` without the nulls of litellm's own models."""
    if isinstance(value, dict):
        return {key: pruned(inner) for key, inner in value.items() if inner is not None or key in _KEPT_NULLS}
    if isinstance(value, list):
        return [pruned(item) for item in value]
    return value


def _json(status: int, body: Any, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(
        status=status,
        body=orjson.dumps(body, default=str),
        content_type="application/json",
        headers={ANSWERED: "1", **(headers or {})},
    )


def _event(chunk: Any) -> bytes:
    return b"data: " + orjson.dumps(chunk, default=str) + b"\n\n"


async def serve(token: str) -> None:
    """Listen on a free loopback port and print it; runs until the process ends."""
    runner = web.AppRunner(Worker(token).app(), handler_cancellation=True, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nobody reads on; what litellm prints must not fill the pipe
    await asyncio.Event().wait()


def main(token: str) -> None:
    """Run until standard input closes."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(token))


def _end_with_parent() -> None:
    while sys.stdin.buffer.read(1):
        pass
    os._exit(0)
