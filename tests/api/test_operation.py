"""Routing by segments, and what a query string may say."""

from __future__ import annotations

import pytest

from gateway.api.models import FactsQuery, PageQuery, SearchQuery
from gateway.api.operation import Answered, Asked, MethodNotAllowed, Operation, answer, find, read_query
from gateway.errors import BadRequest, NotFound


async def _run(_: Asked) -> Answered:
    return answer({})


def operation(method: str, path: str) -> Operation:
    return Operation(method, path, _run, "", {})


TABLE = [
    operation("GET", "/facts"),
    operation("POST", "/facts"),
    operation("GET", "/facts/{id}"),
    operation("GET", "/facts/newest"),
    operation("GET", "/sessions/{session}/notes"),
    operation("DELETE", ""),
]


@pytest.mark.parametrize(
    ("method", "path", "wanted", "values"),
    [
        ("GET", b"/v1/memory/facts", "/facts", {}),
        ("POST", b"/v1/memory/facts", "/facts", {}),
        ("HEAD", b"/v1/memory/facts", "/facts", {}),
        ("GET", b"/v1/memory/facts?limit=3", "/facts", {}),
        ("GET", b"/v1/memory/facts/a%2Fb", "/facts/{id}", {"id": "a/b"}),
        ("GET", b"/v1/memory/facts/%E6%9D%8E", "/facts/{id}", {"id": "李"}),
        ("GET", b"/v1/memory/facts/newest", "/facts/newest", {}),
        ("GET", b"/v1/memory/sessions/..%2F..%2Fchat/notes", "/sessions/{session}/notes", {"session": "../../chat"}),
        ("DELETE", b"/v1/memory", "", {}),
        ("DELETE", b"/v1/memory/", "", {}),
    ],
)
def test_paths(method: str, path: bytes, wanted: str, values: dict[str, str]) -> None:
    found, named = find(TABLE, method, path)
    assert (found.path, named) == (wanted, values)


@pytest.mark.parametrize(
    "path",
    [
        b"/v1/memory/nothing",
        b"/v1/memory/facts/a/b",
        b"/v1/memory//facts",
        b"/v1/memory%2Ffacts",
        b"/v1/memory/FACTS",
        b"/v1/memory/facts/%ff",
        b"/v1/memory/sessions//notes",
    ],
)
def test_unknown_paths(path: bytes) -> None:
    with pytest.raises(NotFound):
        find(TABLE, "GET", path)


def test_a_wrong_method_names_the_right_ones() -> None:
    with pytest.raises(MethodNotAllowed) as caught:
        find(TABLE, "PATCH", b"/v1/memory/facts")
    assert caught.value.status == 405
    assert caught.value.headers["allow"] == "GET, HEAD, POST"


def test_queries_are_read() -> None:
    query = read_query(FactsQuery, b"limit=7&history=true&project=a%20b&type=FACT&cursor=12")
    assert isinstance(query, FactsQuery)
    assert (query.limit, query.history, query.project, query.type, query.cursor) == (7, True, "a b", "FACT", "12")
    assert isinstance(read_query(PageQuery, b""), PageQuery)


@pytest.mark.parametrize(
    ("query", "param"),
    [
        (b"limt=1", "limt"),
        (b"limit=0", "limit"),
        (b"limit=501", "limit"),
        (b"limit=1.0", "limit"),
        (b"limit=+1", "limit"),
        (b"limit=", "limit"),
        (b"limit=1&limit=2", "limit"),
        (b"history=yes", "history"),
        (b"history=1", "history"),
        (b"type=fact", "type"),
        (b"cursor=abc", "cursor"),
        (b"cursor=-1", "cursor"),
        (b"scope=all", "scope"),
        (b"project=" + b"x" * 257, "project"),
        (b"project=%ff", "query"),
    ],
)
def test_wrong_queries_name_the_parameter(query: bytes, param: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read_query(FactsQuery, query)
    assert caught.value.param == param


def test_a_search_needs_its_query() -> None:
    with pytest.raises(BadRequest) as caught:
        read_query(SearchQuery, b"limit=1")
    assert caught.value.param == "q"
