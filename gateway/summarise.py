"""Has a model write the summary that a compaction puts in place of old messages.

Two ways. Where the summariser is the conversation's own model, the instruction is appended to the very prefix that the
upstream has in its cache, so that reading it again costs a tenth. Where another model summarises, or
the prefix no longer fits its window, the messages are cut into chunks that are summarised on their own, concurrently,
and merged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from gateway import prompts
from gateway.body import encode
from gateway.dialect import adapted
from gateway.errors import GatewayError
from gateway.message import Message, Messages
from gateway.metrics import Metrics
from gateway.settings import CompactionSettings
from gateway.tokens.fast import text_tokens
from gateway.transcript import pieces
from gateway.turn import Turn
from gateway.upstream.http import Headers
from gateway.upstream.overflow import context_overflow
from gateway.upstream.pool import Upstreams
from gateway.upstream.reply import Reply
from gateway.upstream.routes import Route, Router

log = structlog.get_logger(__name__)

SUMMARY_SHARE = 0.10
"""Of the window: the summary's part of the budget."""
SUMMARY_MOST = 2_000
"""Tokens; five dense sections need no more, however large the window."""
SUMMARY_LEAST = 300
WORDS_PER_TOKEN = 0.6
"""Asked of the model in words, which it can judge; the text is measured in tokens."""
PROMPT_RESERVE = 400
"""Tokens of our own instruction."""
CHUNK_SHARE = 0.6
"""Of the summariser's window: the most that one chunk may fill."""
TOKEN_CHARS_MOST = 40
"""Characters of a summary looked at for each token it may have: a model that runs away must not hold the loop."""
INLINE_BYTES = 16 * 1024
"""Of messages written out on the event loop; more take longer than a millisecond, and go to a thread."""
OUTPUT_FIELDS = ("max_completion_tokens", "max_tokens")


class SummaryFailed(Exception):
    """No summary could be had; the compaction falls back to what needs none."""


@dataclass(slots=True)
class Summariser:
    """Writes summaries. At most `compaction.concurrency` calls run at once, over all conversations."""

    settings: CompactionSettings
    router: Router
    upstreams: Upstreams
    messages: Messages
    metrics: Metrics
    gate: asyncio.Semaphore

    async def summarise(self, turn: Turn, upto: int) -> str:
        """The summary of everything that is sent before `turn.items[upto]`.

        Raises:
            SummaryFailed: the upstream refused, answered nothing, or took longer than `compaction.timeout_s`.
        """
        try:
            async with asyncio.timeout(self.settings.timeout_s):
                return await self._summarise(turn, upto)
        except TimeoutError as error:
            raise SummaryFailed(f"no summary within {self.settings.timeout_s:g} s") from error
        except GatewayError as error:
            raise SummaryFailed(error.message) from error

    async def _summarise(self, turn: Turn, upto: int) -> str:
        prefix = turn.outgoing(upto)
        route = self.router.routes(self.settings.model)[0] if self.settings.model else turn.route
        room = summary_room(turn.limits.window)
        own = self.settings.model is None or self.settings.model == turn.model
        if own and turn.count(prefix) + PROMPT_RESERVE + room <= turn.limits.window:
            try:
                return await self._append(turn, route, prefix, room)
            except _TooLong:
                log.info("summary prompt too long, going by chunks", request_id=turn.request_id)
        return await self._map_reduce(turn, route, prefix, room)

    async def _append(self, turn: Turn, route: Route, prefix: list[Message], room: int) -> str:
        ask = self.messages.make(
            {"role": "user", "content": prompts.SUMMARISE.format(words=int(room * WORDS_PER_TOKEN))}
        )
        changes: dict[str, bytes | None] = dict.fromkeys(("stream", "stream_options", "n", "response_format", "user"))
        changes = {name: None for name in changes if turn.body.has(name)}
        if turn.offered:
            changes["tools"] = turn.changes.get("tools")  # as cached
        if turn.body.has("tools") or turn.offered:
            changes["tool_choice"] = b'"none"'
        for name in OUTPUT_FIELDS:
            if turn.body.get(name):
                changes[name] = encode(room * 2)
        if route.model != turn.model:
            changes["model"] = encode(route.model)
        said = adapted(self.messages, route.upstream, [*prefix, ask])
        body = turn.body.rebuild([message.raw for message in said], changes)
        return await self._ask(turn.headers, route, body, room)

    async def _map_reduce(self, turn: Turn, route: Route, prefix: Sequence[Message], room: int) -> str:
        window = self.router.window(route)
        most = max(SUMMARY_LEAST, int(CHUNK_SHARE * window) - PROMPT_RESERVE)
        told = [message for message in prefix if not message.facts.is_instruction]
        if sum(len(message.raw) for message in told) > INLINE_BYTES:
            chunks = await asyncio.to_thread(pieces, told, self.settings.chunk_messages, most)
        else:
            chunks = pieces(told, self.settings.chunk_messages, most)
        if not chunks:
            raise SummaryFailed("nothing to summarise")
        each = max(SUMMARY_LEAST // 2, min(room, most // 4))
        parts = await self._all(turn, route, prompts.SUMMARISE_CHUNK, chunks, each)
        while len(parts) > 1:
            groups = _grouped(parts, most)
            parts = await self._all(turn, route, prompts.MERGE, groups, room if len(groups) == 1 else each)
        return parts[0]

    async def _all(self, turn: Turn, route: Route, prompt: str, texts: Sequence[str], room: int) -> list[str]:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._one(turn, route, prompt, text, room)) for text in texts]
        except* (SummaryFailed, GatewayError) as failed:
            raise SummaryFailed(str(failed.exceptions[0])) from failed
        return [task.result() for task in tasks]

    async def _one(self, turn: Turn, route: Route, prompt: str, text: str, room: int) -> str:
        system = {"role": "system", "content": prompt.format(words=int(room * WORDS_PER_TOKEN))}
        body = encode({"model": route.model, "messages": [system, {"role": "user", "content": text}]})
        return await self._ask(turn.headers, route, body, room)

    async def _ask(self, headers: Headers, route: Route, body: bytes, room: int) -> str:
        async with self.gate:
            status, raw = await self.upstreams.complete(route, headers, body)
        if status != 200:
            if context_overflow(status, raw) is not None:
                raise _TooLong(f"the summariser found its prompt too long (status {status})")
            raise SummaryFailed(f"the summariser answered with status {status}")
        reply = Reply.from_json(raw)
        self._count(reply)
        text = reply.choices[0].text.strip() if reply.choices else ""
        if not text:
            raise SummaryFailed("the summariser answered with nothing")
        return trimmed(text, room)

    def _count(self, reply: Reply) -> None:
        usage = reply.usage
        if usage is not None:
            for kind, tokens in (
                ("prompt", usage.prompt_tokens),
                ("cached", usage.cached_tokens),
                ("completion", usage.completion_tokens),
            ):
                self.metrics.summary_tokens.labels(kind).inc(tokens or 0)


class _TooLong(SummaryFailed):
    """The summariser's own request overflowed."""


def summary_room(window: int) -> int:
    """Tokens that a summary may have, for a window."""
    return max(min(SUMMARY_LEAST, window // 4), min(SUMMARY_MOST, int(SUMMARY_SHARE * window)))


def trimmed(text: str, room: int) -> str:
    """The text, its last lines (or sentences) dropped where it is over `room` tokens."""
    text = text[: room * TOKEN_CHARS_MOST]
    if text_tokens(text) <= room:
        return text
    kept: list[str] = []
    left = room
    for line in text.splitlines(keepends=True):
        left -= text_tokens(line)
        if left < 0:
            break
        kept.append(line)
    if kept:
        return "".join(kept).rstrip()
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if text_tokens(text[:middle]) <= room else (low, middle - 1)
    end = max((text.rfind(mark, 0, low) + 1 for mark in (". ", "。", "! ", "? ", "；", " ")), default=0)
    return text[: end if end > low // 2 else low].rstrip()


def _grouped(parts: Sequence[str], most: int) -> list[str]:
    """Summaries packed into as few merge prompts as fit, two at least in each."""
    groups: list[list[str]] = [[]]
    size = 0
    for part in parts:
        tokens = text_tokens(part)
        if len(groups[-1]) >= 2 and size + tokens > most:
            groups.append([])
            size = 0
        groups[-1].append(part)
        size += tokens
    return ["\n\n---\n\n".join(f"Part {index}:\n{text}" for index, text in enumerate(group, 1)) for group in groups]
