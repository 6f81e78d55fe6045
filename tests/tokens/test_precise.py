from __future__ import annotations

import logging
import os
import shutil
import socket
import threading
from pathlib import Path
from typing import NoReturn

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.tokens import fast, precise
from gateway.tokens.precise import CHUNK_CHARS, MAX_CHARS, Precise, chunks


@pytest.fixture(scope="module")
def loaded() -> Precise:
    counter = Precise()
    assert counter.load("o200k_base")
    return counter


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> NoReturn:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def no_user_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_network", "no_user_cache")
@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_rank_files_come_from_the_installed_wheel(name: str) -> None:
    tiktoken.registry.ENCODINGS.pop(name, None)
    counter = Precise()
    assert not counter.ready(name)
    assert counter.text_tokens("hello", name) is None
    assert counter.load(name)
    assert counter.ready(name)
    # "hello world" is two tokens in both encodings (OpenAI's tokenizer page).
    assert counter.text_tokens("hello world", name) == 2
    assert "TIKTOKEN_CACHE_DIR" not in os.environ


@pytest.mark.usefixtures("no_network")
def test_an_empty_user_cache_means_estimates_one_warning_and_no_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    counter = Precise()
    with caplog.at_level(logging.WARNING):
        assert not counter.load("o200k_base")
        assert not counter.load("o200k_base")
    assert len(caplog.records) == 1
    assert counter.message_tokens({"role": "user", "content": None}, "o200k_base") is None
    assert os.environ["TIKTOKEN_CACHE_DIR"] == str(tmp_path)


@pytest.mark.usefixtures("no_network", "no_user_cache")
def test_a_damaged_rank_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory, chosen = precise._cache_dir()
    assert directory is not None and not chosen
    shutil.copytree(directory, tmp_path / "files")
    for path in (tmp_path / "files").iterdir():
        if path.is_file():
            path.write_bytes(path.read_bytes()[:-10])
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "files"))
    assert not Precise().load("cl100k_base")


def test_an_unknown_encoding_is_not_loaded() -> None:
    assert not Precise().load("p50k_base")


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4o-mini-2024-07-18", "o200k_base"),
        ("azure/gpt-4.1", "o200k_base"),
        ("openrouter/openai/o3", "o200k_base"),
        ("gpt-6-astra", "o200k_base"),
        ("gpt-oss-120b", "o200k_base"),
        ("gpt-4-0613", "cl100k_base"),
        ("ft:gpt-3.5-turbo:org::1", "cl100k_base"),
        ("claude-sonnet-4-5", None),
        ("qwen3-max", None),
        ("", None),
    ],
)
def test_encoding_of_a_model(model: str, encoding: str | None) -> None:
    assert Precise().encoding_name(model) == encoding
    assert Precise().encoding_name(model, "cl100k_base") == "cl100k_base"


def test_special_tokens_in_a_text_are_text(loaded: Precise) -> None:
    tokens = loaded.text_tokens("<|endoftext|>", "o200k_base")
    assert tokens is not None and tokens > 1


@given(st.text(max_size=300))
def test_equals_tiktoken(text: str) -> None:
    counter = Precise()
    assert counter.load("o200k_base")
    assert counter.text_tokens(text, "o200k_base") == len(tiktoken.get_encoding("o200k_base").encode_ordinary(text))


@settings(max_examples=30)
@given(st.sampled_from(["a", " ", "字", "word ", "line of words\n", "-="]), st.integers(1, 200_000))
def test_chunks_lose_nothing_and_are_bounded(piece: str, length: int) -> None:
    text = (piece * length)[:length]
    parts = chunks(text)
    assert "".join(parts) == text
    assert max(map(len, parts)) <= CHUNK_CHARS


def test_cutting_costs_at_most_a_token_a_cut(loaded: Precise) -> None:
    text = "".join(f"{i}: the quick brown fox, {i * 37 % 1000} times\n" for i in range(8_000))
    whole = len(tiktoken.get_encoding("o200k_base").encode_ordinary(text))
    counted = loaded.text_tokens(text, "o200k_base")
    assert counted is not None and 0 <= counted - whole <= len(chunks(text))


def test_a_run_of_one_letter(loaded: Precise) -> None:
    # o200k's longest run of "a" is eight letters.
    assert loaded.text_tokens("a" * 400_000, "o200k_base") == 50_000


def test_past_the_cap_the_estimate_is_given(loaded: Precise) -> None:
    text = "word " * (MAX_CHARS // 5 + 1)
    assert loaded.text_tokens(text, "o200k_base") == fast.text_tokens(text)


def test_many_threads_load_one_encoding(no_user_cache: None) -> None:
    counter = Precise()
    results: list[bool] = []
    threads = [threading.Thread(target=lambda: results.append(counter.load("cl100k_base"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 8
    assert "TIKTOKEN_CACHE_DIR" not in os.environ
