"""Slash commands: a user message that is exactly `/memory [query]`, `/save <fact>` or `/clear` is answered here, in the
shape of a chat completion, and nothing goes upstream. Off unless `slash_commands` is on.

`/clear` takes the lasting facts of the conversation first, then drops what the gateway keeps of the conversation
itself: its working state, its notes, and the decisions made about its messages. Long-term memory stays; so do the
messages, which are the client's own.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from gateway.body import as_object, encode
from gateway.conversation import EMPTY, KIND
from gateway.errors import Forbidden
from gateway.memory.commands import Command, parse_command
from gateway.memory.edit import outcome_of
from gateway.memory.entries import EntryType, MemoryEntry, Trust
from gateway.memory.render import PREFERENCES, RETRIEVED, neutralise
from gateway.memory.service import Source
from gateway.services import Services
from gateway.store.protocol import Decision
from gateway.tokens.fast import text_tokens
from gateway.turn import Turn
from gateway.types import JsonObject

SHOWN_MOST = 20
"""Memories listed in one answer."""
NOTES_PAGE = 500
JSON_TYPE = b"application/json"
EVENTS_TYPE = b"text/event-stream; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole chat completion, or all the events of a streamed one."""

    content_type: bytes
    body: bytes


class SlashCommands:
    """Answers the commands in chat requests."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._enabled = services.settings.slash_commands

    async def answer(self, turn: Turn) -> Reply | None:
        """The reply to a command; None where the request is for the upstream.

        Raises:
            Unavailable: the store can't be read or written now.
        """
        command = self._command(turn)
        if command is None:
            return None
        if command.name == "memory":
            text = await self._memory(turn, command.argument)
        elif command.name == "save":
            text = await self._save(turn, command.argument)
        else:
            text = await self._clear(turn)
        turn.actions["slash"] = command.name
        turn.tokens_after = 0
        return _completion(turn, text)

    def _command(self, turn: Turn) -> Command | None:
        if not self._enabled or turn.bypass & {"all", "memory"} or not turn.items:
            return None
        message = turn.items[-1].original
        if message.facts.role != "user":
            return None
        content = message.data.get("content")
        if isinstance(content, list):
            parts = [as_object(part) for part in content]
            if any(part.get("type") not in ("text", "input_text") for part in parts):
                return None
            content = "\n".join(str(part.get("text") or "") for part in parts)
        return parse_command(content) if isinstance(content, str) else None

    async def _memory(self, turn: Turn, query: str) -> str:
        store, tenant = self._services.store, turn.caller.tenant
        if query:
            hits = await self._services.memory.retriever.retrieve(
                tenant, query, SHOWN_MOST, project=turn.project or None
            )
            found = _listing(RETRIEVED, (hit.entry for hit in hits))
            return found or f"Nothing is remembered about “{query}”."
        preferences = await store.list(tenant, type=EntryType.PREFERENCE, limit=SHOWN_MOST)
        facts = await store.list(tenant, scope="long", type=EntryType.FACT, limit=SHOWN_MOST)
        parts = [_listing(PREFERENCES, preferences.entries), _listing(RETRIEVED, facts.entries)]
        text = "\n\n".join(part for part in parts if part)
        if not text:
            return "Nothing is remembered yet. `/save <fact>` keeps something."
        count = await store.count(tenant)
        return f"{text}\n\n{count} {'memory' if count == 1 else 'memories'} in all; `/memory <query>` searches them."

    async def _save(self, turn: Turn, fact: str) -> str:
        source = Source(turn.caller.tenant, turn.session, turn.project)
        try:
            written = outcome_of(await self._services.memory.remember(fact, source))
        except Forbidden as error:
            return f"Not saved. {error.message}"
        if written.outcome == "quarantined":
            return "Held back: it reads like an instruction or holds an address. Approve it through the memory API."
        if written.entry is None:
            return "That is remembered already."
        replaced = " It replaces what was remembered before." if written.superseded else ""
        return f"Saved: {written.entry.content}{replaced}"

    async def _clear(self, turn: Turn) -> str:
        s, tenant, session = self._services, turn.caller.tenant, turn.session
        told = [i.original.data for i in turn.items[:-1] if i.original.facts.role in ("user", "assistant")]
        report = (
            await s.memory.extract(told, turn=turn, with_model=True) if told and s.settings.memory.enabled else None
        )
        s.conversations.forget(tenant, [session])
        await s.store.set_working(tenant, session, None)
        gone = await self._drop_notes(tenant, session)
        blank = [
            Decision(decision.chain, KIND, EMPTY.to_bytes())
            for decision in await s.store.load_decisions(tenant, session)
            if decision.kind == KIND
        ]
        await s.store.save_decisions({(tenant, session): blank})
        s.conversations.forget(tenant, [session])
        s.prefixes.forget(tenant)
        kept = "" if report is None else f" New facts kept: {len(report.kept)}."
        return f"Cleared the state of this conversation ({gone} notes).{kept} Long-term memory stays."

    async def _drop_notes(self, tenant: str, session: str) -> int:
        store, gone = self._services.store, 0
        while True:
            page = await store.list(tenant, scope="session", session=session, include_history=True, limit=NOTES_PAGE)
            for entry in page.entries:
                gone += await store.delete(tenant, entry.id)
            if page.cursor is None:
                return gone


def _listing(label: str, entries: Iterable[MemoryEntry]) -> str:
    """Lines under a label of the injected block, so that nothing of it is ever taken for something said."""
    lines = [f"- {neutralise(entry.content)}" for entry in entries if entry.trust is not Trust.QUARANTINED]
    return "\n".join((label, *lines)) if lines else ""


def _completion(turn: Turn, text: str) -> Reply:
    said = text_tokens(text)
    usage = {
        "prompt_tokens": turn.tokens_before,
        "completion_tokens": said,
        "total_tokens": turn.tokens_before + said,
    }
    head: JsonObject = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": turn.model}
    if turn.stream:
        options = as_object(turn.body.get("stream_options"))
        return Reply(EVENTS_TYPE, _events(head, text, usage if options.get("include_usage") is True else None))
    message = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return Reply(JSON_TYPE, encode({**head, "object": "chat.completion", "choices": [choice], "usage": usage}))


def _events(head: JsonObject, text: str, usage: JsonObject | None) -> bytes:
    head = {**head, "object": "chat.completion.chunk"}
    steps: list[tuple[JsonObject, str | None]] = [
        ({"role": "assistant", "content": "", "refusal": None}, None),
        ({"content": text}, None),
        ({}, "stop"),
    ]
    chunks: list[JsonObject] = []
    for delta, finish in steps:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        chunks.append({**head, "choices": [choice]})
    if usage is not None:
        chunks = [{**chunk, "usage": None} for chunk in chunks]
        chunks.append({**head, "choices": [], "usage": usage})
    return b"".join(b"data: " + encode(chunk) + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"
