"""Turns pydantic's errors into sentences for the person who wrote the configuration."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from gateway.settings import EMBEDDINGS_TAGS, Settings
from gateway.settings_file import Location
from gateway.settings_schema import model_at

SECRET_KEYS = frozenset({"key", "api_key", "database_url", "headers"})
"""Values under these never appear in a message: start-up errors end in logs."""
SHOWN_CHARS = 60
"""Of a wrong value; enough to recognise it."""
WANTED = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "path_type": "a path",
}
"""What the schema wanted, by pydantic's name for the error."""


def nearest(name: str, known: Collection[str]) -> str | None:
    """The known name most like `name`; None where none is near."""
    matches = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    return matches[0] if matches else None


def explain(error: ValidationError, set_by_somebody: Collection[Location]) -> Iterator[tuple[Location, str]]:
    """Each error as the place it blames and what is wrong there; of several suspects, one in `set_by_somebody`."""
    for detail in error.errors(include_url=False):
        location: Location = tuple(part for part in detail["loc"] if part not in (*EMBEDDINGS_TAGS, "[key]"))
        if detail["type"] == "impossible":
            context = detail["ctx"]
            suspects = [(*location, *suspect) for suspect in context["suspects"]]
            blamed = next((suspect for suspect in suspects if suspect in set_by_somebody), None)
            yield blamed or (suspects[0] if suspects else location), context["message"]
        else:
            yield location, _sentence(detail, location)


def _sentence(detail: ErrorDetails, location: Location) -> str:
    kind = detail["type"]
    if kind == "extra_forbidden":
        return _unknown(location)
    if kind == "missing":
        return "is missing"
    got = "" if SECRET_KEYS.intersection(map(str, location)) else f", not {_shown(detail['input'])}"
    if kind == "literal_error":
        expected = detail["ctx"]["expected"]
        near = nearest(
            str(detail["input"]), [choice.strip("'") for choice in expected.replace(" or ", ", ").split(", ")]
        )
        return f"must be {expected}{got}" + (f"; did you mean '{near}'?" if near else "")
    if kind in WANTED:
        return f"must be {WANTED[kind]}{got}"
    message = detail["msg"].removeprefix("Input ").removeprefix("Value ").removeprefix("String ")
    return message.replace("should ", "must ", 1) + got


def _unknown(location: Location) -> str:
    *above, name = location
    model = model_at(tuple(above))
    known = list(model.model_fields) if model else []
    if near := nearest(str(name), known):
        return f"unknown key; did you mean '{near}'?"
    elsewhere = [section for section in Settings.model_fields if str(name) in _fields((section,))]
    if elsewhere and tuple(above) != (elsewhere[0],):
        return f"unknown key; did you mean '{elsewhere[0]}.{name}'?"
    return f"unknown key; there are: {', '.join(known)}"


def _fields(location: Location) -> Collection[str]:
    model = model_at(location)
    return model.model_fields if model else ()


def _shown(value: Any) -> str:
    text = {True: "true", False: "false", None: "null"}.get(value) if isinstance(value, (bool, type(None))) else None
    text = text or repr(value)
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"
