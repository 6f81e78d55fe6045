"""Upstreams that speak another protocol than OpenAI's, reached through litellm.

litellm translates both ways, in a process of its own (`provider_worker.py` says why). Here a request becomes a call
with nothing in it but what a client may say: keys, addresses and litellm's own switches come from the configuration
alone, so that no request body can send a key elsewhere. The answer comes back as OpenAI's JSON or event stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

import aiohttp
import orjson

from gateway.errors import UpstreamTimeout, UpstreamUnreachable
from gateway.settings import UpstreamSettings
from gateway.types import JsonObject
from gateway.upstream.provider_process import ANSWERED, ProviderProcess

_CLIENT_FIELDS: Final = frozenset(
    (
        *("messages", "tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "response_format"),
        *("max_tokens", "max_completion_tokens", "temperature", "top_p", "top_k", "min_p", "n", "stop", "seed", "user"),
        *("frequency_penalty", "presence_penalty", "repetition_penalty", "logit_bias", "logprobs", "top_logprobs"),
        *("reasoning_effort", "thinking", "modalities", "audio", "prediction", "verbosity", "web_search_options"),
        *("service_tier", "stream_options", "prompt_cache_key", "safety_identifier"),
    )
)
"""What a request may set: OpenAI's parameters and a few that several providers share. Anything else stays here, since
litellm takes its own switches (`api_base`, `api_key`, `mock_response`, credentials) from the same place."""

_FORWARDED: Final = (b"anthropic-beta", b"x-request-id")
"""Request headers passed on to the provider."""

_MARGIN_S: Final = 15.0
"""The worker gives up at the upstream's own time; this lets its answer arrive."""

_OWN_HEADERS: Final = frozenset(
    {ANSWERED.encode(), b"transfer-encoding", b"connection", b"keep-alive", b"server", b"date", b"content-length"}
)
"""Headers of the hop to the worker, which end here."""


_OTHER_CREDENTIALS: Final = frozenset(
    (
        *("bedrock", "bedrock_converse", "sagemaker", "sagemaker_chat", "vertex_ai", "vertex_ai_beta", "watsonx"),
        *("oci", "github_copilot", "ollama", "ollama_chat"),
    )
)
"""Providers that take no plain key: litellm finds the machine's own credentials for them, or none are needed."""

_NO_KEY: Final = "none"
"""Given where the caller sent no key, so that litellm doesn't look for one in the environment: a stranger's request
must fail at the provider, not spend the operator's money."""


@dataclass(slots=True)
class ProviderReply:
    """An answer: OpenAI-shaped JSON, or events ending in `[DONE]`. `close` cancels what has not come yet, at the
    provider too."""

    status: int
    headers: list[tuple[bytes, bytes]]
    chunks: AsyncIterator[bytes]
    _response: aiohttp.ClientResponse

    def close(self) -> None:
        """Let go: an unfinished answer is cancelled by hanging up."""
        if self._response.content.at_eof():
            self._response.release()
        else:
            self._response.close()


class LitellmUpstream:
    """One configured provider. `process` may be shared among several; without one it starts its own."""

    def __init__(self, settings: UpstreamSettings, process: ProviderProcess | None = None) -> None:
        self.name = settings.name
        self.settings = settings
        self._process = process or ProviderProcess()
        self._owns_process = process is None
        self._session: aiohttp.ClientSession | None = None
        self._opening = asyncio.Lock()

    async def warm(self) -> None:
        """Start the process and import litellm in it (4–9 s), so that no request waits for that.

        Raises:
            UpstreamUnreachable: it can't be started.
        """
        response = await self._post("/warm", b"{}")
        response.release()
        if response.headers.get(ANSWERED) is None:
            raise UpstreamUnreachable("litellm could not be imported.")

    async def complete(
        self, request: JsonObject, *, stream: bool, headers: Sequence[tuple[bytes, bytes]] = ()
    ) -> ProviderReply:
        """Ask the provider. A provider's refusal is a reply with its status and an OpenAI-shaped error.

        Args:
            request: a chat completion in OpenAI's shape; `model` is the provider's own name, without prefix.
            headers: the client's; few are passed on.

        Raises:
            UpstreamUnreachable: no answer came, or its translation failed.
            UpstreamTimeout: silent for longer than the upstream's `read_timeout_s`.
        """
        call = self.call_for(request, stream=stream, headers=headers)
        response = await self._post("/complete", orjson.dumps({"call": call}))
        if response.headers.get(ANSWERED) is None:
            response.close()
            raise UpstreamUnreachable(f"The answer of '{self.name}' could not be translated.")
        kept = [(name.lower(), value) for name, value in response.raw_headers if name.lower() not in _OWN_HEADERS]
        return ProviderReply(response.status, kept, self._chunks(response), response)

    async def close(self) -> None:
        """Close all connections, and the process where it is this upstream's own."""
        if self._session is not None:
            await self._session.close()
        if self._owns_process:
            await self._process.close()

    def call_for(self, request: JsonObject, *, stream: bool, headers: Sequence[tuple[bytes, bytes]]) -> JsonObject:
        """The keyword arguments of `litellm.acompletion` for a request."""
        settings = self.settings
        call: JsonObject = {key: value for key, value in request.items() if key in _CLIENT_FIELDS and value is not None}
        call["model"] = f"{settings.provider}/{request.get('model', '')}"
        call["stream"] = stream
        if not stream:
            call.pop("stream_options", None)
        call["num_retries"] = call["max_retries"] = 0
        call["timeout"] = settings.read_timeout_s
        if settings.base_url is not None:
            call["api_base"] = settings.base_url
        if settings.api_key is not None:
            call["api_key"] = settings.api_key.get_secret_value()
        elif settings.provider not in _OTHER_CREDENTIALS:
            call["api_key"] = _callers_key(headers) or _NO_KEY
        extra = {name.decode(): value.decode("latin-1") for name, value in headers if name in _FORWARDED}
        extra.update(settings.headers)
        if extra:
            call["extra_headers"] = extra
        return call

    async def _post(self, path: str, body: bytes) -> aiohttp.ClientResponse:
        address = await self._process.address()
        session = await self._client()
        try:
            return await session.post(
                address.url + path, data=body, headers={"authorization": address.authorization}, allow_redirects=False
            )
        except TimeoutError as error:
            raise UpstreamTimeout(f"The upstream '{self.name}' did not answer in time.") from error
        except (aiohttp.ClientError, OSError) as error:
            raise UpstreamUnreachable(f"The provider process broke off ({type(error).__name__}).") from error

    async def _client(self) -> aiohttp.ClientSession:
        async with self._opening:
            if self._session is None:
                silence = self.settings.read_timeout_s + _MARGIN_S
                self._session = aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(limit=self.settings.max_connections),
                    timeout=aiohttp.ClientTimeout(total=None, sock_read=silence),
                    cookie_jar=aiohttp.DummyCookieJar(),
                    trust_env=False,
                )
            return self._session

    async def _chunks(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        try:
            while chunk := await response.content.readany():
                yield chunk
        except TimeoutError as error:
            raise UpstreamTimeout(f"The upstream '{self.name}' fell silent in the middle of its reply.") from error
        except (aiohttp.ClientError, OSError) as error:
            raise UpstreamUnreachable(f"The upstream's reply broke off ({type(error).__name__}).") from error


def _callers_key(headers: Sequence[tuple[bytes, bytes]]) -> str:
    """The key the caller sent, for an upstream without one of its own."""
    for name, value in headers:
        if name == b"authorization":
            return value.decode("latin-1").removeprefix("Bearer ").strip()
        if name in (b"x-api-key", b"api-key"):
            return value.decode("latin-1").strip()
    return ""
