"""Reads a YAML file so that every value remembers its line.

A plain `yaml.safe_load` forgets where things stand and lets a second key of the same name win in silence; both matter
to somebody looking for a mistake in a configuration. `${NAME}` and `${NAME:-default}` in a value are taken from the
environment given to `read_document`; `$${` is a literal `${`. Nothing here knows what the settings mean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from yaml.reader import ReaderError

from gateway.errors import SettingsError

Location = tuple[str | int, ...]
"""The way to a value: keys and list indices from the top."""

REFERENCE = re.compile(r"(\$?)\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}\n]*))?\}")
OPEN, CLOSE = "\ue000", "\ue001"
"""Private-use characters that stand for `${` and `}` while YAML reads: braces end a plain scalar inside `{…}`."""
PLACEHOLDER = re.compile(f"{OPEN}(\\d+){CLOSE}")
OPTIONAL_SECRET = "api_key"
"""A key of this name is null where its variable is unset: the caller's own key is passed on then."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: `line` counts from 1, 0 where there is none to name."""

    location: Location
    line: int
    message: str


@dataclass
class Document:
    """A file's values, each value's line, and which of them hold text from the environment (always strings)."""

    data: dict[str, Any] = field(default_factory=dict)
    lines: dict[Location, int] = field(default_factory=dict)
    expanded: set[Location] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)


def dotted(location: Location) -> str:
    """`("upstreams", 0, "name")` as people write it: `upstreams[0].name`."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def read_document(path: Path, environ: Mapping[str, str]) -> Document:
    """Read `path`: `SettingsError` where it is no YAML mapping at all, `Document.problems` for what is wrong inside."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SettingsError(f"{path}: can't be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: is not UTF-8 (byte {error.start})") from error
    return _Reader(text, environ).read(str(path))


class _Reader:
    def __init__(self, text: str, environ: Mapping[str, str]) -> None:
        self._references: list[re.Match[str]] = []
        self._environ = environ
        self._text = REFERENCE.sub(self._hide, text)
        self._open: list[yaml.Node] = []
        self._document = Document()

    def read(self, name: str) -> Document:
        try:
            self._loader = yaml.SafeLoader(self._text)
            root = self._loader.get_single_node()
            value = {} if root is None else self._value(root, ())
        except yaml.MarkedYAMLError as error:
            raise SettingsError(f"{name}:{_line(error)}: {_reason(error)}") from error
        except ReaderError as error:
            line = self._text.count("\n", 0, error.position) + 1
            raise SettingsError(
                f"{name}:{line}: has a control character (U+{ord(self._text[error.position]):04X})"
            ) from error
        except RecursionError as error:
            raise SettingsError(f"{name}:1: is nested too deeply") from error
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise SettingsError(f"{name}:1: must be a mapping of settings, not {_kind(value)}")
        self._document.data = value
        return self._document

    def _hide(self, match: re.Match[str]) -> str:
        self._references.append(match)
        return f"{OPEN}{len(self._references) - 1}{CLOSE}"

    def _value(self, node: yaml.Node, location: Location) -> Any:
        line = node.start_mark.line + 1
        self._document.lines.setdefault(location, line)
        if node in self._open:
            self._wrong(location, line, "refers to itself")
            return None
        self._open.append(node)
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, location)
            if isinstance(node, yaml.SequenceNode):
                return [self._value(item, (*location, index)) for index, item in enumerate(node.value)]
            return self._scalar(node, location)
        finally:
            self._open.pop()

    def _mapping(self, node: yaml.MappingNode, location: Location) -> dict[str, Any]:
        seen: dict[Any, int] = {}
        for key_node, _ in node.value:
            line = key_node.start_mark.line + 1
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key in seen and key != "<<":
                self._wrong(
                    (*location, self._shown(key)), line, f"stands here a second time (first on line {seen[key]})"
                )
            seen.setdefault(key, line)
        self._loader.flatten_mapping(node)
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = self._loader.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                self._wrong(location, line, f"the key {key!r} is {_kind(key)}, not text: put it in quotes")
                continue
            key = self._shown(key)
            self._document.lines[(*location, key)] = line
            result[key] = self._value(value_node, (*location, key))
        return result

    def _scalar(self, node: yaml.Node, location: Location) -> Any:
        line = node.start_mark.line + 1
        try:
            value = self._loader.construct_object(node)
        except ValueError as error:
            self._wrong(location, line, f"{node.value!r} is no value: {error}")
            return None
        if not isinstance(value, str):
            return value
        if PLACEHOLDER.search(value):
            return self._expand(value, location, line)
        if "${" in value:
            self._wrong(location, line, "has a ${ that is neither ${NAME} nor ${NAME:-default}; a literal one is $${")
        return value

    def _expand(self, value: str, location: Location, line: int) -> str | None:
        missing: list[str] = []

        def replace(match: re.Match[str]) -> str:
            reference = self._references[int(match[1])]
            escaped, name, default = reference.groups()
            if escaped:
                return reference[0][1:]
            self._document.expanded.add(location)
            text = self._environ.get(name, "")
            if text or (name in self._environ and default is None):
                return text
            if default is None:
                missing.append(name)
            return default or ""

        text = PLACEHOLDER.sub(replace, value)
        optional = bool(location) and location[-1] == OPTIONAL_SECRET
        if missing and not optional:
            self._wrong(
                location,
                line,
                f"the environment variable {missing[0]} is not set; ${{{missing[0]}:-…}} gives a default",
            )
        return None if optional and (missing or not text) else text

    def _shown(self, text: Any) -> str:
        """Keys are never expanded: give them their braces back."""
        return PLACEHOLDER.sub(lambda match: self._references[int(match[1])][0], str(text))

    def _wrong(self, location: Location, line: int, message: str) -> None:
        self._document.problems.append(Problem(location, line, message))


def _line(error: yaml.MarkedYAMLError) -> int:
    mark = error.problem_mark or error.context_mark
    return mark.line + 1 if mark else 1


def _reason(error: yaml.MarkedYAMLError) -> str:
    reason = PLACEHOLDER.sub("${…}", error.problem or str(error))
    hint = " (YAML is indented with spaces, never tabs)" if "'\\t'" in reason else ""
    return f"is not valid YAML: {reason}{hint}"


def _kind(value: Any) -> str:
    names = {dict: "a mapping", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return "nothing" if value is None else names.get(type(value), f"a {type(value).__name__}")
