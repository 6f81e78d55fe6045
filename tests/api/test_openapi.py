"""The API against its own document: schemathesis makes requests from it, right ones and wrong ones, and judges."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import Launch
from tests.support.chat import fresh_key
from tests.support.gateway_process import GatewayProcess, clean_environment
from tests.support.upstream import Upstream

EXAMPLES = 8
"""For each operation; the phase that covers the schema's edges comes on top, with some thousand requests."""
LONGEST_S = 110.0


def schemathesis(gateway: GatewayProcess, key: str, directory: Path, *options: str) -> str:
    """Run it; its report, once it found nothing."""
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{gateway.url}/v1/memory/openapi.json"]
    command += ["--header", f"Authorization: Bearer {key}", "--max-examples", str(EXAMPLES), "--seed", "7"]
    command += ["--request-timeout", "20", "--no-color", "--generation-database", "none", *options]
    done = subprocess.run(
        command,
        cwd=directory,
        env=clean_environment(directory),
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-1000:]}\n{gateway.output()[-2000:]}"
    return done.stdout


def test_the_api_keeps_what_its_document_promises(gateway: GatewayProcess, upstream: Upstream, tmp_path: Path) -> None:
    report = schemathesis(gateway, fresh_key(), tmp_path)
    document = httpx.get(f"{gateway.url}/v1/memory/openapi.json", trust_env=False).json()
    paths = {path: methods for path, methods in document["paths"].items() if not path.endswith("/openapi.json")}
    operations = sum(len(methods) for methods in paths.values())  # it leaves out the document's own path
    assert re.search(rf"Tested: +{operations}\b", report), report
    assert upstream.calls == []


def test_with_keys_the_document_asks_for_one(launch: Launch, tmp_path: Path) -> None:
    key = fresh_key()
    gateway = launch(auth={"keys": [{"key": key}]})
    url = f"{gateway.url}/v1/memory/openapi.json"
    document: dict[str, Any] = httpx.get(url, trust_env=False).json()
    (scheme,) = document["security"]
    assert document["components"]["securitySchemes"][next(iter(scheme))] == {"type": "http", "scheme": "bearer"}
    schemathesis(gateway, key, tmp_path, "--phases", "fuzzing", "--checks", "all")


def test_every_reference_leads_somewhere(gateway: GatewayProcess) -> None:
    document: dict[str, Any] = httpx.get(f"{gateway.url}/v1/memory/openapi.json", trust_env=False).json()
    assert document["openapi"] == "3.1.0"
    references: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            references.extend(target for name, target in value.items() if name == "$ref")
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(document)
    assert references
    for reference in references:
        at: Any = document
        for part in reference.removeprefix("#/").split("/"):
            at = at[part]
        assert isinstance(at, dict)


@pytest.mark.parametrize(
    "path",
    ["/facts", "/preferences/{key}", "/working/{session}", "/sessions", "/spill/{id}", "/export", "/import", ""],
)
def test_the_document_names_what_is_there(gateway: GatewayProcess, path: str) -> None:
    document = httpx.get(f"{gateway.url}/v1/memory/openapi.json", trust_env=False).json()
    assert f"/v1/memory{path}" in document["paths"]
