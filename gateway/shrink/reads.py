"""Which file a tool call read or changed, over the tools that common agents have.

An old read that a later read or edit of the same path has overtaken is the first to shrink; the newest read of a file
that is being edited is the last, as the agent must quote it back.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable
from typing import NamedTuple

from gateway.types import JsonObject

_PATH_KEYS = (
    "path", "file_path", "filepath", "filename", "file", "file_name", "target_file", "absolute_path", "relative_path",
    "relative_workspace_path", "notebook_path", "uri", "abs_path", "filePath", "targetFile", "fileName", "absolutePath",
)  # fmt: skip
_COMMAND_KEYS = ("command", "cmd", "script", "code", "input", "bash_command", "shell_command")
_READ_NAMES = re.compile(
    r"^(?:read|open|view|cat|get_file|show_file|load_file|fetch_file|goto|scroll_(?:up|down))|(?:read|view|open)_?(?:text_?)?file|"
    r"file_?(?:read|view)|get_?file_?(?:contents?|text)|notebookread",
    re.IGNORECASE,
)
_EDIT_NAMES = re.compile(
    r"edit|write|creat|patch|replace|insert|modify|update_?file|append|delete_?file|save_?file|undo|put_?file|overwrite",
    re.IGNORECASE,
)
_NOT_FILES = re.compile(
    r"director|folder|plan|todo|issue|pull_?request|branch|url|browser|page|memory|task", re.IGNORECASE
)
_SHELL_NAMES = re.compile(r"bash|shell|terminal|exec|run|command|powershell|console", re.IGNORECASE)
_PATCH_PATH = re.compile(r"^(?:\*\*\* (?:Update|Add|Delete) File: |\+\+\+ b?/?|--- a/)(.+?)\s*$", re.MULTILINE)
_READERS = frozenset(["cat", "head", "tail", "less", "more", "bat", "nl", "tac", "type", "get-content"])
_REDIRECT = re.compile(r"(?:^|[^0-9&>])>>?\s*([^\s;|&<>]+)")
_SED_PRINT = re.compile(r"^\d*,?\$?\d*p(?:;.*)?$")
_MAX_COMMAND = 20_000  # characters of a command that are looked at


class Call(NamedTuple):
    """One finished tool call: where it stands, the function's name, its arguments as JSON, and the result's text."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs
    name: str
    arguments: str
    result: str


class Reads(NamedTuple):
    """What the calls of a conversation say about its files' copies: indices of the calls."""

    superseded: frozenset[int]
    """Reads overtaken by a later read or edit of the same path."""
    guarded: frozenset[int]
    """The newest read of each path that was edited: what the agent quotes from."""


def read_paths(name: str, arguments: str) -> str | None:
    """The path that the call reads, normalised; None where it reads no single file."""
    given = _arguments(arguments)
    if given is None:
        return None
    command = _command(name, given)
    if command is not None and _SHELL_NAMES.search(name):
        return _shell_read(command)
    if command in ("view", "read", "open", "cat") and (path := _path(given)):
        return path  # str_replace_based_edit_tool and its like take the operation as `command`
    if command is not None and _EDIT_NAMES.search(name):
        return None
    return _path(given) if _READ_NAMES.search(name) and not _NOT_FILES.search(name) else None


def edit_paths(name: str, arguments: str) -> str | None:
    """The (first) path that the call changes, normalised; None where it changes no file."""
    given = _arguments(arguments)
    if given is None:
        return None
    command = _command(name, given)
    if command is not None and _SHELL_NAMES.search(name):
        return _shell_edit(command)
    if command in ("view", "read", "open", "cat"):
        return None
    if not _EDIT_NAMES.search(name) or _NOT_FILES.search(name):
        return None
    path = _path(given)
    if path is not None:
        return path
    for value in given.values():
        if isinstance(value, str) and (found := _PATCH_PATH.search(value[:_MAX_COMMAND])):
            return _normal(found[1])
    return None


def classify_reads(calls: Iterable[Call]) -> Reads:
    """Which reads are superseded, and which are guarded, given the conversation's calls in order. Linear."""
    newest: dict[str, int] = {}
    edited: set[str] = set()
    superseded: set[int] = set()
    for call in calls:
        changed = edit_paths(call.name, call.arguments)
        if changed is not None:
            edited.add(changed)
            if changed in newest and _shows_file(call.result):
                superseded.add(newest[changed])
                newest[changed] = call.index
            continue
        seen = read_paths(call.name, call.arguments)
        if seen is None:
            continue
        before = newest.get(seen)
        if before is not None:
            superseded.add(before)
        newest[seen] = call.index
    guarded = frozenset(index for path, index in newest.items() if path in edited)
    return Reads(frozenset(superseded) - guarded, guarded)


def superseded(calls: Iterable[Call]) -> frozenset[int]:
    """Indices of the calls whose result a later read or edit of the same path has overtaken."""
    return classify_reads(calls).superseded


def _shows_file(result: str) -> bool:
    """Whether an edit's result shows the file anew, as editors do that print a window of numbered lines."""
    return len(re.findall(r"^\s*\d+[:|\t→]", result[:8_000], re.MULTILINE)) >= 3


def _arguments(arguments: str) -> JsonObject | None:
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def _command(name: str, given: JsonObject) -> str | None:
    for key in _COMMAND_KEYS:
        value = given.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return value[-1] if value[0] in ("bash", "sh", "zsh") and len(value) > 2 else shlex.join(value)
    return None


def _path(given: JsonObject) -> str | None:
    for key in _PATH_KEYS:
        value = given.get(key)
        if isinstance(value, str) and value.strip():
            return _normal(value)
    return None


def _normal(path: str) -> str:
    """`path` so that its common spellings are equal: no scheme, no quotes, no leading or doubled `./` and slashes."""
    path = path.strip().strip("'\"").removeprefix("file://").replace("\\", "/")
    path = re.sub(r"/(?:\./)+|/{2,}", "/", path)
    while path.startswith("./"):
        path = path[2:]
    return path


def _shell_read(command: str) -> str | None:
    """The single file that a command prints: `cat f`, `sed -n 1,9p f`, `head -50 f`, each perhaps after `cd x &&`."""
    found = None
    for words in _simple_commands(command):
        if not words or words[0] == "cd":
            continue
        plain = [word for word in words[1:] if not word.startswith("-") and not word.isdigit()]
        tool = words[0].rsplit("/", 1)[-1].lower()
        if tool == "sed" and "-n" in words and len(plain) == 2 and _SED_PRINT.match(plain[0]):
            path = plain[1]
        elif tool in _READERS and len(plain) == 1:
            path = plain[0]
        else:
            return None
        if found is not None and found != path:
            return None
        found = path
    return _normal(found) if found else None


def _shell_edit(command: str) -> str | None:
    """The first file that a command changes: a redirection, `sed -i`, `tee`, `git checkout f`, `mv`, `rm`, a patch."""
    patch = _PATCH_PATH.search(command[:_MAX_COMMAND])
    if patch and ("patch" in command or "git apply" in command):
        return _normal(patch[1])
    for words in _simple_commands(command):
        if not words:
            continue
        plain = [word for word in words[1:] if not word.startswith("-")]
        tool = words[0].rsplit("/", 1)[-1]
        if tool == "sed" and any(word.startswith(("-i", "--in-place")) for word in words) and len(plain) > 1:
            return _normal(plain[-1])
        if tool in ("tee", "rm", "mv", "touch", "truncate") and plain:
            return _normal(plain[0])
        if tool == "git" and plain[:1] in (["checkout"], ["restore"], ["apply"]) and len(plain) > 1:
            return _normal(plain[-1])
    for found in _REDIRECT.finditer(command[:_MAX_COMMAND].split("\n", 1)[0]):
        if not found[1].startswith("/dev/") and "=" not in found[1]:
            return _normal(found[1])
    return None


def _simple_commands(command: str) -> list[list[str]]:
    """The words of each simple command; empty where the command is too long or its quotes don't match."""
    if len(command) > _MAX_COMMAND:
        return []
    commands: list[list[str]] = [[]]
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        lexer.commenters = ""
        for word in lexer:
            if word in ("&&", "||", ";", "|", "&"):
                commands.append([])
            elif word[:1] in "<>" and not word.strip("<>&"):
                break
            else:
                commands[-1].append(word)
    except ValueError:
        return []
    return commands
