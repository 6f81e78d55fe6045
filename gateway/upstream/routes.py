"""Which upstream serves a model, what its window is, and what takes over where it fails."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from gateway.errors import NotFound
from gateway.limits import DEFAULT_WINDOW
from gateway.settings import ModelSettings, Settings, UpstreamSettings
from gateway.tokens.windows import ModelTable, Price

NO_SETTINGS = ModelSettings()
LABELS_MOST = 200
"""Model names told apart in metrics; the rest is `other`."""


@dataclass(frozen=True, slots=True)
class Route:
    """A model at an upstream."""

    upstream: UpstreamSettings
    model: str
    """The name sent upstream."""
    settings: ModelSettings = NO_SETTINGS

    @property
    def name(self) -> str:
        """The upstream's name, for metrics and calibration."""
        return self.upstream.name


class Router:
    """Resolves models. `table` is litellm's, read from its file; windows learned from overflow errors come on top."""

    def __init__(self, settings: Settings, table: ModelTable) -> None:
        self._settings = settings
        self._table = table
        self._routes: dict[str, list[Route]] = {}
        self._labels: set[str] = set()
        self.learned: dict[tuple[str, str], int] = {}
        """Windows that overflow errors named, by upstream and model, those of earlier runs among them."""
        self._named: dict[tuple[str, str], int] = {}
        """Those of this run: what an upstream says now is true whatever the configuration hopes."""

    def routes(self, model: str) -> list[Route]:
        """The route for a model, then its fallbacks in order.

        Raises:
            NotFound: no upstream serves it.
        """
        found = self._routes.get(model)
        if found is None:
            found = self._resolve(model)
            if len(self._routes) < 10_000:
                self._routes[model] = found
        return found

    def default(self) -> UpstreamSettings:
        """The upstream that paths without a model go to: the first that speaks OpenAI's protocol itself."""
        plain = (upstream for upstream in self._settings.upstreams if upstream.provider is None)
        return next(plain, self._settings.upstreams[0])

    def window(self, route: Route) -> int:
        """The context window of the model at that upstream, tokens."""
        key, configured = (route.name, route.model), route.settings.window
        if configured is not None:
            return min(configured, self._named.get(key, configured))
        return self.learned.get(key) or self._table.window(route.model) or DEFAULT_WINDOW

    def learn(self, route: Route, window: int) -> None:
        """Take note of the window that the upstream's refusal named, tokens."""
        self.learned[route.name, route.model] = self._named[route.name, route.model] = window

    def max_output(self, route: Route) -> int | None:
        """The longest reply the model gives, tokens; None where unknown."""
        return route.settings.max_output or self._table.max_output(route.model)

    def price(self, route: Route) -> Price | None:
        """What a token costs there, where litellm's table knows."""
        return self._table.price(route.model)

    def label(self, model: str) -> str:
        """The model's name where it is a known one, else `other`: what clients send must not become metric labels."""
        if model in self._labels:
            return model
        if len(self._labels) < LABELS_MOST and (model in self._settings.models or self._table.known(model)):
            self._labels.add(model)
            return model
        return "other"

    def _resolve(self, model: str) -> list[Route]:
        entry = self._entry(model)
        first = self._upstream(entry.route) if entry.route else self._serving(model)
        if first is None:
            raise NotFound(
                f"The model '{model}' does not exist here: no upstream serves it.",
                param="model",
                code="model_not_found",
            )
        routes = [Route(first, model, entry)]
        for name in entry.fallbacks:
            upstream = self._upstream(name)
            if upstream is not None:
                routes.append(Route(upstream, model, entry))
            elif (serving := self._serving(name)) is not None:
                routes.append(Route(serving, name, self._entry(name)))
        return routes

    def _entry(self, model: str) -> ModelSettings:
        models = self._settings.models
        if model in models:
            return models[model]
        return next((entry for glob, entry in models.items() if fnmatchcase(model, glob)), NO_SETTINGS)

    def _serving(self, model: str) -> UpstreamSettings | None:
        route = self._entry(model).route
        if route:
            return self._upstream(route)
        serving = (u for u in self._settings.upstreams if any(fnmatchcase(model, glob) for glob in u.models))
        return next(serving, None)

    def _upstream(self, name: str) -> UpstreamSettings | None:
        return next((u for u in self._settings.upstreams if u.name == name), None)
