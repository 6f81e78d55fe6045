from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.tokens.windows import ModelTable, Price

TABLE = {
    "sample_spec": {"max_input_tokens": "max input tokens, if the provider specifies it"},
    "gpt-x": {
        "max_input_tokens": 128000,
        "max_output_tokens": 16384,
        "input_cost_per_token": 2e-6,
        "output_cost_per_token": 8e-6,
    },
    "azure/gpt-x": {"max_input_tokens": 64000},
    "gpt-x-2024-08-06": {"max_input_tokens": 100000},
    "moon/star-chat": {"max_tokens": 32768, "input_cost_per_token": 1e-6, "cache_read_input_token_cost": 1e-7},
    "far/moon/star-chat": {"max_input_tokens": 1000},
    "cloud/us/anthropic.opus-9-20260101-v1:0": {"max_input_tokens": 200000},
    "strings": {"max_input_tokens": "8192", "input_cost_per_token": "free"},
    "broken": "not an object",
}


@pytest.fixture
def table(tmp_path: Path) -> ModelTable:
    path = tmp_path / "table.json"
    path.write_text(json.dumps(TABLE))
    return ModelTable(path)


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("gpt-x", 128_000),
        ("GPT-X", 128_000),
        ("openai/gpt-x", 128_000),
        ("azure/gpt-x", 64_000),
        ("gpt-x-2024-08-06", 100_000),
        ("gpt-x-2025-01-31", 128_000),
        ("gpt-x-latest", 128_000),
        ("star-chat", 32_768),
        ("moon/star-chat", 32_768),
        ("other/star-chat:free", 32_768),
        ("opus-9", 200_000),
        ("opus-9-20260101", 200_000),
        ("anthropic/opus-9", 200_000),
        ("us.anthropic.opus-9-20260101-v1:0", 200_000),
        ("strings", 8_192),
        ("sample_spec", None),
        ("broken", None),
        ("never-heard-of", None),
        ("", None),
    ],
)
def test_window(table: ModelTable, model: str, window: int | None) -> None:
    assert table.window(model) == window
    assert table.known(model) == (window is not None)


def test_price_and_output(table: ModelTable) -> None:
    assert table.price("gpt-x") == Price(2e-6, 8e-6, 2e-6)  # no price for cached input: the full one
    assert table.price("star-chat") == Price(1e-6, 0.0, 1e-7)
    assert table.price("strings") is None
    assert table.max_output("gpt-x") == 16_384
    assert table.max_output("never-heard-of") is None


@pytest.mark.parametrize("content", [None, "{", "[]"])
def test_no_table_means_no_model_and_one_warning(
    tmp_path: Path, content: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "table.json"
    if content is not None:
        path.write_text(content)
    table = ModelTable(path)
    with caplog.at_level(logging.WARNING):
        assert not table.load()
        assert table.window("gpt-x") is None
    assert len(caplog.records) == 1


def test_the_shipped_table() -> None:
    table = ModelTable()
    assert table.load()
    # Windows as their makers publish them.
    assert table.window("gpt-4o") == table.window("openai/gpt-4o-2024-11-20") == 128_000
    assert table.window("gemini/gemini-2.5-pro") == 1_048_576
    assert table.window("claude-3-haiku-20240307") == 200_000
    price = table.price("gpt-4o")
    assert price is not None and price.cached < price.input < price.output


def test_litellm_is_never_imported() -> None:
    code = (
        "import sys; from gateway.tokens.windows import ModelTable; from gateway.tokens.precise import Precise;"
        "assert 'tiktoken' not in sys.modules;"
        "assert ModelTable().window('gpt-4o') and Precise().load('o200k_base');"
        "assert 'litellm' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
