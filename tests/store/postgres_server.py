"""A real PostgreSQL server for the tests, started from whatever installation the machine has."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest

_SYSTEM_USERS = ("postgres", "nobody")


def _find(program: str) -> str | None:
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"), reverse=True)
    return str(installed[0]) if installed else shutil.which(program)


@dataclass
class PostgresServer:
    """A cluster in `directory`, reachable through a socket there, run by an ordinary user."""

    directory: Path
    initdb: str
    pg_ctl: str
    user: str | None
    """Whom to run as; None: the user that runs the tests."""
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def _run(self, *command: str) -> None:
        result = subprocess.run(
            command, user=self.user, cwd="/", capture_output=True, text=True, check=False, timeout=60
        )
        if result.returncode:
            raise RuntimeError(f"{command[0]} failed: {result.stdout}{result.stderr}")

    def start(self) -> None:
        """Make the cluster and start it."""
        if self.user:
            owner = pwd.getpwnam(self.user)
            os.chown(self.directory, owner.pw_uid, owner.pw_gid)
        data = str(self.directory / "data")
        self._run(self.initdb, "-D", data, "-U", "postgres", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C")
        options = (
            f"-c listen_addresses='' -c unix_socket_directories={self.directory} -c fsync=off -c shared_buffers=32MB"
        )
        self._run(self.pg_ctl, "-D", data, "-l", str(self.directory / "log"), "-w", "-o", options, "start")

    def stop(self) -> None:
        """At once: nothing in it is kept."""
        self._run(self.pg_ctl, "-D", str(self.directory / "data"), "-m", "immediate", "stop")
        shutil.rmtree(self.directory, ignore_errors=True)

    def url(self, database: str) -> str:
        """Connection URL of a database."""
        return f"postgresql:///{database}?host={self.directory}&user=postgres"

    def new_database(self) -> str:
        """URL of an empty database."""
        import psycopg

        name = f"t{next(self.numbers)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)


def start_or_skip() -> PostgresServer:
    """A running server; skips the test where none is installed, fails where `CI` is set."""
    initdb, pg_ctl = _find("initdb"), _find("pg_ctl")
    reason = "" if initdb and pg_ctl else "no PostgreSQL server (initdb, pg_ctl) on this machine"
    user: str | None = None
    if not reason and os.geteuid() == 0:
        user = next((name for name in _SYSTEM_USERS if _exists(name)), None)
        if user is None:
            reason = "PostgreSQL refuses to run as root and there is no user to run it as"
    if reason or not initdb or not pg_ctl:
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    # not in pytest's own directory, which only root may enter where root runs the tests
    directory = Path(tempfile.mkdtemp(prefix="breakwater-postgres-"))
    server = PostgresServer(directory, initdb, pg_ctl, user)
    server.start()
    return server


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True
