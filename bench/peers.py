"""The nearest rivals on PyPI, each installed into an environment of its own and started as its documentation says.

Each runs at its defaults, and again with its threshold set to our windows where it has one. What is changed from the
defaults otherwise is only what the replay needs: the upstream's address, a port, no limit on requests per minute.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.replay.proxies import REPOSITORY, Launch, Proxy, Setup

ENVIRONMENTS = REPOSITORY / ".bench"
INSTALL_TIMEOUT_S = 1200
SOFT_SHARE = 0.70  # of the window: where our own soft limit stands, so that thresholds compare
_UNSAMPLED = ("--shadow", "0", "--retention", "0")
_QUIET = {  # nothing but loopback: no reports home, no models fetched, no questions after new versions
    "HF_HUB_OFFLINE": "1",
    "DISTIL_NO_TELEMETRY": "1",
    "DISTIL_NO_UPDATE_CHECK": "1",
    "HEADROOM_TELEMETRY": "off",
    "HEADROOM_UPDATE_CHECK": "off",
    "HEADROOM_NO_SUBSCRIPTION_TRACKING": "1",
}


@dataclass(frozen=True, slots=True)
class Peer:
    """A package of PyPI with its extras, and the proxies it gives."""

    name: str
    requirement: str
    proxies: tuple[Proxy, ...]


def peers() -> list[Peer]:
    """Every peer, with its variants."""
    return [_awecompress(), _distil(), _headroom()]


def install(peer: Peer, folder: Path = ENVIRONMENTS) -> str:
    """Install a peer if it is not yet; gives what went wrong, or nothing."""
    home = folder / peer.name
    if (home / "installed").is_file():
        return ""
    try:
        venv.create(home, with_pip=True)
        command = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", peer.requirement]
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return f"not installed: {error}"
    if done.returncode:
        return f"not installed: {done.stderr.strip()[-300:]}"
    (home / "installed").write_text("")
    return ""


def version(peer: Peer, folder: Path = ENVIRONMENTS) -> str:
    """The installed version of a peer, or `?`."""
    package = peer.requirement.partition("[")[0]
    code = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
    command = [str(folder / peer.name / "bin" / "python"), "-c", code, package]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return "?"
    return done.stdout.strip() or "?"


def chosen(names: Iterable[str]) -> list[Peer]:
    """The peers of those names. Raises `SystemExit` on a name that is none."""
    known = {peer.name: peer for peer in peers()}
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"no such peer: {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in names]


def _binary(peer: str, name: str) -> str:
    return str(ENVIRONMENTS / peer / "bin" / name)


def _awecompress() -> Peer:
    def launch(setup: Setup, **settings: int) -> Launch:
        config = setup.home / "config.json"
        config.write_text(json.dumps({"port": setup.port, "upstream": setup.upstream, **settings}))
        argv = [_binary("awecompress", "awecompress"), "serve", "--config", str(config)]
        return Launch(argv, {"AWECOMPRESS_CONFIG_DIR": str(setup.home)})

    def tuned(setup: Setup) -> Launch:
        # Its other two limits keep it from cutting at all in a small window: the least span and the turns kept whole.
        soft = int(SOFT_SHARE * setup.window)
        return launch(setup, thresholdTokens=soft, minSpanTokens=max(1000, soft // 5), keepRecentTurns=1)

    return Peer(
        "awecompress",
        "awecompress",
        (Proxy("awecompress", False, launch), Proxy("awecompress, tuned", True, tuned)),
    )


def _distil() -> Peer:
    def variant(name: str, *flags: str) -> Proxy:
        def launch(setup: Setup) -> Launch:
            argv = [_binary("distil-llm", "distil"), "proxy", "--port", str(setup.port), "--upstream", setup.upstream]
            unsampled = {"DISTIL_HOLDOUT_RATE": "0"} if flags else {}
            return Launch([*argv, *flags], {**_QUIET, **unsampled})

        return Proxy(name, False, launch)

    # No window to set: it compresses by kind of content, whatever the size. By default it samples requests and sessions
    # at random to measure itself, which costs tokens and differs from run to run: the other rows are without.
    return Peer(
        "distil-llm",
        "distil-llm",
        (
            variant("distil-llm"),
            variant("distil-llm, no sampling", *_UNSAMPLED),
            variant("distil-llm, lossless only", "--lossless-only", *_UNSAMPLED),
        ),
    )


def _headroom() -> Peer:
    def variant(name: str, *flags: str) -> Proxy:
        def launch(setup: Setup) -> Launch:
            argv = [_binary("headroom-ai", "headroom"), "proxy", "--port", str(setup.port), "--no-rate-limit"]
            argv += ["--openai-api-url", f"{setup.upstream}/v1", *flags]
            return Launch(argv, _QUIET)

        return Proxy(name, False, launch)

    # No window to set either; `token` is its mode for the largest savings, `cache` its default.
    return Peer(
        "headroom-ai",
        "headroom-ai[proxy]",
        (variant("headroom-ai"), variant("headroom-ai, token mode", "--mode", "token")),
    )
