"""Who can reach the gateway, judged from its address: the one rule that `serve` enforces and `check` reports."""

from __future__ import annotations

import ipaddress

from gateway.settings import Settings

LOOPBACK_NAMES = frozenset({"localhost", "ip6-localhost", "ip6-loopback"})
"""Names that RFC 6761 and the usual hosts files bind to loopback; any other may resolve to anything."""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server on `host`."""
    name = host.strip("[]").lower()
    if name in LOOPBACK_NAMES or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name.partition("%")[0]).is_loopback
    except ValueError:
        return False


def is_exposed(settings: Settings) -> bool:
    """Whether strangers could call the gateway: an address beyond this machine, and no key asked for."""
    return not is_loopback(settings.server.host) and not settings.auth.keys
