"""Put a provider's failure, as litellm raises it, into OpenAI's error shape.

The message is the provider's own and the status the one it sent: litellm wraps the first in its class names and, for
some, changes the second (Anthropic's 529 becomes a 500), while a client's own retry logic goes by both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from gateway.types import JsonObject

_CODES: Final = {
    "ContextWindowExceededError": "context_length_exceeded",
    "ContentPolicyViolationError": "content_policy_violation",
    "AuthenticationError": "invalid_api_key",
    "NotFoundError": "model_not_found",
    "RateLimitError": "rate_limit_exceeded",
    "Timeout": "upstream_timeout",
    "APIConnectionError": "upstream_unreachable",
}
"""Names of litellm's exceptions and OpenAI's codes for them."""

_TYPES: Final = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
_PREFIX: Final = re.compile(r"^(?:litellm\.\w+: |\w+(?:Exception|Error): |\w*(?:Exception|Error) - )+")
_FORWARDED_HEADERS: Final = ("retry-after", "retry-after-ms", "request-id", "x-request-id")
_MAX_MESSAGE: Final = 8_192
"""Characters of a message passed on; some providers echo the request."""


def error_reply(error: Exception) -> tuple[int, JsonObject, dict[str, str]]:
    """Status, body and headers to answer with."""
    status = _status(error)
    message, kind = _said(str(getattr(error, "message", "") or error))
    code = next((_CODES[cls.__name__] for cls in type(error).__mro__ if cls.__name__ in _CODES), None)
    if kind is None:
        kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "upstream_error")
    body = {"error": {"message": message[:_MAX_MESSAGE], "type": kind, "param": None, "code": code}}
    return status, body, _headers(error)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, then what it was raised from."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _status(error: Exception) -> int:
    """The status the provider sent: that of the innermost error that knows one, if it is an error's."""
    found: int | None = None
    for link in _chain(error):
        status = getattr(link, "status_code", None)
        if isinstance(status, int) and 400 <= status < 600:
            found = status
    if found is not None:
        return found
    return 504 if isinstance(error, TimeoutError) else 502


def _said(text: str) -> tuple[str, str | None]:
    """The provider's own message, and its type where it gave one, out of litellm's wrapping."""
    start = text.find("{")
    while 0 <= start < _MAX_MESSAGE:
        try:
            document, _ = json.JSONDecoder().raw_decode(text, start)
        except json.JSONDecodeError:
            start = text.find("{", start + 1)
            continue
        return _message_of(document) or (_PREFIX.sub("", text), None)
    return _PREFIX.sub("", text), None


def _message_of(document: Any) -> tuple[str, str | None] | None:
    if not isinstance(document, dict):
        return None
    inner = document.get("error", document)
    if isinstance(inner, str):
        return inner, None
    if not isinstance(inner, dict) or not isinstance(inner.get("message"), str):
        return None
    kind = inner.get("type") or inner.get("status")
    return inner["message"], kind if isinstance(kind, str) else None


def _headers(error: Exception) -> dict[str, str]:
    for link in _chain(error):
        response = getattr(link, "response", None)
        for headers in (getattr(link, "litellm_response_headers", None), getattr(response, "headers", None)):
            kept = {name: str(headers[name]) for name in _FORWARDED_HEADERS if headers and name in headers}
            if kept:
                return kept
    return {}
