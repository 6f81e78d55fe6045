"""How it starts, and what stops it from starting."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from gateway import __version__
from tests.conftest import Launch
from tests.support.builders import user
from tests.support.chat import send_chat
from tests.support.gateway_process import GatewayDied, GatewayProcess, default_config, free_port, run_command
from tests.support.raw_http import fetch
from tests.support.upstream import Upstream

WRONG = [
    ("limits:\n  soft: 0.6\n  bufer: 900\n", 3, "buffer"),
    ("fold:\n  enabled: true\nmicrocompakt:\n  enabled: true\n", 3, "microcompact"),
    ("server:\n  port: 8787\n  max_body: 3\n", 3, "max_body_mb"),
]
BAD_VALUES = [
    ("limits:\n  buffer: 100\n  soft: 1.7\n", 3),
    ("limits:\n  soft: plenty\n", 2),
    ("snip:\n  enabled: true\n  max_chars: -5\n", 3),
    ("server:\n  port: 700000\n", 2),
]


def refused_start(tmp_path: Path, text: str) -> str:
    """What `gateway serve` says where it refuses this configuration."""
    path = tmp_path / "wrong.yaml"
    path.write_text(text, encoding="utf-8")
    done = run_command("serve", "--config", str(path), "--data-dir", str(tmp_path / "data"), home=tmp_path)
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert "Traceback" not in said
    return said


def names_line(said: str, line: int) -> bool:
    """Whether the file and that line are named."""
    return re.search(rf"wrong\.yaml\W{{1,3}}(line )?{line}\b", said) is not None


@pytest.mark.parametrize(("text", "line", "nearest"), WRONG)
def test_an_unknown_key(tmp_path: Path, text: str, line: int, nearest: str) -> None:
    said = refused_start(tmp_path, text)
    assert names_line(said, line), said
    assert nearest in said


@pytest.mark.parametrize(("text", "line"), BAD_VALUES)
def test_an_impossible_value(tmp_path: Path, text: str, line: int) -> None:
    said = refused_start(tmp_path, text)
    assert names_line(said, line), said


def test_a_file_that_is_not_yaml(tmp_path: Path) -> None:
    assert "wrong.yaml" in refused_start(tmp_path, "limits: {soft: 0.6\nfold: [")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    done = run_command("serve", "--config", str(tmp_path / "absent.yaml"), home=tmp_path)
    assert done.returncode != 0
    assert "absent.yaml" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_an_unknown_environment_key(tmp_path: Path, upstream: Upstream) -> None:
    config = default_config(upstream.url, tmp_path / "data")
    with pytest.raises(GatewayDied, match="exit status"):
        GatewayProcess(config, tmp_path, {"GATEWAY_LIMITS__SFOT": "0.5"}).start()


def test_an_environment_key_wins(upstream: Upstream, launch: Launch) -> None:
    gateway = launch({"GATEWAY_SERVER__MAX_BODY_MB": "1"})
    assert send_chat(gateway.port, [user("x" * 2**20)]).status == 413
    assert send_chat(gateway.port, [user("x" * 2**19)]).status == 200


def test_a_public_address_needs_keys_or_a_word(tmp_path: Path, upstream: Upstream) -> None:
    config = default_config(upstream.url, tmp_path / "data", server={"host": "0.0.0.0", "port": free_port()})
    bare = GatewayProcess(config, tmp_path / "bare")
    with pytest.raises(GatewayDied, match=r"exit status [^0]") as refused:
        bare.start()
    assert "--insecure" in str(refused.value)
    with GatewayProcess(config, tmp_path / "insecure", arguments=["--insecure"]) as insecure:
        assert send_chat(insecure.port, [user("hi")]).status == 200
    keyed = {**config, "auth": {"keys": [{"key": "sk-front-public", "tenant": "t"}]}}
    with GatewayProcess(keyed, tmp_path / "keyed") as closed:
        assert send_chat(closed.port, [user("hi")]).status == 401
        assert send_chat(closed.port, [user("hi")], "sk-front-public").status == 200


def test_flags_alone_are_enough(tmp_path: Path, upstream: Upstream) -> None:
    config = default_config(upstream.url, tmp_path / "data")

    class Flagged(GatewayProcess):
        def command(self) -> list[str]:
            flags = ["--upstream", upstream.url + "/v1", "--port", str(self.port), "--data-dir", str(self.data_dir)]
            return [sys.executable, "-m", "gateway", "serve", *flags]

    with Flagged(config, tmp_path) as gateway:
        assert send_chat(gateway.port, [user("hi")]).status == 200
    assert upstream.only_call().target == "/v1/chat/completions"


def test_a_port_that_is_taken(tmp_path: Path, upstream: Upstream) -> None:
    config = default_config(upstream.url, tmp_path / "data", server={"host": "127.0.0.1", "port": upstream.port})
    process = GatewayProcess(config, tmp_path)
    process.start_only()
    assert process.wait() != 0
    assert str(upstream.port) in process.output()


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health(gateway: GatewayProcess, path: str) -> None:
    assert fetch(gateway.port, "GET", path, b"", []).status == 200


def test_version(tmp_path: Path) -> None:
    done = run_command("--version", home=tmp_path)
    assert done.returncode == 0
    assert __version__ in done.stdout


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_start_says_where_it_listens(upstream: Upstream, tmp_path: Path, workers: str) -> None:
    config = default_config(upstream.url, tmp_path / "data")
    with GatewayProcess(config, tmp_path / "home", arguments=["--workers", workers]) as gateway:
        said = json.loads(gateway.output().splitlines()[0])
        assert said["event"] == "listening"
        assert said["base_url"] == f"http://127.0.0.1:{gateway.port}/v1"
