"""What operators ask: is it alive, is it ready, what does it count."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gateway.errors import GatewayError
from gateway.metrics import CONTENT_TYPE
from gateway.services import Services


class Admin:
    """`/healthz`, `/readyz`, `/metrics`."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def healthz(self, _: Request) -> Response:
        """The process answers."""
        return JSONResponse({"status": "ok"})

    async def readyz(self, _: Request) -> Response:
        """The store answers too. Without it requests still pass, so only memory is said to be away."""
        try:
            await self._services.store.ping()
        except GatewayError as error:
            return JSONResponse({"status": "degraded", "store": error.message}, status_code=503)
        return JSONResponse({"status": "ready"})

    async def metrics(self, _: Request) -> Response:
        """Prometheus' text format."""
        return Response(self._services.metrics.render(), media_type=CONTENT_TYPE)
