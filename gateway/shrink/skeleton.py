"""Tier 3: an old call and its result as one short line each, for a reader who only has to know that it happened."""

from __future__ import annotations

import json
import re

from gateway.shrink.choose import KEEP_CLOSE, KEEP_OPEN, whole
from gateway.shrink.jsonrows import COLUMNS, ROWS, SAME
from gateway.shrink.reads import read_paths
from gateway.shrink.signals import ERROR, Signal, signal_lines
from gateway.types import Json, JsonObject

MAX_LINE = 200
"""Characters of a result's skeleton at most, kept spans aside."""
MAX_VALUE = 120
"""Characters of an argument's string that stay as they are."""
_MAX_ITEMS = 12  # of an array or object within the arguments
_MAX_DEPTH = 6
_NAMES = 6  # definitions, keys and files that are named

_NUMBER = r"^\s*(?:\d+[:|\t→]\s?)?"  # as listings put before each line
_DEFINITION = re.compile(
    _NUMBER
    + r"(?:(?:export|default|public|private|protected|static|abstract|async|pub(?:\([^)]*\))?|unsafe|final|override"
    r"|inline|virtual|open|internal|suspend|data|sealed) )*"
    r"(?:def|class|function\*?|func(?: \([^)]*\))?|fn|struct|enum|trait|interface|impl|type|module|namespace|object"
    r"|protocol|fun|sub|record) +([A-Za-z_$][\w$]*)",
    re.MULTILINE,
)
_ASSIGNED_FUNCTION = re.compile(
    r"^(?:\d+[:|\t→]\s?)?(?:export )?(?:const|let|var) ([A-Za-z_$][\w$]*)\s*=\s*(?:async )?(?:\([^)\n]*\)|\w+)\s*=>",
    re.MULTILINE,
)
_C_FUNCTION = re.compile(
    r"^(?:\d+[:|\t→]\s?)?(?:[A-Za-z_][\w:<>,*&]* +)+\**([A-Za-z_]\w*)\([^;\n]*\)\s*(?:const\s*)?\{?\s*$", re.MULTILINE
)
_MATCH = re.compile(r"^([^\s:][^:\n]*?):\d+[:-]", re.MULTILINE)
_EXIT = re.compile(r"\b(?:exit(?:ed)?(?: with)?(?: (?:code|status))?|return ?code)\W{0,3}(\d+)", re.IGNORECASE)
_SEARCH_NAME = re.compile(r"grep|search|find|glob|rg\b", re.IGNORECASE)
_CODE_WORDS = 3  # definitions from which a text counts as code, where the call doesn't say so
_LOOKED_AT = 400_000  # characters of a result


def skeleton_arguments(arguments: str) -> str:
    """`arguments` with long values as `"<1,234 chars>"`; the same keys, valid JSON, `{}`-like where they were not."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        shortened = f"<{len(arguments):,} chars, not JSON>"
        return _dump({"…": shortened}) if arguments.strip() else "{}"
    result = _dump(_elided(given, 0))
    return result if len(result) < len(arguments) else arguments


def skeleton_result(name: str, arguments: str, result: str) -> str:
    """One line that says what `result` was: `847 lines, defines parse, load`. What `<keep>` marks is added whole.

    `name` and `arguments` are the call's. At most `MAX_LINE` characters, or `result` itself where that is shorter.
    """
    kept = _kept(result)
    line = _short(_described(name, arguments, result))
    line = "\n".join([line, *kept]) if kept else line
    return line if len(line) < len(result) or not result.strip() else result


def _described(name: str, arguments: str, result: str) -> str:
    text = result[:_LOOKED_AT].strip()
    if not text:
        return "empty"
    if text[0] in "{[" and (described := _describe_json(text, len(result))) is not None:
        return described
    lines = result.count("\n") + (not result.endswith("\n"))
    if _SEARCH_NAME.search(name) or _SEARCH_NAME.search(arguments[:200]):
        found = _MATCH.findall(text)
        if len(found) > 1 or (found and lines < 3):
            files = _plural(len(set(found)), "file", "files")
            return f"{_plural(len(found), 'match', 'matches')} in {files}{_first_names(found)}"
    names = _definitions(text)
    is_read = read_paths(name, arguments) is not None
    if names and (is_read or len(names) >= _CODE_WORDS):
        return f"{_plural(lines, 'line', 'lines')}, defines {', '.join(names)}"
    if not is_read and (failed := _failure(text)):
        return failed
    first = next((line.strip() for line in text.split("\n") if line.strip()), "")
    return f"{_plural(lines, 'line', 'lines')}: {first}" if lines > 1 else first


def _failure(text: str) -> str | None:
    """The first strongest error of a command's output, after its exit code where it names one."""
    lines = text.split("\n")
    found: list[Signal] = [signal for signal in signal_lines(lines) if signal.strength >= ERROR]
    code = next((match[1] for match in reversed(list(_EXIT.finditer(text))) if match[1] != "0"), None)
    if not found:
        return None
    best = max(found, key=lambda signal: (signal.strength, -signal.index))
    head = f"exit {code}" if code else _plural(len(lines), "line", "lines")
    return f"{head}: {lines[best.index].strip()}"


def _definitions(text: str) -> list[str]:
    names = _DEFINITION.findall(text) + _ASSIGNED_FUNCTION.findall(text)
    if not names and "{" in text:
        names = [name for name in _C_FUNCTION.findall(text) if name not in ("if", "for", "while", "switch", "return")]
    unique = list(dict.fromkeys(names))
    return unique if len(unique) <= _NAMES else [*unique[:_NAMES], f"{len(unique) - _NAMES} more"]


def _describe_json(text: str, size: int) -> str | None:
    if size > _LOOKED_AT:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list):
        return _describe_list(value)
    rows, columns, same = value.get(ROWS), value.get(COLUMNS), value.get(SAME, {})
    if isinstance(columns, list) and isinstance(rows, list | dict) and isinstance(same, dict):
        kind = "list" if isinstance(rows, list) else "object"
        return f"{kind} of {len(rows)} objects with {_names([*same, *columns])}"
    for key in ("error", "errors", "message"):
        told = value.get(key)
        if key != "message" and isinstance(told, str) and told:
            return f"JSON object: {key}: {told}"
    return f"JSON object: keys {_names(list(value))}" if value else "empty JSON object"


def _describe_list(value: list[Json]) -> str:
    if not value:
        return "empty list"
    if all(isinstance(item, dict) for item in value):
        return f"list of {_plural(len(value), 'object', 'objects')} with {_names(list(value[0]))}"
    return f"list of {_plural(len(value), 'item', 'items')}: {json.dumps(value[0], ensure_ascii=False)}"


def _names(names: list[Json]) -> str:
    more = len(names) - 2 * _NAMES
    shown = ", ".join(str(name) for name in names[: 2 * _NAMES])
    return f"{shown}, {more} more" if more > 0 else shown


def _first_names(found: list[str]) -> str:
    unique = list(dict.fromkeys(found))
    return f": {', '.join(unique[:3])}" + (" …" if len(unique) > 3 else "")


def _plural(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _short(line: str) -> str:
    line = " ".join(line.replace(KEEP_OPEN, "").replace(KEEP_CLOSE, "").split())
    return line if len(line) <= MAX_LINE else line[: whole(line, MAX_LINE - 1)] + "…"


def _kept(result: str) -> list[str]:
    spans = []
    position = result.find(KEEP_OPEN)
    while position >= 0 and (end := result.find(KEEP_CLOSE, position)) >= 0:
        end += len(KEEP_CLOSE)
        spans.append(result[position:end])
        position = result.find(KEEP_OPEN, end)
    return spans


def _elided(value: Json, depth: int) -> Json:
    if isinstance(value, str):
        return value if len(value) <= MAX_VALUE or KEEP_OPEN in value else f"<{len(value):,} chars>"
    if isinstance(value, list):
        if depth >= _MAX_DEPTH or len(value) > _MAX_ITEMS:
            return f"<{len(value):,} items>"
        return [_elided(item, depth + 1) for item in value]
    if isinstance(value, dict):
        if depth >= _MAX_DEPTH or (depth and len(value) > _MAX_ITEMS):
            return f"<{len(value):,} keys>"
        return {key: _elided(item, depth + 1) for key, item in value.items()}
    return value


def _dump(value: Json | JsonObject) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
