"""From a request's headers and bytes to a Turn: who calls, which model, which conversation, which limits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from gateway.body import ChatBody
from gateway.conversation import Conversation
from gateway.cutting import lay
from gateway.errors import BadRequest
from gateway.message import chain
from gateway.prefixes import Match, take_over, terms_of
from gateway.readback.readings import with_readings
from gateway.services import Services
from gateway.tenants import Caller
from gateway.turn import Item, Turn
from gateway.upstream.http import request_headers

ROOT = b"\0" * 16
"""The chain of an empty conversation."""
NAME_CHARS = 256
"""The most of a session, project or user name that is taken; longer ones are refused."""
INLINE_BYTES = 32 * 1024
"""Of messages read on the event loop, 1-2 ms where none has been seen before; more are read in a thread."""
BYPASSES = frozenset(("all", "memory", "compaction"))


def header(headers: Sequence[tuple[bytes, bytes]], name: bytes) -> str:
    """A header's value as UTF-8 (or Latin-1) text; empty where absent.

    Raises:
        BadRequest: longer than any name has to be.
    """
    for key, raw in headers:
        if key == name:
            return _name(name, raw)
    return ""


def _name(name: bytes, raw: bytes) -> str:
    try:
        text = raw.decode().strip()
    except UnicodeDecodeError:
        text = raw.decode("latin-1").strip()
    if len(text) > NAME_CHARS:
        raise BadRequest(f"The header '{name.decode()}' is longer than {NAME_CHARS} characters.", param=name.decode())
    return text


def caller_of(services: Services, headers: Sequence[tuple[bytes, bytes]], user: str = "") -> Caller:
    """Who calls; the `X-Memory-User` header goes before the body's `user`."""
    return services.gatekeeper.admit(headers, header(headers, b"x-memory-user") or user)


async def read_turn(services: Services, request_id: str, headers: Sequence[tuple[bytes, bytes]], raw: bytes) -> Turn:
    """The turn that a chat request begins.

    Raises:
        GatewayError: what is wrong with the request, its key or its model.
    """
    bypass = _bypass(headers)
    key_hash = services.gatekeeper.admit(headers, "").key_hash
    match = services.prefixes.find(key_hash, raw) if "all" not in bypass else None
    body = match.prefix.body.extended(raw, match.count, match.end) if match is not None else None
    if body is None:
        match, body = None, ChatBody.parse(raw)
    model, caller = _model(body), _caller(services, headers, body)
    services.gatekeeper.allow(caller, model)
    route = services.router.routes(model)[0]
    items = match.items() if match is not None else []
    since, at = 0, ROOT
    if match is not None:
        since, at = match.count, next(item.chain for item in reversed(items) if not item.own)
    if sum(map(len, body.messages[since:])) > INLINE_BYTES:
        items += await asyncio.to_thread(_items, services, body, since, at)
    else:
        items += _items(services, body, since, at)
    derived = match.prefix.derived_session if match is not None and match.whole else _session(items)
    session = header(headers, b"x-session-id") or derived
    turn = Turn(
        request_id=request_id,
        caller=caller,
        headers=request_headers(headers),
        body=body,
        model=model,
        stream=body.get("stream") is True,
        route=route,
        session=session,
        project=header(headers, b"x-memory-project"),
        bypass=bypass,
        conversation=await _conversation(services, caller, session, items, match)
        if "all" not in bypass
        else Conversation(caller.tenant, session),
        items=items,
        limits=services.limits.limits(services.router.window(route), max_output(body)),
        derived_session=derived,
    )
    services.counting.begin(turn)
    _start_from(services, turn, match)
    turn.tokens_before = turn.tokens_after = turn.calibrated(turn.before_tokens)
    now = time.time()
    turn.idle_s = now - turn.conversation.last_seen if turn.conversation.last_seen else 0.0
    turn.conversation.last_seen = now
    return turn


def _model(body: ChatBody) -> str:
    model = body.get("model")
    if not isinstance(model, str) or not model:
        code = "invalid_type" if body.has("model") else "missing_required_parameter"
        raise BadRequest("You must provide a model parameter: a string.", param="model", code=code)
    return model


def _caller(services: Services, headers: Sequence[tuple[bytes, bytes]], body: ChatBody) -> Caller:
    user = body.get("user")
    if user is not None and not isinstance(user, str):
        raise BadRequest("'user' must be a string.", param="user", code="invalid_type")
    return caller_of(services, headers, user or "")


def _items(services: Services, body: ChatBody, first: int, at: bytes) -> list[Item]:
    """The items for the messages from index `first` on, whose predecessors' chain is `at`."""
    found: list[Item] = []
    for index in range(first, len(body.messages)):
        message = services.messages.read(body.messages[index], index)
        at = chain(at, message.facts.identity)
        found.append(Item(at, message, message))
    return found


async def _conversation(
    services: Services, caller: Caller, session: str, items: list[Item], match: Match | None
) -> Conversation:
    """The conversation's decisions; read from the store where turns of it may have gone elsewhere."""
    known = match.prefix.conversation if match is not None else None
    if match is not None and known is not None and (known.tenant, known.session) == (caller.tenant, session):
        since = sum(1 for item in items[len(match.items()) :] if item.original.facts.role == "assistant")
        if since <= 1 and known.failed_load_at is None and services.conversations.holds(known):
            known.tips.append(items[-1].chain)
            return known
    replies = [index for index, item in enumerate(items) if item.original.facts.role == "assistant"]
    return await services.conversations.get(caller.tenant, session, [item.chain for item in items], replies)


def _start_from(services: Services, turn: Turn, match: Match | None) -> None:
    """Take over what an earlier turn settled; where it can't be, start over from the client's messages."""
    since = len(match.items()) if match is not None else 0
    counted = since if match is not None and match.whole else 0
    turn.before_tokens = match.prefix.before_tokens if match is not None and match.whole else 0
    turn.before_tokens += sum(turn.tokens_of(item.original) for item in turn.items[counted:])
    known = match.prefix if match is not None else None
    conversation, bypassed = turn.conversation, bool(turn.bypass & {"all", "compaction"})
    if known is None:
        turn.items = with_readings(services.messages, conversation, turn.items, 0, bypassed=bypassed)
    elif conversation is known.conversation and known.version == conversation.version and known.terms == terms_of(turn):
        turn.items = with_readings(services.messages, conversation, turn.items, since - 1, bypassed=bypassed)
        take_over(turn, known, since)
    else:
        own = [Item(i.chain, i.client or i.original, i.client or i.original) for i in turn.items if not i.own]
        turn.items = with_readings(services.messages, conversation, own, 0, bypassed=bypassed)


def recall_cut(services: Services, turn: Turn) -> None:
    """Lay the newest cut that holds for this history, if any: everything before it is replaced at no cost."""
    records = turn.conversation.records
    if not records:
        return
    if turn.cut is not None:
        turn.actions["compact"] = "reused"
    for index in range(len(turn.items) - 1, max(0, turn.settled - 1), -1):
        record = records.get(turn.items[index].chain)
        if record is not None and record.cut is not None:
            lay(turn, services.messages, index, record.cut)
            turn.actions["compact"] = "reused"
            return


def _session(items: Sequence[Item]) -> str:
    """A name for the conversation: the hash of its first messages, up to the first of the user."""
    first = next((index for index, item in enumerate(items) if item.original.facts.role == "user"), 0)
    return items[first].chain.hex()


def _bypass(headers: Sequence[tuple[bytes, bytes]]) -> frozenset[str]:
    wanted = header(headers, b"x-gateway-bypass").lower()
    return frozenset(word.strip() for word in wanted.split(",")) & BYPASSES if wanted else frozenset()


def max_output(body: ChatBody) -> int | None:
    """Tokens that the request reserves for its reply; None where it names none."""
    for name in ("max_completion_tokens", "max_tokens"):
        value = body.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None
