"""Every error the gateway itself answers with, and the one shape they take.

    GatewayError                 status, code, param, type; never the upstream's own errors, which pass as they came
    ├── BadRequest          400  bad JSON, wrong types, missing `messages`
    ├── Unauthorized        401  no key, or a wrong one, where `auth.keys` is set
    ├── Forbidden           403  a key that may not use this model
    ├── NotFound            404  no such memory, spill entry or route; a model no upstream serves
    ├── BodyTooLarge        413  past `server.max_body_mb`
    ├── RateLimited         429  past the key's `rpm` or `budget_usd`
    ├── UpstreamUnreachable 502  refused, reset, or answered with something that is not HTTP
    ├── Unavailable         503  the gateway's own store can't answer (memory API only)
    └── UpstreamTimeout     504  connected, then silent for too long

`SettingsError` stands apart: it stops the start and is never answered to a client.
"""

from __future__ import annotations

import orjson


class GatewayError(Exception):
    """An answer in OpenAI's error shape: `{"error": {"message", "type", "param", "code"}}`."""

    status = 500
    type = "gateway_error"
    code: str | None = None

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        if code is not None:
            self.code = code
        self.headers: dict[str, str] = {}

    def body(self) -> bytes:
        """The JSON document sent to the client; lone surrogates in what it quotes become `?`."""
        message = self.message.encode("utf-8", "replace").decode()
        return orjson.dumps({"error": {"message": message, "type": self.type, "param": self.param, "code": self.code}})


class BadRequest(GatewayError):
    """The request can't be understood; `param` names the failing path, such as `messages[3].role`."""

    status = 400
    type = "invalid_request_error"


class Unauthorized(GatewayError):
    """`auth.keys` is set and the caller's key is not among them."""

    status = 401
    type = "invalid_request_error"
    code = "invalid_api_key"


class Forbidden(GatewayError):
    """The key is good, the thing asked for is not its to have."""

    status = 403
    type = "permission_error"
    code = "model_not_allowed"


class NotFound(GatewayError):
    """Nothing under that name for this tenant."""

    status = 404
    type = "invalid_request_error"
    code = "not_found"


class BodyTooLarge(GatewayError):
    """The request's body is over `server.max_body_mb`."""

    status = 413
    type = "invalid_request_error"
    code = "request_too_large"


class RateLimited(GatewayError):
    """The key has used up its requests for this minute, or its budget."""

    status = 429
    type = "rate_limit_error"
    code = "rate_limit_exceeded"


class UpstreamUnreachable(GatewayError):
    """No HTTP answer came from the upstream."""

    status = 502
    type = "upstream_error"
    code = "upstream_unreachable"


class Unavailable(GatewayError):
    """The gateway's own store can't be read or written now."""

    status = 503
    type = "gateway_error"
    code = "store_unavailable"


class UpstreamTimeout(GatewayError):
    """The upstream took the request and then stayed silent."""

    status = 504
    type = "upstream_error"
    code = "upstream_timeout"


class SettingsError(Exception):
    """The configuration is wrong; the message names the file, the line and the nearest valid name."""
