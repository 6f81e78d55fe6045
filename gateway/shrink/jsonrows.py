"""JSON folded without loss: no white space, uniform objects as one header and rows.

The folded text is JSON still, so that a model, a client or a later stage reads it as such:

    [{"id": 1, "kind": "x"}, {"id": 2, "kind": "x"}]        {"same":{"kind":"x"},"columns":["id"],"rows":[[1],[2]]}
    {"A1": {"n": 3}, "B2": {"n": 4}}                        {"columns":["n"],"rows":{"A1":[3],"B2":[4]}}
    [[{"n": 1}, {"n": 2}], [{"n": 3}]]                      {"columns":["n"],"groups":[[[1],[2]],[[3]]]}

Uniform nested objects become dotted columns (`price.economy`). `unfold_json` gives the same JSON value back; a
document that already has objects of the folded shape gets no tables, so the reversal is never ambiguous.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from gateway.types import Json, JsonObject

SAME = "same"
COLUMNS = "columns"
ROWS = "rows"
GROUPS = "groups"

_MAX_DEPTH = 100  # deeper than any tool's result; below the interpreter's recursion limit
_TABLE_OVERHEAD = 24  # characters of `{"columns":[],"rows":[]}`
_NUMBER_MARK = "\x00#"
_NUMBER = re.compile(r'"\\u0000#([^"]*)"')
_SURROGATE = re.compile("[\ud800-\udfff]")


class _Refused(ValueError):
    """A document that can't be written again exactly: duplicate keys, or NUL marks of its own."""


class _Reader:
    """Parses one document so that numbers keep their text; remembers whether it holds tables already."""

    def __init__(self) -> None:
        self.has_tables = False

    def read(self, text: str) -> Json:
        """The value of `text`. ValueError where it isn't JSON or not writable again, RecursionError where too deep."""
        if "\\u0000#" in text:
            raise _Refused("the mark for numbers occurs in the text")
        return json.loads(
            text,
            parse_int=_integer,
            parse_float=_decimal,
            parse_constant=_literal,
            object_pairs_hook=self._object,
        )

    def _object(self, pairs: list[tuple[str, Json]]) -> JsonObject:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise _Refused("a key occurs twice")
        if COLUMNS in found and (ROWS in found or GROUPS in found):
            self.has_tables = True
        return found


def _literal(text: str) -> str:
    return _NUMBER_MARK + text


def _integer(text: str) -> int | str:
    return _literal(text) if text == "-0" or len(text) > 18 else int(text)


def _decimal(text: str) -> float | str:
    value = float(text)
    return value if repr(value) == text else _literal(text)


def write(value: Json) -> str:
    """`value` as JSON without white space; numbers kept aside by the reader get their own text back."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, check_circular=False)
    if _SURROGATE.search(text):
        text = _SURROGATE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
    return _NUMBER.sub(r"\1", text) if "\\u0000#" in text else text


def read(text: str) -> Json:
    """The value of a JSON document, its numbers' text kept for `write`. Raises as `json.loads` does."""
    return _Reader().read(text)


def fold_json(text: str) -> str | None:
    """`text`, a JSON object or array, in its shortest lossless form; None where it is something else."""
    if text[:1] not in "{[" or text[-1:] not in "}]":
        return None
    reader = _Reader()
    try:
        value = reader.read(text)
        return write(value if reader.has_tables else _folded(value, 0))
    except (ValueError, RecursionError):
        return None


def unfold_json(text: str) -> str:
    """The JSON that `fold_json` was given, without its white space. Raises ValueError where `text` isn't JSON."""
    return write(_unfolded(read(text)))


def _folded(value: Json, depth: int) -> Json:
    if depth > _MAX_DEPTH or not value:
        return value
    if isinstance(value, list):
        return _fold_list(value, depth)
    if isinstance(value, dict):
        table = _table(list(value.values()), list(value), depth) if len(value) > 1 else None
        return table if table is not None else {key: _folded(inner, depth + 1) for key, inner in value.items()}
    return value


def _fold_list(value: list[Json], depth: int) -> Json:
    table = None
    if isinstance(value[0], dict):
        table = _table(value, None, depth)
    elif isinstance(value[0], list) and all(isinstance(group, list) and group for group in value):
        table = _table([item for group in value for item in group], None, depth)
        if table is not None:
            rows = iter(table.pop(ROWS))
            table[GROUPS] = [[next(rows) for _ in group] for group in value]
    return table if table is not None else [_folded(inner, depth + 1) for inner in value]


def _table(objects: list[Json], names: list[str] | None, depth: int) -> JsonObject | None:
    """`objects` as header and rows, where they all have the same keys and it pays; else None."""
    if len(objects) < 2 or not all(isinstance(item, dict) for item in objects):
        return None
    columns: list[tuple[str, Sequence[Json]]] = []
    if not _collect(objects, "", columns, depth):
        return None
    same, varying, saved = {}, [], -_TABLE_OVERHEAD
    for name, cells in columns:
        saved += (len(cells) - 1) * (len(name) - name.rfind(".") + 3) - name.rfind(".")
        if _all_same(cells):
            same[name] = cells[0]
            saved += (len(cells) - 1) * len(str(cells[0]))
        else:
            varying.append((name, [_folded(cell, depth + 1) for cell in cells]))
    if saved <= 0:
        return None
    rows = [list(row) for row in zip(*(cells for _, cells in varying), strict=True)] if varying else [[]] * len(objects)
    table: JsonObject = {SAME: same} if same else {}
    table[COLUMNS] = [name for name, _ in varying]
    table[ROWS] = rows if names is None else dict(zip(names, rows, strict=True))
    return table


def _collect(objects: Sequence[JsonObject], prefix: str, columns: list[tuple[str, Sequence[Json]]], depth: int) -> bool:
    """Appends the columns of `objects`, uniform nested objects as dotted names; False where they aren't uniform."""
    first = objects[0]
    if not first or depth > _MAX_DEPTH or any("." in key for key in first):
        return False
    keys = first.keys()
    if any(item.keys() != keys for item in objects):
        return False
    for key in first:
        cells = [item[key] for item in objects]
        nested: list[tuple[str, Sequence[Json]]] = []
        if all(isinstance(cell, dict) for cell in cells) and _collect(cells, f"{prefix}{key}.", nested, depth + 1):
            columns.extend(nested)
        else:
            columns.append((prefix + key, cells))
    return True


def _all_same(cells: Sequence[Json]) -> bool:
    """Whether all cells are the same scalar, spelt the same: 1, 1.0 and true differ."""
    first = cells[0]
    if isinstance(first, list | dict):
        return False
    kind = type(first)
    if any(type(cell) is not kind or cell != first for cell in cells):
        return False
    return kind is not float or all(repr(cell) == repr(first) for cell in cells)


def _unfolded(value: Json) -> Json:
    if isinstance(value, list):
        return [_unfolded(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    columns = value.get(COLUMNS)
    if isinstance(columns, list) and (ROWS in value or GROUPS in value):
        return _unfold_table(value, columns)
    return {key: _unfolded(inner) for key, inner in value.items()}


def _unfold_table(table: JsonObject, columns: list[str]) -> Json:
    same: JsonObject = table.get(SAME, {})

    def row(cells: list[Json]) -> JsonObject:
        built: JsonObject = {}
        for name, cell in [*same.items(), *zip(columns, cells, strict=True)]:
            *parents, leaf = name.split(".")
            inner: dict[str, Any] = built
            for parent in parents:
                inner = inner.setdefault(parent, {})
            inner[leaf] = _unfolded(cell)
        return built

    if GROUPS in table:
        return [[row(cells) for cells in group] for group in table[GROUPS]]
    rows = table[ROWS]
    if isinstance(rows, dict):
        return {name: row(cells) for name, cells in rows.items()}
    return [row(cells) for cells in rows]
