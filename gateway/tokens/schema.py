"""What the definitions of tools and reply schemas look like to the model, which is not the JSON that was sent.

OpenAI renders functions as a TypeScript-like namespace and charges for that text; other providers put the JSON into the
prompt. An agent with 160 tools sends 67,000 tokens of them with each request, so the difference is not small change.
"""

from __future__ import annotations

from typing import Any

import orjson

MAX_DEPTH = 24
"""Schemas nested deeper are cut: a recursive `$ref` would otherwise never end."""

UNCOUNTED_KEYS = frozenset({"additionalProperties", "required", "$schema"})
"""Keys of a reply schema that leave no trace in `usage`: two recorded replies fit within one token without them."""

COMMENTED_KEYS = ("default", "format", "minimum", "maximum", "minItems", "maxItems", "pattern")


def dump(value: object) -> str:
    """Compact JSON of anything; "" for what can't be written."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        return repr(value)
    except RecursionError:
        return ""


def text_of(value: object) -> str:
    """A string as it is, nothing for None, JSON for the rest."""
    if isinstance(value, str):
        return value
    return "" if value is None else dump(value)


def _definitions(schema: dict[str, Any]) -> dict[str, Any]:
    """Local definitions by the reference that names them."""
    found: dict[str, Any] = {}
    for key in ("$defs", "definitions"):
        table = schema.get(key)
        if isinstance(table, dict):
            found.update({f"#/{key}/{name}": value for name, value in table.items()})
    return found


def _union(options: list[Any], defs: dict[str, Any], depth: int) -> str:
    return " | ".join(_type(option, defs, depth + 1) for option in options) or "any"


def _composite(schema: dict[str, Any], defs: dict[str, Any], depth: int) -> str | None:
    """References, enumerations and unions; None where the schema is none of these."""
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return _type(defs.get(reference), defs, depth + 1)
    if isinstance(schema.get("enum"), list):
        return " | ".join(dump(item) for item in schema["enum"])
    if "const" in schema:
        return dump(schema["const"])
    for key in ("anyOf", "oneOf", "allOf"):
        if isinstance(schema.get(key), list):
            return _union(schema[key], defs, depth)
    return None


def _type(schema: object, defs: dict[str, Any], depth: int) -> str:
    """The TypeScript type of a JSON schema."""
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return "any"
    composite = _composite(schema, defs, depth)
    if composite is not None:
        return composite
    kind = schema.get("type")
    if isinstance(kind, list):
        return _union([{**schema, "type": item} for item in kind], defs, depth)
    if kind == "object" or "properties" in schema:
        return "{\n" + _properties(schema, defs, depth) + "}"
    if kind == "array" or "items" in schema:
        items = schema.get("items")
        return f"{_type(items, defs, depth + 1)}[]" if items else "any[]"
    if kind in ("integer", "number"):
        return "number"
    return kind if kind in ("string", "boolean", "null") else "any"


def _comment(schema: dict[str, Any]) -> str:
    """Limits and defaults, which follow the type as a comment."""
    notes = [f"{key}: {text_of(schema[key])}" for key in COMMENTED_KEYS if key in schema]
    return f" // {', '.join(notes)}" if notes else ""


def _properties(schema: dict[str, Any], defs: dict[str, Any], depth: int) -> str:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return ""
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    lines = []
    for name, value in properties.items():
        inner = value if isinstance(value, dict) else {}
        description = text_of(inner.get("description")).strip()
        if description:
            lines.append(f"// {description}\n")
        mark = "" if name in needed else "?"
        lines.append(f"{name}{mark}: {_type(value, defs, depth + 1)},{_comment(inner)}\n")
    return "".join(lines)


def _function(function: dict[str, Any]) -> str:
    """One function as a type of the namespace, blank line included."""
    name = text_of(function.get("name"))
    description = text_of(function.get("description")).strip()
    head = f"// {description}\n" if description else ""
    parameters = function.get("parameters", function.get("input_schema"))
    if not isinstance(parameters, dict) or not parameters.get("properties"):
        return f"{head}type {name} = () => any;\n\n"
    body = _properties(parameters, _definitions(parameters), 0)
    return f"{head}type {name} = (_: {{\n{body}}}) => any;\n\n"


def function_of(tool: object) -> dict[str, Any] | None:
    """The function inside a tool entry, in any of the shapes in use; None for a tool that is no function."""
    if not isinstance(tool, dict):
        return None
    inner = tool.get("function")
    if isinstance(inner, dict):
        return inner
    return tool if isinstance(tool.get("name"), str) else None


def namespace(functions: list[dict[str, Any]]) -> str:
    """The text OpenAI charges for these functions, without the fixed tokens around it."""
    return "namespace functions {\n\n" + "".join(map(_function, functions)) + "} // namespace functions"


def reply_schema(schema: object) -> str:
    """A reply schema (`response_format`) reduced to the JSON that is charged for."""
    return dump(_reduced(schema, 0))


def _reduced(value: object, depth: int) -> object:
    if depth > 2 * MAX_DEPTH:
        return None
    if isinstance(value, dict):
        return {key: _reduced(item, depth + 1) for key, item in value.items() if key not in UNCOUNTED_KEYS}
    if isinstance(value, list):
        return [_reduced(item, depth + 1) for item in value]
    return value
