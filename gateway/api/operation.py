"""One operation of the memory API: what it takes, what it answers, and how a request is read for it.

Routing works on the path as it was sent, segment by segment, so that a session's or a preference's name may hold a
slash when it is percent-encoded.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes

import orjson
from pydantic import BaseModel, ValidationError

from gateway.api.models import Body, Query
from gateway.errors import BadRequest, GatewayError, NotFound
from gateway.memory.transfer import explain

JSON_TYPE = "application/json"
TEXT_TYPE = "text/plain; charset=utf-8"
LINES_TYPE = "application/x-ndjson"
SMALL_BODY = 1024 * 1024
"""Bytes; the largest body of one memory or one plan is far smaller."""
PARAMETERS_MOST = 50
ROOT = ["v1", "memory"]

Headers = Sequence[tuple[bytes, bytes]]


class MethodNotAllowed(GatewayError):
    """The path is one of ours, the method is not."""

    status = 405
    type = "invalid_request_error"
    code = "method_not_allowed"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that has been read, for the tenant whose credential it carries."""

    tenant: str
    project: str
    session: str
    headers: Headers
    path: Mapping[str, str]
    query: Any
    """An instance of the operation's `query`."""
    body: Any
    """An instance of the operation's `body`, or None."""
    raw: bytes


@dataclass(frozen=True, slots=True)
class Answered:
    """What goes back. A body in pieces is sent as they come."""

    body: bytes | AsyncIterator[bytes]
    status: int = 200
    content_type: str = JSON_TYPE
    headers: Mapping[str, str] = field(default_factory=dict)


def answer(document: object, status: int = 200) -> Answered:
    """A JSON answer."""
    return Answered(orjson.dumps(document), status)


@dataclass(frozen=True, slots=True)
class Operation:
    """An entry of the API's table. `answers`: by status, the model of the body, or its media type."""

    method: str
    path: str
    """Below `/v1/memory`, with `{names}`; empty for the root."""
    run: Callable[[Asked], Awaitable[Answered]]
    summary: str
    answers: Mapping[int, type[BaseModel] | str]
    query: type[Query] = Query
    body: type[Body] | None = None
    raw_body: bool = False
    """The body is described by its model, but taken as it is."""
    largest: int = SMALL_BODY
    session_header: bool = False
    """Whether `X-Session-Id` has to be there."""

    @property
    def segments(self) -> tuple[str, ...]:
        """The path cut at its slashes."""
        return tuple(self.path.strip("/").split("/")) if self.path else ()


def find(table: Sequence[Operation], method: str, raw_path: bytes) -> tuple[Operation, dict[str, str]]:
    """The operation for a request; a fixed segment goes before a named one.

    Raises:
        NotFound: no such path.
        MethodNotAllowed: the path takes other methods; they are in its `allow` header.
    """
    segments = _segments(raw_path)
    here = [(op, values) for op in table if (values := _match(op.segments, segments)) is not None]
    if not here:
        raise NotFound("There is nothing at this path of the memory API; /v1/memory/openapi.json lists what there is.")
    fewest = min(len(values) for _, values in here)
    here = [(op, values) for op, values in here if len(values) == fewest]
    wanted = "GET" if method == "HEAD" else method
    for op, values in here:
        if op.method == wanted:
            return op, values
    methods = sorted({op.method for op, _ in here} | ({"HEAD"} if any(op.method == "GET" for op, _ in here) else set()))
    error = MethodNotAllowed(f"This path takes {', '.join(methods)}.")
    error.headers["allow"] = ", ".join(methods)
    raise error


def _segments(raw_path: bytes) -> list[str]:
    path = raw_path.split(b"?", 1)[0].strip(b"/")
    try:
        parts = [unquote_to_bytes(part).decode() for part in path.split(b"/")]
    except UnicodeDecodeError:
        raise NotFound("The path is not UTF-8.") from None
    if parts[:2] != ROOT:
        raise NotFound("There is nothing at this path.")  # a slash in a name, where the path needs one of its own
    return parts[2:]


def _match(template: tuple[str, ...], segments: list[str]) -> dict[str, str] | None:
    if len(template) != len(segments):
        return None
    values: dict[str, str] = {}
    for pattern, segment in zip(template, segments, strict=True):
        if pattern.startswith("{"):
            if not segment:
                return None
            values[pattern[1:-1]] = segment
        elif pattern != segment:
            return None
    return values


def read_query(model: type[Query], raw: bytes) -> Query:
    """The query string, checked.

    Raises:
        BadRequest: a name that is unknown or stands twice, or a value that is wrong.
    """
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=PARAMETERS_MOST)
    except ValueError:
        raise BadRequest("The query string can't be read.", param="query") from None
    given: dict[str, str] = {}
    for name, value in pairs:
        if name in given:
            raise BadRequest(f"The parameter '{name[:50]}' stands twice.", param=name[:50])
        given[name] = value
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise _invalid(error) from None


def read_json(model: type[Body], raw: bytes) -> Body:
    """A JSON body, checked.

    Raises:
        BadRequest: not JSON, or not of the model.
    """
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise _invalid(error) from None


def _invalid(error: ValidationError) -> BadRequest:
    location = error.errors(include_url=False, include_input=False, include_context=False)[0]["loc"]
    param = ".".join(str(part) for part in location)
    return BadRequest(f"Invalid request: {explain(error)}", param=param or None, code="invalid_value")
