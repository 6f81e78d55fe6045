"""The tool by which a model reads back what was cut: how it is declared, and in which requests it may be."""

from __future__ import annotations

from typing import Final

from gateway.body import ChatBody, as_object, encode
from gateway.forms import TOOL_NAME
from gateway.types import JsonObject

ANSWER_CHARS: Final = 8_000
"""Of one answer, about 2,000 tokens of English: a few answers must not fill again what the cut has freed."""
LEAST_WINDOW: Final = 4_096
"""Tokens; in a smaller window neither the declaration nor an answer is worth its room."""

DEFINITION: Final[JsonObject] = {
    "type": "function",
    "function": {
        "name": TOOL_NAME,
        "description": (
            "Reads back a tool output that was shortened in this conversation. Its id stands where it was cut. "
            "Without lines or grep it begins at the first line. "
            f"At most {ANSWER_CHARS:,} characters come back; the answer says how to go on."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": "The id at the cut."},
                "lines": {"type": "string", "description": "A range of lines such as 120-180, counted from 1."},
                "grep": {"type": "string", "description": "A regular expression: only lines that match, numbered."},
            },
            "required": ["id"],
        },
    },
}
_WRITTEN: Final = encode(DEFINITION)
_FREE_CHOICE: Final = (None, "auto", "required")
_LEGACY: Final = ("functions", "function_call")


def offerable(body: ChatBody) -> bool:
    """Whether a request leaves the model free to call one more tool, and its client has none of that name."""
    if any(body.has(name) for name in _LEGACY) or body.get("n") not in (None, 1):
        return False
    choice, tools = body.get("tool_choice"), body.get("tools")
    if isinstance(choice, dict) or choice not in _FREE_CHOICE:
        return False
    if tools is None:
        return choice is None
    return isinstance(tools, list) and TOOL_NAME not in map(_name, tools)


def client_tools(body: ChatBody) -> frozenset[str]:
    """Names of the tools that the client declares."""
    tools = body.get("tools")
    return frozenset(map(_name, tools)) if isinstance(tools, list) else frozenset()


def tools_with(body: ChatBody) -> bytes:
    """The request's `tools` as written, with the declaration at their end."""
    raw = body.raw_field("tools")
    if not body.get("tools"):
        return b"[" + _WRITTEN + b"]"
    return raw[:-1] + b"," + _WRITTEN + b"]"


def _name(tool: object) -> str:
    """Of a function, or of a custom tool."""
    declared = as_object(tool)
    inner = as_object(declared.get(str(declared.get("type", "")))) or as_object(declared.get("function"))
    return str(inner.get("name") or declared.get("name") or "")
