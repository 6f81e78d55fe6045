"""What litellm raises for several providers, and what a client is told."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.upstream.overflow import context_overflow
from gateway.upstream.provider_errors import error_reply


def raised(name: str, message: str, status: int, inner: int | None = None, **more: Any) -> Exception:
    """An exception of that class name, as litellm builds them, raised while handling a provider's."""
    error: Exception = type(name, (Exception,), {"message": message, "status_code": status, **more})(message)
    if inner is not None:
        error.__context__ = type("ProviderError", (Exception,), {"status_code": inner})()
    return error


CASES: list[tuple[Exception, int, str, str, str | None]] = [
    (
        raised(
            "RateLimitError",
            'litellm.RateLimitError: geminiException - {\n  "error": {\n    "code": 429,\n    '
            '"message": "Quota exceeded.",\n    "status": "RESOURCE_EXHAUSTED"\n  }\n}\n',
            429,
        ),
        429,
        "Quota exceeded.",
        "RESOURCE_EXHAUSTED",
        "rate_limit_exceeded",
    ),
    (
        raised(
            "BadRequestError", 'litellm.BadRequestError: BedrockException - {"message":"Malformed input request"}', 400
        ),
        400,
        "Malformed input request",
        "invalid_request_error",
        None,
    ),
    (
        raised("InternalServerError", "litellm.InternalServerError: AnthropicError - Overloaded", 500, inner=529),
        529,
        "Overloaded",
        "upstream_error",
        None,
    ),
    (
        raised("Timeout", "litellm.Timeout: Connection timed out after 600.0 seconds.", 408, inner=200),
        408,
        "Connection timed out after 600.0 seconds.",
        "invalid_request_error",
        "upstream_timeout",
    ),
    (ValueError("bad {brace"), 502, "bad {brace", "upstream_error", None),
    (TimeoutError(), 504, "", "upstream_error", None),
    (
        raised("BadRequestError", 'litellm.BadRequestError: OllamaException - {"error":"model not loaded"}', 400),
        400,
        "model not loaded",
        "invalid_request_error",
        None,
    ),
]


@pytest.mark.parametrize(("error", "status", "message", "kind", "code"), CASES)
def test_shape(error: Exception, status: int, message: str, kind: str, code: str | None) -> None:
    assert error_reply(error) == (
        status,
        {"error": {"message": message, "type": kind, "param": None, "code": code}},
        {},
    )


def test_a_long_echo_is_cut_and_a_cycle_ends() -> None:
    error = raised("BadRequestError", "x" * 100_000, 400)
    error.__context__ = error
    assert len(error_reply(error)[1]["error"]["message"]) == 8192


def test_overflow_stays_recognisable() -> None:
    text = (
        "litellm.ContextWindowExceededError: litellm.BadRequestError: VertexAIException BadRequestError - "
        '{"error": {"code": 400, "message": "The input token count (461428) exceeds the maximum number of tokens '
        'allowed (131072).", "status": "INVALID_ARGUMENT"}}'
    )
    status, body, _ = error_reply(raised("ContextWindowExceededError", text, 400))
    found = context_overflow(status, body)
    assert found is not None
    assert (found.limit, found.requested) == (131072, 461428)


def test_the_providers_pause_is_passed_on() -> None:
    error = raised("RateLimitError", "slow", 429, litellm_response_headers={"retry-after": "7", "set-cookie": "x"})
    assert error_reply(error)[2] == {"retry-after": "7"}
