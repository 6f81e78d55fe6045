"""From a request's headers and bytes to a Turn: who calls, which model, which conversation, which limits."""

from __future__ import annotations

import time
from collections.abc import Sequence

from gateway.body import ChatBody
from gateway.cutting import lay
from gateway.errors import BadRequest
from gateway.limits import limits_for
from gateway.message import Message, chain
from gateway.services import Services
from gateway.tenants import Caller, digest
from gateway.turn import Item, Turn
from gateway.upstream.http import request_headers

ROOT = b"\0" * 16
"""The chain of an empty conversation."""
NAME_CHARS = 256
"""The most of a session, project or user name that is taken; longer ones are refused."""
BYPASSES = frozenset(("all", "memory", "compaction"))


def header(headers: Sequence[tuple[bytes, bytes]], name: bytes) -> str:
    """A header's value as UTF-8 (or Latin-1) text; empty where absent.

    Raises:
        BadRequest: longer than any name has to be.
    """
    raw = next((value for key, value in headers if key == name), b"")
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
    services.gatekeeper.admit(headers, "")
    body = ChatBody.parse(raw)
    model = body.get("model")
    if not isinstance(model, str) or not model:
        code = "invalid_type" if body.has("model") else "missing_required_parameter"
        raise BadRequest("You must provide a model parameter: a string.", param="model", code=code)
    user = body.get("user")
    if user is not None and not isinstance(user, str):
        raise BadRequest("'user' must be a string.", param="user", code="invalid_type")
    caller = caller_of(services, headers, user or "")
    services.gatekeeper.allow(caller, model)
    route = services.router.routes(model)[0]
    messages = [services.messages.read(message, index) for index, message in enumerate(body.messages)]
    chains = _chains(messages)
    session = header(headers, b"x-session-id") or _session(messages, chains)
    fresh = not any(message.facts.role == "assistant" for message in messages)
    conversation = await services.conversations.get(caller.tenant, session, fresh=fresh)
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
        bypass=_bypass(headers),
        conversation=conversation,
        items=[Item(at, message, message) for at, message in zip(chains, messages, strict=True)],
        limits=limits_for(services.router.window(route), _max_output(body), services.settings.limits),
    )
    services.counting.begin(turn)
    turn.tokens_before = turn.tokens_after = turn.count()
    now = time.time()
    turn.idle_s = now - conversation.last_seen if conversation.last_seen else 0.0
    conversation.last_seen = now
    return turn


def recall_cut(services: Services, turn: Turn) -> None:
    """Lay the newest cut that holds for this history, if any: everything before it is replaced at no cost."""
    records = turn.conversation.records
    if not records:
        return
    for index in range(len(turn.items) - 1, 0, -1):
        record = records.get(turn.items[index].chain)
        if record is not None and record.cut is not None:
            lay(turn, services.messages, index, record.cut)
            turn.actions["compact"] = "reused"
            return


def _chains(messages: Sequence[Message]) -> list[bytes]:
    at = ROOT
    return [at := chain(at, message.facts.identity) for message in messages]


def _session(messages: Sequence[Message], chains: Sequence[bytes]) -> str:
    """A name for the conversation: the hash of its first messages, up to the first of the user."""
    first = next((index for index, message in enumerate(messages) if message.facts.role == "user"), 0)
    return digest("session", chains[first].hex())


def _bypass(headers: Sequence[tuple[bytes, bytes]]) -> frozenset[str]:
    wanted = header(headers, b"x-gateway-bypass").lower()
    return frozenset(word.strip() for word in wanted.split(",")) & BYPASSES if wanted else frozenset()


def _max_output(body: ChatBody) -> int | None:
    for name in ("max_completion_tokens", "max_tokens"):
        value = body.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None
