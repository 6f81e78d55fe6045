"""What every test may lean on: shared data where it is, tokenizers without a network, one gateway for a module."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.chat_model import ChatModel
from tests.support.gateway_process import GatewayProcess, default_config
from tests.support.upstream import Upstream

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

Launch = Callable[..., GatewayProcess]


def pytest_configure() -> None:
    """tiktoken in the tests' own process finds its rank files in litellm's wheel, and never fetches them."""
    spec = importlib.util.find_spec("litellm")
    for root in (spec.submodule_search_locations if spec is not None else None) or []:
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(Path(root) / "litellm_core_utils" / "tokenizers"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The third-party data beside the repository; skips where there is none."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no shared data at {SHARED_DATA}")
    return SHARED_DATA


@pytest.fixture(scope="module")
def module_upstream() -> Iterator[Upstream]:
    """One scripted upstream for the module's gateway."""
    with Upstream(ChatModel()) as server:
        yield server


@pytest.fixture
def upstream(module_upstream: Upstream) -> Iterator[Upstream]:
    """The module's upstream with nothing recorded or queued; the default model answers what no test scripts."""
    module_upstream.reset()
    module_upstream.handler = ChatModel()
    yield module_upstream
    assert not module_upstream.protocol_errors, module_upstream.protocol_errors


@pytest.fixture(scope="module")
def launch(module_upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launch]:
    """Start gateways in front of the module's upstream: `launch(**config sections)`; ended with the module."""
    with ExitStack() as stack:

        def start(environment: dict[str, str] | None = None, **sections: Any) -> GatewayProcess:
            directory = tmp_path_factory.mktemp("gateway")
            config = default_config(module_upstream.url, directory / "data", **sections)
            return stack.enter_context(GatewayProcess(config, directory, environment))

        yield start


@pytest.fixture(scope="module")
def gateway(launch: Launch) -> GatewayProcess:
    """The module's gateway with default settings."""
    return launch()
