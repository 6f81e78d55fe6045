"""The OpenAPI 3.1 document of the memory API, made from the table of operations and the models they name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from gateway import __version__
from gateway.api.models import NAME_MOST, NEEDED, Document, Error
from gateway.api.operation import JSON_TYPE, LINES_TYPE, TEXT_TYPE, Operation

PREFIX = "/v1/memory"
REFERENCE = "#/components/schemas/{model}"
DESCRIPTION = (
    "What the gateway remembers of a tenant: the key of the request together with `X-Memory-User`. No request reads or "
    "writes another tenant's memory, whatever names it gives."
)
HEADERS = {
    "X-Memory-User": "Parts the memory of one key by user; as `user` in a chat request.",
    "X-Memory-Project": "The project that new memories belong to.",
}
USUAL = {
    400: "The request is wrong; `param` says where.",
    401: "`auth.keys` is set, and this key is not among them.",
    404: "Nothing under that name is kept for this tenant.",
    413: "The body is too large.",
    429: "The tenant keeps as much as it may.",
    503: "The store can't be read or written now.",
}
REPLIES = {200: "Done.", 201: "Remembered.", 202: "Held in quarantine until it is approved.", 403: "May not be kept."}
SCHEME = "key"


def document(table: Sequence[Operation], *, keyed: bool) -> Document:
    """The whole document. `keyed`: the gateway takes only configured keys."""
    models = _models(table)
    mapping, definitions = models_json_schema([(m, "validation") for m in models], ref_template=REFERENCE)
    del mapping
    paths: Document = {}
    for operation in table:
        paths.setdefault(PREFIX + operation.path, {})[operation.method.lower()] = _operation(operation)
    paths[f"{PREFIX}/openapi.json"] = {
        "get": {
            "operationId": "get_openapi",
            "summary": "This document",
            "security": [],
            "responses": {"200": _reply("Done.", {"schema": {"type": "object"}})},
        }
    }
    whole: Document = {
        "openapi": "3.1.0",
        "info": {"title": "Breakwater memory", "version": __version__, "description": DESCRIPTION},
        "paths": paths,
        "components": {
            "schemas": definitions["$defs"],
            "parameters": {_slug(name): _header(name, text) for name, text in HEADERS.items()},
            "securitySchemes": {SCHEME: {"type": "http", "scheme": "bearer"}},
        },
    }
    if keyed:
        whole["security"] = [{SCHEME: []}]
    return whole


def _models(table: Sequence[Operation]) -> list[type[BaseModel]]:
    found: dict[type[BaseModel], None] = {Error: None}
    for operation in table:
        if operation.body is not None:
            found[operation.body] = None
        for answer in operation.answers.values():
            if not isinstance(answer, str):
                found[answer] = None
    return list(found)


def _operation(operation: Operation) -> Document:
    described: Document = {
        "operationId": _slug(f"{operation.method} {operation.path or 'all'}"),
        "summary": operation.summary,
        "description": " ".join((operation.run.__doc__ or "").split("\n\n")[0].split()),
        "parameters": _parameters(operation),
        "responses": _responses(operation),
    }
    if operation.body is not None:
        content: Document = {JSON_TYPE: {"schema": _reference(operation.body)}}
        if operation.raw_body:
            content[LINES_TYPE] = {}
        described["requestBody"] = {"required": not operation.raw_body, "content": content}
    return described


def _parameters(operation: Operation) -> list[Document]:
    found: list[Document] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"{(\w+)}", operation.path)
    ]
    schema = operation.query.model_json_schema()
    for name, about in schema["properties"].items() if "properties" in schema else ():
        found.append(_query(name, about, schema))
    found += [{"$ref": f"#/components/parameters/{_slug(name)}"} for name in HEADERS]
    if operation.session_header:
        about = {"type": "string", "minLength": 1, "maxLength": NAME_MOST, "pattern": r"\S"}
        found.append({"name": "X-Session-Id", "in": "header", "required": True, "schema": about})
    return found


def _query(name: str, about: Document, schema: Document) -> Document:
    shape = {key: value for key, value in about.items() if key not in ("title", "description", "default", "anyOf")}
    for choice in about.get("anyOf", ()):
        if choice != {"type": "null"}:
            shape |= choice
    if "$ref" in shape:
        shape = dict(schema["$defs"][shape["$ref"].rsplit("/", 1)[1]])
        shape.pop("description", None)
        shape.pop("title", None)
    required = bool(shape.pop(NEEDED, False)) or name in schema.get("required", ())
    if about.get("default") is not None:
        shape["default"] = about["default"]
    if "enum" in shape and shape.get("default") not in shape["enum"]:
        shape.pop("default", None)
    described: Document = {"name": name, "in": "query", "required": required, "schema": shape}
    text = about.get("description") or shape.pop("description", None)
    return {**described, "description": text} if text else described


def _header(name: str, text: str) -> Document:
    schema = {"type": "string", "maxLength": NAME_MOST}
    return {"name": name, "in": "header", "required": False, "description": text, "schema": schema}


def _responses(operation: Operation) -> Document:
    found: Document = {}
    for status, answer in operation.answers.items():
        if isinstance(answer, str):
            shape: Document = {"schema": {"type": "string"}} if answer == TEXT_TYPE else {}
            found[str(status)] = _reply(REPLIES[status], shape, answer)
        else:
            found[str(status)] = _reply(REPLIES.get(status) or USUAL[status], {"schema": _reference(answer)})
    for status, text in USUAL.items():
        found.setdefault(str(status), _reply(text, {"schema": _reference(Error)}))
    return found


def _reply(text: str, shape: Document, media_type: str = JSON_TYPE) -> Document:
    return {"description": text, "content": {media_type: shape}}


def _reference(model: type[BaseModel]) -> dict[str, Any]:
    return {"$ref": REFERENCE.format(model=model.__name__)}


def _slug(text: str) -> str:
    return re.sub(r"\W+", "_", text).strip("_").lower()
