"""The `gateway` command as people call it: a process, its output and its exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import gateway.cli
from gateway import __version__
from gateway.exposure import is_exposed, is_loopback
from gateway.settings import Settings
from tests.support.gateway_process import run_command

HEAVY = ("litellm", "jieba", "rjieba", "tiktoken", "numpy", "rich", "pydantic", "yaml", "httpx", "aiohttp", "starlette")


def test_version(tmp_path: Path) -> None:
    done = run_command("--version", home=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"gateway {__version__}\n", "")


def test_the_command_imports_nothing_heavy_before_it_has_to() -> None:
    script = "import sys, gateway.cli; print(*[name for name in sys.argv[1:] if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script, *HEAVY], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("command", ["serve", "check", "demo", "memory"])
def test_help_names_each_command(command: str, tmp_path: Path) -> None:
    assert f"    {command} " in run_command("--help", home=tmp_path).stdout


@pytest.mark.parametrize("words", [[], ["sreve"], ["serve", "--port", "many"], ["serve", "--no-such-flag"]])
def test_wrong_arguments_are_explained(words: list[str], tmp_path: Path) -> None:
    done = run_command(*words, home=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: gateway") and "Traceback" not in done.stderr


@pytest.mark.parametrize(("command", "code"), [("serve", 2), ("check", 1)])
def test_a_wrong_configuration_stops_the_start(command: str, code: int, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("limits:\n  sofft: 0.6\n", encoding="utf-8")
    done = run_command(command, "--config", str(config), home=tmp_path)
    assert done.returncode == code
    assert done.stderr == f"{config}:2: limits.sofft: unknown key; did you mean 'soft'?\n"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "gateway.example"])
def test_a_public_address_without_keys_is_refused(host: str, tmp_path: Path) -> None:
    done = run_command("serve", "--host", host, "--port", "0", home=tmp_path)
    assert done.returncode == 2
    assert host in done.stderr and "auth.keys" in done.stderr and "--insecure" in done.stderr


class FakeApp:
    """Stands in for the server, which must not be started here: keeps what it was called with."""

    def __init__(self, stop: type[BaseException] | None = None) -> None:
        self.called: list[tuple[Settings, int]] = []
        self.stop = stop

    def serve(self, settings: Settings, workers: int) -> None:
        self.called.append((settings, workers))
        if self.stop is not None:
            raise self.stop


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeApp:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GATEWAY_CONFIG", raising=False)
    fake = FakeApp()
    monkeypatch.setitem(sys.modules, "gateway.app", fake)
    return fake


def test_serve_hands_the_flags_over(app: FakeApp, tmp_path: Path) -> None:
    flags = ["--host", "127.0.0.2", "--port", "0", "--upstream", "http://h:9", "--data-dir", "d", "--workers", "3"]
    assert gateway.cli.main(["serve", *flags]) == 0
    ((settings, workers),) = app.called
    assert (settings.server.host, settings.server.port, settings.data_dir, workers) == ("127.0.0.2", 0, Path("d"), 3)
    assert [upstream.base_url for upstream in settings.upstreams] == ["http://h:9/v1"]


def test_a_public_address_is_served_with_keys_or_on_request(app: FakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    assert gateway.cli.main(["serve", "--host", "0.0.0.0", "--insecure"]) == 0
    monkeypatch.setenv("GATEWAY_AUTH__KEYS", "[{key: k}]")
    assert gateway.cli.main(["serve", "--host", "0.0.0.0"]) == 0
    assert [settings.server.host for settings, _ in app.called] == ["0.0.0.0", "0.0.0.0"]


def test_the_file_in_the_directory_is_read(app: FakeApp, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("server: {port: 4321}\n", encoding="utf-8")
    assert gateway.cli.main(["serve"]) == 0
    assert app.called[0][0].server.port == 4321


def test_an_interrupt_is_quiet(app: FakeApp, capsys: pytest.CaptureFixture[str]) -> None:
    app.stop = KeyboardInterrupt
    assert gateway.cli.main(["serve"]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("command", ["demo", "memory"])
def test_commands_of_their_own_get_their_words(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Module:
        @staticmethod
        def main(arguments: list[str]) -> int:
            heard.append(arguments)
            return 7

    heard: list[list[str]] = []
    monkeypatch.setitem(sys.modules, gateway.cli.DELEGATED[command], Module)
    assert gateway.cli.main([command, "list", "--user", "alice"]) == 7
    assert heard == [["list", "--user", "alice"]]


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("LocalHost", True),
        ("a.localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("fe80::1%eth0", False),
        ("localhost.example.com", False),
        ("127.0.0.1.example.com", False),
    ],
)
def test_loopback_is_told_from_the_rest(host: str, local: bool) -> None:
    assert is_loopback(host) is local
    assert is_exposed(Settings.model_validate({"server": {"host": host}})) is not local
