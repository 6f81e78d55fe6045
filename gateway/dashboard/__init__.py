"""`/dashboard`: what `/metrics` counts, for people.

Three static files and no state: the page polls `/metrics` and adds up in the browser, so it costs the gateway nothing
that Prometheus would not. Nothing is loaded from elsewhere, and the page's policy forbids it.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

FILES = {
    "/dashboard": ("index.html", "text/html"),
    "/dashboard/app.js": ("app.js", "text/javascript"),
    "/dashboard/style.css": ("style.css", "text/css"),
}
"""Path to file and type."""

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
"""`img-src data:` is for the page's icon, which is written into it."""


def dashboard_routes() -> list[Route]:
    """The page and what it needs, read once."""
    folder = importlib.resources.files("gateway.dashboard")
    return [Route(path, _static(folder.joinpath(name).read_bytes(), kind)) for path, (name, kind) in FILES.items()]


def _static(content: bytes, kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(_: Request) -> Response:
        return Response(content, media_type=kind, headers=HEADERS)

    return answer
