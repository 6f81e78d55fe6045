"""Which window counts: the configured one, what a refusal named, litellm's table."""

from __future__ import annotations

from gateway.settings import Settings
from gateway.tokens.windows import ModelTable
from gateway.upstream.routes import Router

UPSTREAM = {"name": "default", "base_url": "http://127.0.0.1:9/v1", "models": ["*"]}


def router(**models: int) -> Router:
    """A router with windows configured for those models."""
    configured = {name: {"window": window} for name, window in models.items()}
    return Router(Settings.model_validate({"upstreams": [UPSTREAM], "models": configured}), ModelTable())


def test_a_smaller_window_than_the_configured_one_is_believed_while_running() -> None:
    routes = router(m=32_768)
    route = routes.routes("m")[0]
    routes.learn(route, 4_096)
    assert routes.window(route) == 4_096
    routes.learn(route, 65_536)
    assert routes.window(route) == 32_768


def test_what_an_earlier_run_learnt_yields_to_the_configuration() -> None:
    routes = router(m=32_768)
    routes.learned["default", "m"] = 4_096
    assert routes.window(routes.routes("m")[0]) == 32_768


def test_of_a_model_that_is_not_configured_all_that_was_learnt_counts() -> None:
    routes = router()
    routes.learned["default", "earlier"] = 4_096
    now = routes.routes("now")[0]
    assert routes.window(now) == 128_000
    routes.learn(now, 8_192)
    assert [routes.window(routes.routes(name)[0]) for name in ("earlier", "now")] == [4_096, 8_192]
