"""Gathers the settings: defaults, then the file, then the environment, then the command line; later ones win.

The only module that reads the environment. Plain pydantic and a reader of our own rather than pydantic-settings: an
error must name the very line, variable or flag that gave the value, and its sources forget that once they are merged.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gateway.errors import SettingsError
from gateway.settings import OPENAI_BASE_URL, Settings
from gateway.settings_errors import explain, nearest
from gateway.settings_file import Document, Location, Problem, dotted, read_document
from gateway.settings_schema import annotation_at, children, is_free, is_section, lookup, settle

PREFIX = "GATEWAY_"
SEPARATOR = "__"
CONFIG_VARIABLE = "GATEWAY_CONFIG"
DEFAULT_FILE = Path("config.yaml")
FLAGS: dict[str, Location] = {
    "host": ("server", "host"),
    "port": ("server", "port"),
    "workers": ("server", "workers"),
    "data_dir": ("data_dir",),
    "upstream": ("upstreams",),
}
"""What the command line may override, and where it goes."""
SERVICE_LINK = re.compile(r"GATEWAY_(SERVICE_HOST|SERVICE_PORT\w*|PORT|PORT_\d+_\w+)")
"""Kubernetes sets these in every container where a service is named `gateway`: never ours."""


@dataclass
class _Gathered:
    """The merged values, and for each one set by somebody: by what (`config.yaml:12`, a variable, a flag).

    `unreadable` are places already complained of: what the schema says about the stand-in value there is noise.
    """

    data: dict[str, Any] = field(default_factory=dict)
    origins: dict[Location, str] = field(default_factory=dict)
    problems: list[tuple[str, str]] = field(default_factory=list)
    unreadable: set[Location] = field(default_factory=set)

    def put(self, location: Location, value: Any, origin: str) -> None:
        """Set one value, making what it stands in; a mapping is laid over the mapping that is there."""
        if isinstance(value, dict) and isinstance(lookup(self.data, location), dict):
            for key, inner in value.items():
                self.put((*location, key), inner, origin)
            return
        target: Any = self.data
        for here, following in pairwise(location):
            empty: Any = [] if isinstance(following, int) else {}
            if not isinstance(lookup(target, (here,)), type(empty)):
                _set(target, here, empty)
            target = target[here]
        _set(target, location[-1], value)
        self.origins = {known: by for known, by in self.origins.items() if known[: len(location)] != location}
        self.origins[location] = origin

    def origin_of(self, location: Location) -> str:
        """Who set the value, or what it stands in; else, for a value that is missing, who set one beside it."""
        above = [location[:length] for length in range(len(location), 0, -1)]
        exact = (self.origins[place] for place in above if place in self.origins)
        beside = (by for place in above for known, by in self.origins.items() if known[: len(place)] == place)
        return next(exact, None) or next(beside, "")


def _set(target: Any, key: str | int, value: Any) -> None:
    if isinstance(target, list) and key == len(target):
        target.append(value)
    else:
        target[key] = value


def find_config(explicit: Path | None, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The file to read: the one asked for, else the one `GATEWAY_CONFIG` names, else `./config.yaml` if it exists."""
    if explicit is not None:
        return explicit
    if named := environ.get(CONFIG_VARIABLE):
        return Path(named).expanduser()
    return DEFAULT_FILE if DEFAULT_FILE.is_file() else None


def load_settings(
    path: Path | None,
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Settings:
    """The settings from all their sources.

    `path`: a YAML file, or None for none. `overrides`: the command line's `host`, `port`, `workers`, `data_dir` and
    `upstream` (a URL that takes the place of all upstreams); None is "not given". Raises `SettingsError` with one line
    for each thing that is wrong, each naming its file and line, variable or flag.
    """
    gathered = _Gathered()
    if path is not None:
        _take_file(gathered, path, environ)
    built_in = "upstreams" not in gathered.data
    if built_in:
        gathered.data["upstreams"] = [{"name": "default", "base_url": OPENAI_BASE_URL}]
    _take_environment(gathered, environ)
    _take_flags(gathered, overrides or {})
    if built_in:
        _take_openai_key(gathered, environ)
    return _validated(gathered)


def _take_file(gathered: _Gathered, path: Path, environ: Mapping[str, str]) -> None:
    document = read_document(path, environ)
    for location in document.expanded:
        _replace(document, location)
    for key in [key for key, value in document.data.items() if value is None and is_section(key)]:
        del document.data[key]  # a heading whose lines are all commented out
    gathered.data = document.data
    gathered.origins = {location: f"{path}:{line}" for location, line in document.lines.items() if location}
    gathered.problems = [_from_file(path, problem) for problem in document.problems]
    gathered.unreadable = {problem.location for problem in document.problems}


def _replace(document: Document, location: Location) -> None:
    target: Any = document.data
    for part in location[:-1]:
        target = target[part]
    if isinstance(target[location[-1]], str):
        target[location[-1]] = settle(target[location[-1]], annotation_at(location))


def _from_file(path: Path, problem: Problem) -> tuple[str, str]:
    where = dotted(problem.location)
    return f"{path}:{problem.line}", f"{where}: {problem.message}" if where else problem.message


def _take_environment(gathered: _Gathered, environ: Mapping[str, str]) -> None:
    ours = [name for name in environ if name.startswith(PREFIX) and name != CONFIG_VARIABLE and environ[name]]
    for name in sorted(ours, key=lambda name: (name.count(SEPARATOR), name)):
        location = _location_of(gathered, name)
        if location:
            gathered.put(location, settle(environ[name], annotation_at(location)), name)


def _location_of(gathered: _Gathered, name: str) -> Location | None:
    """Where a variable's value goes; None where it is another program's. Unknown names are noted as problems."""
    segments = name.removeprefix(PREFIX).lower().split(SEPARATOR)
    location: Location = ()
    for segment in segments:
        known = children(location, gathered.data)
        part = _index(gathered, segment, location) if known is None else _match(segment, known, location)
        if part is None:
            close = nearest(segment, known or ())
            ours = SEPARATOR in name or (close and not SERVICE_LINK.fullmatch(name))
            if ours:
                meant = PREFIX + SEPARATOR.join([*map(str, location), close or ""]).upper()
                gathered.problems.append((name, "unknown setting" + (f"; did you mean {meant}?" if close else "")))
            return None
        location = (*location, part)
    return location


def _match(segment: str, known: list[str], location: Location) -> str | None:
    """The key that a variable's part means, whatever its case; a free mapping takes new ones."""
    found = next((key for key in known if key.lower() == segment), None)
    return segment if found is None and segment and is_free(location) else found


def _index(gathered: _Gathered, segment: str, location: Location) -> int | None:
    """A list's item by number, counted from 0; one past the end adds one."""
    items = lookup(gathered.data, location)
    length = len(items) if isinstance(items, list) else 0
    return int(segment) if segment.isdecimal() and int(segment) <= length else None


def _take_flags(gathered: _Gathered, overrides: Mapping[str, object]) -> None:
    for flag, value in overrides.items():
        if value is None:
            continue
        if flag == "upstream":
            value = [{"name": "default", "base_url": value}]
        gathered.put(FLAGS[flag], value, "--" + flag.replace("_", "-"))


def _take_openai_key(gathered: _Gathered, environ: Mapping[str, str]) -> None:
    """The built-in upstream's key; never sent along to an address that somebody else put in its place."""
    first = lookup(gathered.data, ("upstreams", 0))
    if isinstance(first, dict) and first.get("base_url") == OPENAI_BASE_URL and not gathered.origin_of(("upstreams",)):
        first.setdefault("api_key", environ.get("OPENAI_API_KEY") or None)


def _validated(gathered: _Gathered) -> Settings:
    settings = None
    try:
        settings = Settings.model_validate(gathered.data)
    except ValidationError as error:
        for location, message in explain(error, gathered.origins):
            if location not in gathered.unreadable:
                gathered.problems.append((gathered.origin_of(location), f"{dotted(location)}: {message}"))
    if settings is None or gathered.problems:
        lines = [f"{origin}: {text}" if origin else text for origin, text in sorted(gathered.problems, key=_order)]
        raise SettingsError("\n".join(lines))
    return settings


def _order(problem: tuple[str, str]) -> tuple[str, int, str]:
    name, _, line = problem[0].rpartition(":")
    return (name, int(line), "") if line.isdecimal() else (problem[0], 0, problem[1])
