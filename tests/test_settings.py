"""The shape of the configuration: the defaults that were promised, and values that can't stand together."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from gateway.settings import AuthKey, LimitSettings, MemorySettings, ModelSettings, Settings, UpstreamSettings

PROMISED: dict[str, Any] = {
    "server.host": "127.0.0.1",
    "server.port": 8787,
    "server.max_body_mb": 64,
    "data_dir": Path.home() / ".breakwater",
    "database_url": None,
    "auth.keys": [],
    "models": {},
    "limits.soft": 0.70,
    "limits.buffer": 13_000,
    "limits.low_watermark": 0.50,
    "limits.speculative": 0.80,
    "limits.min_gain": 2_000,
    "limits.cache_ttl_s": 300,
    "fold.enabled": True,
    "protected_tools": ["todowrite", "todo_write", "update_plan", "task"],
    "spill.enabled": True,
    "spill.max_lines": 1_000,
    "spill.max_chars": 40_000,
    "spill.max_share": 0.10,
    "spill.tool": False,
    "spill.max_mb": 1_024,
    "spill.max_age_days": 30,
    "snip.enabled": True,
    "snip.max_chars": 3_000,
    "snip.head": 1_500,
    "snip.tail": 1_000,
    "snip.signal": 1_000,
    "microcompact.enabled": True,
    "microcompact.keep_rounds": 3,
    "compaction.enabled": True,
    "compaction.model": None,
    "compaction.chunk_messages": 5,
    "compaction.keep_rounds": 3,
    "compaction.timeout_s": 60,
    "compaction.concurrency": 4,
    "memory.enabled": True,
    "memory.model": None,
    "memory.recall_timeout_s": 2,
    "memory.top_k": 5,
    "memory.max_tokens": 500,
    "memory.every_turns": 5,
    "memory.embeddings": None,
    "injection.mode": "pinned",
    "injection.refresh_tokens": 8_000,
    "slash_commands": False,
    "metrics.enabled": True,
}
"""The table of defaults that users read."""


@pytest.mark.parametrize(("path", "value"), PROMISED.items())
def test_each_default_is_the_promised_one(path: str, value: object) -> None:
    found: Any = Settings()
    for name in path.split("."):
        found = getattr(found, name)
    assert found == value


@pytest.mark.parametrize(
    ("url", "served_at"),
    [
        ("http://127.0.0.1:9000", "http://127.0.0.1:9000/v1"),
        ("http://127.0.0.1:9000/", "http://127.0.0.1:9000/v1"),
        ("http://127.0.0.1:9000/v1", "http://127.0.0.1:9000/v1"),
        ("http://127.0.0.1:9000/v1/", "http://127.0.0.1:9000/v1"),
        ("https://host/openai/deployments/x", "https://host/openai/deployments/x"),
        ("http://[::1]:8080", "http://[::1]:8080/v1"),
    ],
)
def test_a_url_without_a_path_gets_the_usual_one(url: str, served_at: str) -> None:
    assert UpstreamSettings(name="a", base_url=url).base_url == served_at


def test_a_providers_url_is_left_to_litellm() -> None:
    assert UpstreamSettings(name="a", provider="anthropic", base_url="http://host:1").base_url == "http://host:1"


@pytest.mark.parametrize(
    "url",
    ["ftp://host", "host:80", "/v1", "", "http://", "http://host:99999", "http://host:x/v1", "http://host/v1?key=1"],
)
def test_what_is_no_base_url_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="base_url"):
        UpstreamSettings(name="a", base_url=url)


def test_an_upstream_needs_an_address_or_a_provider() -> None:
    assert UpstreamSettings(name="a", provider="anthropic").base_url is None
    with pytest.raises(ValidationError, match="needs a base_url"):
        UpstreamSettings(name="a")


def test_a_key_that_would_break_the_request_is_refused() -> None:
    with pytest.raises(ValidationError, match="control character"):
        UpstreamSettings.model_validate({"name": "a", "base_url": "http://h", "api_key": "sk-one\r\nx-b: two"})
    assert UpstreamSettings.model_validate({"name": "a", "base_url": "http://h", "api_key": "sk-one\n"})


@pytest.mark.parametrize("headers", [{"x-a": "one\r\nx-b: two"}, {"x a": "one"}, {"": "one"}, {"x:y": "one"}])
def test_headers_that_would_break_the_request_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        UpstreamSettings(name="a", base_url="http://h", headers=headers)


@pytest.mark.parametrize(
    ("section", "values"),
    [
        ("limits", {"soft": 1.0}),
        ("limits", {"soft": 0.0}),
        ("limits", {"soft": 0.4}),
        ("limits", {"low_watermark": 0.7}),
        ("limits", {"speculative": 1.5}),
        ("limits", {"min_gain": -1}),
        ("limits", {"cache_ttl_s": float("inf")}),
        ("snip", {"head": 2_500}),
        ("snip", {"max_chars": 2_499}),
        ("spill", {"max_share": 0.0}),
        ("spill", {"max_share": 1.1}),
        ("server", {"port": 65_536}),
        ("server", {"port": True}),
        ("server", {"port": "8787"}),
        ("server", {"max_body_mb": 0}),
        ("memory", {"top_k": 0}),
        ("memory", {"recall_timeout_s": float("nan")}),
        ("memory", {"embeddings": "remote"}),
        ("memory", {"embeddings": {"base_url": "http://h"}}),
        ("injection", {"mode": "sticky"}),
        ("slash_commands", "yes"),
        ("upstreams", []),
        ("data_dir", ""),
        ("database_url", "mysql://host/db"),
        ("models", {"m": {"window": 100}}),
        ("models", {"m": {"window": 1_000, "max_output": 2_000}}),
        ("models", {"m": {"encoding": "p50k"}}),
        ("models", {"m": {"route": "elsewhere"}}),
        ("auth", {"keys": [{"key": ""}]}),
        ("auth", {"keys": [{"key": "k", "rpm": 0}]}),
        ("auth", {"keys": [{"key": "k"}, {"key": "k"}]}),
    ],
)
def test_impossible_values_are_refused(section: str, values: object) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({section: values})


@given(soft=st.floats(0.01, 0.99), low=st.floats(0.01, 0.99))
def test_limits_hold_exactly_where_the_low_watermark_is_under_the_soft_limit(soft: float, low: float) -> None:
    try:
        LimitSettings(soft=soft, low_watermark=low)
    except ValidationError:
        assert low >= soft
    else:
        assert low < soft


def test_two_upstreams_of_one_name_are_refused() -> None:
    twice = UpstreamSettings(name="a", base_url="http://h")
    with pytest.raises(ValidationError, match="second upstream named 'a'"):
        Settings(upstreams=[twice, twice])


def test_a_fallback_is_an_upstream_or_a_model_that_one_serves() -> None:
    upstreams = [UpstreamSettings(name="a", base_url="http://h", models=["gpt-*"])]
    Settings(upstreams=upstreams, models={"gpt-4o": ModelSettings(route="a", fallbacks=["a", "gpt-5"])})
    with pytest.raises(ValidationError, match="'claude' is neither"):
        Settings(upstreams=upstreams, models={"gpt-4o": ModelSettings(fallbacks=["claude"])})


def test_embeddings_are_off_local_or_an_endpoint() -> None:
    assert MemorySettings(embeddings="local").embeddings == "local"
    endpoint = MemorySettings.model_validate({"embeddings": {"base_url": "http://h:1", "model": "m"}}).embeddings
    assert endpoint is not None and not isinstance(endpoint, str)
    assert (endpoint.base_url, endpoint.model, endpoint.api_key) == ("http://h:1/v1", "m", None)


def test_secrets_are_not_shown_and_settings_reach_worker_processes() -> None:
    settings = Settings.model_validate(
        {
            "auth": {"keys": [AuthKey(key=SecretStr("canary-1"))]},
            "database_url": "postgresql://u:canary-2@h/d",
            "upstreams": [{"name": "a", "base_url": "http://h", "api_key": "canary-3", "headers": {"x-k": "canary-4"}}],
        }
    )
    assert "canary" not in repr(settings)
    assert pickle.loads(pickle.dumps(settings)) == settings
