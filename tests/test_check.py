"""`gateway check` as a whole: what it looks at beside the upstreams, what it prints, and how it ends."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from gateway.check import check
from gateway.check_upstream import Finding
from gateway.settings import Settings
from tests.support.gateway_process import free_port, run_command
from tests.support.json_server import MODELS, json_server


def settings(url: str, data_dir: Path, **sections: Any) -> Settings:
    return Settings.model_validate(
        {
            "server": {"port": free_port()},
            "data_dir": data_dir,
            "upstreams": [{"name": "u", "base_url": url, "api_key": "k"}],
            **sections,
        }
    )


async def found(subject: str, url: str, data_dir: Path, **sections: Any) -> list[Finding]:
    findings = await check(settings(url, data_dir, **sections))
    return [finding for finding in findings if finding.subject == subject]


def test_all_is_well(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    with json_server(MODELS) as (url, _):
        document = {
            "server": {"port": free_port()},
            "data_dir": str(tmp_path / "data"),
            "upstreams": [{"name": "u", "base_url": url, "models": ["gpt-4o"]}],
            "spill": {"max_mb": 1},
        }
        config.write_text(json.dumps(document), encoding="utf-8")
        done = run_command("check", "--config", str(config), home=tmp_path)
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert (lines[0], lines[-1]) == (f"configuration: {config}", "all is well")
    assert all(line.startswith("ok ") for line in lines[1:-1])
    assert any("2 models" in line for line in lines) and any("o200k_base" in line for line in lines)
    assert not (tmp_path / "data").exists()


def test_a_problem_is_the_exit_code(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    done = run_command("check", "--upstream", url, "--data-dir", str(tmp_path), home=tmp_path)
    assert done.returncode == 1
    assert f"problem  upstreams.default: {url}/v1: the connection is refused" in done.stdout
    assert done.stdout.splitlines()[-1] == "1 problem, 0 warnings"


async def test_the_address(tmp_path: Path) -> None:
    with json_server(MODELS) as (url, _), socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (busy,) = await found("server", url, tmp_path, server={"port": port})
        assert busy.level == "warning" and str(port) in busy.text
        (exposed,) = await found("server.host", url, tmp_path, server={"host": "0.0.0.0", "port": free_port()})
        assert exposed.level == "problem" and "--insecure" in exposed.text


async def test_the_data_directory(tmp_path: Path) -> None:
    with json_server(MODELS) as (url, _):
        (new,) = await found("data_dir", url, tmp_path / "a" / "b", spill={"max_mb": 1})
        assert new.level == "ok" and "will be made" in new.text
        (tmp_path / "file").write_text("", encoding="utf-8")
        (blocked,) = await found("data_dir", url, tmp_path / "file" / "b")
        assert blocked.level == "problem"
        (full,) = await found("data_dir", url, tmp_path, spill={"max_mb": 1 << 40})
        assert full.level == "warning" and "spill.max_mb" in full.text


async def test_a_directory_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer of `access` is replaced: root, as CI often is, may write everywhere."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    with json_server(MODELS) as (url, _):
        (finding,) = await found("data_dir", url, tmp_path)
    assert finding.level == "problem" and str(tmp_path) in finding.text


async def test_a_database_that_does_not_answer_keeps_its_password(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    with json_server(MODELS) as (url, _):
        database = f"postgresql://user:canary@127.0.0.1:{free_port()}/none"
        (finding,) = await found("database_url", url, tmp_path, database_url=database)
    assert finding.level == "problem" and "refused" in finding.text
    assert "canary" not in finding.text


async def test_a_model_without_a_known_window_is_a_warning(tmp_path: Path) -> None:
    upstreams = [{"name": "u", "base_url": "", "api_key": "k", "models": ["gpt-4o", "house-model", "team-*"]}]
    with json_server({"GET /v1/models": (200, {}, {"data": []})}) as (url, _):
        upstreams[0]["base_url"] = url
        (unknown,) = await found("models", url, tmp_path, upstreams=upstreams)
        assert unknown.level == "warning"
        assert "'house-model'" in unknown.text and "128,000" in unknown.text
        assert not await found("models", url, tmp_path, upstreams=upstreams, models={"house-*": {"window": 8192}})


async def test_the_gateways_own_models_are_served(tmp_path: Path) -> None:
    sections: dict[str, Any] = {"compaction": {"model": "gpt-4o-mini"}, "memory": {"model": "claude-x"}}
    with json_server(MODELS) as (url, _):
        only_gpt = [{"name": "u", "base_url": url, "models": ["gpt-*"]}]
        (summariser,) = await found("compaction.model", url, tmp_path, upstreams=only_gpt, **sections)
        (extractor,) = await found("memory.model", url, tmp_path, upstreams=only_gpt, **sections)
        assert summariser.level == "warning" and "no api_key" in summariser.text
        assert extractor.level == "problem" and "no upstream serves 'claude-x'" in extractor.text
        (good,) = await found("compaction.model", url, tmp_path, **sections)
        assert good.level == "ok"
