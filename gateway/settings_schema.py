"""Answers what may stand where in the configuration, read off the models themselves: nothing is listed twice."""

from __future__ import annotations

from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, SecretStr

from gateway.settings import Settings
from gateway.settings_file import Location

TEXT_TYPES = (str, SecretStr, Path)
NULLS = frozenset({"", "~", "null", "none"})


def members(annotation: Any) -> list[Any]:
    """The plain types behind `Annotated`, unions and optionals: `list[str] | None` gives `[list[str], NoneType]`."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return members(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return [member for argument in get_args(annotation) for member in members(argument)]
    return [annotation]


def model_at(location: Location) -> type[BaseModel] | None:
    """The model whose fields are the keys at `location`; None where a value, a list or free names stand there."""
    return next((kind for kind in members(annotation_at(location)) if _is_model(kind)), None)


def annotation_at(location: Location) -> Any:
    """The declared type at `location`; `Any` where nothing is declared."""
    annotation: Any = Settings
    for part in location:
        annotation = next(filter(None, (_child(kind, part) for kind in members(annotation))), Any)
    return annotation


def children(location: Location, data: Any) -> list[str] | None:
    """The names that may stand at `location`: a model's fields, or a free mapping's keys by now; None for a list."""
    kinds = members(annotation_at(location))
    if model := model_at(location):
        return list(model.model_fields)
    if any(get_origin(kind) is list for kind in kinds):
        return None
    found = lookup(data, location)
    return [str(key) for key in found] if isinstance(found, dict) else []


def lookup(data: Any, location: Location) -> Any:
    """The value at `location` in nested mappings and lists; None where there is none."""
    for part in location:
        if isinstance(data, dict):
            data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
        else:
            return None
    return data


def is_free(location: Location) -> bool:
    """Whether a mapping with names of the user's own choosing stands at `location`."""
    return any(get_origin(kind) is dict for kind in members(annotation_at(location)))


def is_section(key: str) -> bool:
    """Whether a top-level key holds a block or a list, and not a value of its own."""
    return any(_is_model(kind) or get_origin(kind) in (dict, list) for kind in members(annotation_at((key,))))


def settle(text: str, annotation: Any) -> Any:
    """Text from the environment as the value that `annotation` asks for; the text itself where it can't be one."""
    kinds = members(annotation)
    if type(None) in kinds and text.lower() in NULLS:
        return None
    if bool in kinds and text in ("0", "1"):
        return text == "1"
    takes_text = any(kind in TEXT_TYPES or get_origin(kind) is Literal for kind in kinds)
    takes_block = any(_is_model(kind) or get_origin(kind) in (dict, list) for kind in kinds)
    if takes_text and not (takes_block and text.lstrip().startswith(("{", "["))):
        return text
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _child(kind: Any, part: str | int) -> Any:
    if _is_model(kind) and part in kind.model_fields:
        declared = kind.model_fields[part]
        return declared.annotation
    if get_origin(kind) is list and isinstance(part, int):
        return get_args(kind)[0]
    return get_args(kind)[1] if get_origin(kind) is dict else None
