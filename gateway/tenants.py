"""Who is calling: the tenant whose memory may be read, always from the credential and never from the body alone."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from gateway.errors import Forbidden, RateLimited, Unauthorized
from gateway.message import Recent
from gateway.settings import AuthKey

ANONYMOUS = "anonymous"
KEY_HEADERS = (b"authorization", b"api-key", b"x-api-key")
"""Where OpenAI's, Azure's and Anthropic's clients put the credential."""
MINUTE_S = 60.0
HASH_CHARS = 32
"""128 bits: what is kept of a key's SHA-256."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A credential that was let in."""

    tenant: str
    """Owner of memory: a hash of the key (or the configured tenant's name) and of the user behind it."""
    key_hash: str
    key: AuthKey | None = None


def digest(*parts: str) -> str:
    """A hash of texts that no choice of texts can make equal to another's: each is length-prefixed."""
    whole = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        whole.update(len(raw).to_bytes(8, "big") + raw)
    return whole.hexdigest()[:HASH_CHARS]


def credential(headers: Sequence[tuple[bytes, bytes]]) -> str:
    """The caller's key as it stands in its headers, `Bearer` taken off; empty where there is none."""
    for name in KEY_HEADERS:
        for key, value in headers:
            if key == name:
                text = value.decode("latin-1").strip()
                text = text[6:].strip() if text[:7].lower() in ("bearer ", "bearer") else text
                if text:
                    return text
    return ""


class Gatekeeper:
    """Checks keys and their limits."""

    def __init__(self, keys: Sequence[AuthKey]) -> None:
        self._keys = {entry.key.get_secret_value(): entry for entry in keys}
        self._callers: Recent[tuple[str, str], Caller] = Recent(10_000)
        self._calls: dict[str, deque[float]] = {}
        self._spent: dict[tuple[str, str], float] = {}

    @property
    def open(self) -> bool:
        """Whether any key is let in."""
        return not self._keys

    def admit(self, headers: Sequence[tuple[bytes, bytes]], user: str) -> Caller:
        """The caller behind a request.

        Args:
            headers: lower-cased names, as ASGI gives them.
            user: the `X-Memory-User` header or the body's `user`: parts the memory of one key, never opens another's.

        Raises:
            Unauthorized: `auth.keys` is set and this key is not in it.
        """
        secret = credential(headers)
        known = self._callers.get((secret, user))
        if known is not None:
            return known
        entry = self._find(secret)
        key_hash = digest("key", secret) if secret else ANONYMOUS
        owner = f"name:{entry.tenant}" if entry is not None and entry.tenant else key_hash
        caller = Caller(digest("tenant", owner, user), key_hash, entry)
        self._callers.put((secret, user), caller)
        return caller

    def allow(self, caller: Caller, model: str | None) -> None:
        """Whether the key may use the model now; None for a request that names none.

        Raises:
            Forbidden: the key's `models` don't match.
            RateLimited: more than `rpm` requests in the last minute.
        """
        entry = caller.key
        if entry is None:
            return
        if model is not None and not any(fnmatchcase(model, glob) for glob in entry.models):
            raise Forbidden(f"This key may not use the model '{model}'.", param="model")
        month = time.strftime("%Y-%m", time.gmtime())
        if entry.budget_usd is not None and self._spent.get((caller.key_hash, month), 0.0) >= entry.budget_usd:
            raise RateLimited("This key's budget for the month is used up.", code="insufficient_quota")
        if entry.rpm is None:
            return
        calls = self._calls.setdefault(caller.key_hash, deque())
        now = time.monotonic()
        while calls and calls[0] <= now - MINUTE_S:
            calls.popleft()
        if len(calls) >= entry.rpm:
            error = RateLimited(f"Rate limit reached for this key: {entry.rpm} requests per minute.")
            error.headers["retry-after"] = str(max(1, int(calls[0] + MINUTE_S - now + 0.999)))
            raise error
        calls.append(now)

    def spent(self, caller: Caller, month: str, usd: float) -> None:
        """What a key has spent in a month (`2026-11`), over all replicas."""
        self._spent[caller.key_hash, month] = usd

    def _find(self, secret: str) -> AuthKey | None:
        if not self._keys:
            return None
        found = None
        for key, entry in self._keys.items():
            if hmac.compare_digest(key.encode(), secret.encode("utf-8", "surrogateescape")):
                found = entry
        if found is None:
            raise Unauthorized("Incorrect API key provided." if secret else "You didn't provide an API key.")
        return found
