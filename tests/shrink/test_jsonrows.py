from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.shrink.jsonrows import fold_json, unfold_json
from tests.shrink.data import json_documents, tool_results

_scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
)
_keys = st.sampled_from(["a", "b", "c.d", "columns", "rows", "groups", "same", "price"]) | st.text(max_size=4)
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_keys, inner, max_size=4), max_leaves=20
)
_row = st.fixed_dictionaries({"id": st.integers(0, 9), "kind": st.sampled_from(["x", "y"]), "price": _values})
_tables = st.lists(_row, min_size=2, max_size=5)


def _exact(text: str) -> Any:
    """The JSON value with its numbers as text, so that 1, 1.0 and 1e0 differ."""
    return json.loads(text, parse_int=lambda s: ("n", s), parse_float=lambda s: ("n", s))


def test_uniform_objects_become_header_and_rows() -> None:
    assert fold_json('[{"id": 1, "kind": "xy"}, {"id": 2, "kind": "xy"}, {"id": 3, "kind": "z"}]') == (
        '{"columns":["id","kind"],"rows":[[1,"xy"],[2,"xy"],[3,"z"]]}'
    )


def test_constant_columns_are_said_once_and_nested_objects_flattened() -> None:
    flights = [{"from": "JFK", "seats": {"economy": n, "business": 2 * n}, "status": "available"} for n in (3, 5, 8)]
    folded = fold_json(json.dumps(flights))
    assert folded == (
        '{"same":{"from":"JFK","status":"available"},"columns":["seats.economy","seats.business"],'
        '"rows":[[3,6],[5,10],[8,16]]}'
    )


def test_objects_by_name_and_lists_of_lists() -> None:
    by_name = {f"HAT00{n}": {"cabin": "economy", "price": n} for n in range(4)}
    folded = fold_json(json.dumps(by_name))
    assert folded is not None and '"rows":{"HAT000":[0]' in folded
    assert json.loads(unfold_json(folded)) == by_name
    groups = [[{"number": "a", "date": 1}, {"number": "b", "date": 2}], [{"number": "c", "date": 3}]]
    folded = fold_json(json.dumps(groups))
    assert folded == '{"columns":["number","date"],"groups":[[["a",1],["b",2]],[["c",3]]]}'
    assert json.loads(unfold_json(folded)) == groups


@pytest.mark.parametrize(
    "text",
    [
        "[1.0, 1.10, 1e5, -0, 12345678901234567890123, 0.1e-7, 1E+2]",
        '{"a": "\\u00e9\\n\\"\\\\", "b": "\\ud800", "c": "中文"}',
        '[{"price": 1.10, "q": 1}, {"price": 1.20, "q": 1.0}, {"price": 1.20, "q": 1}]',
    ],
)
def test_numbers_keep_their_text_and_strings_their_value(text: str) -> None:
    folded = fold_json(text)
    assert folded is not None
    assert _exact(unfold_json(folded)) == _exact(text)
    folded.encode()  # a lone surrogate must stay escaped


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 2}', "12", '"text"', "{broken", "", "[1, 2", '{"x": "\\u0000#1"}', "[" * 5_000]
)
def test_what_cannot_be_written_again_is_refused(text: str) -> None:
    assert fold_json(text) is None


def test_a_document_with_such_tables_of_its_own_gets_none() -> None:
    text = '{"mine": {"columns": ["a"], "rows": [[1]]}, "list": [{"a": 1, "bbbbbbbbb": 2}, {"a": 3, "bbbbbbbbb": 4}]}'
    assert fold_json(text) == json.dumps(json.loads(text), separators=(",", ":"))


@settings(max_examples=200)
@given(
    _values | _tables | st.lists(_tables, min_size=1, max_size=3) | st.dictionaries(_keys, _row, min_size=2, max_size=4)
)
def test_folding_reverses_exactly_and_is_idempotent(value: Any) -> None:
    text = json.dumps(value)
    folded = fold_json(text)
    if folded is None:
        return
    json.loads(folded)
    if '"columns"' not in text:  # a document that holds such tables itself isn't folded, so not unfolded either
        assert _exact(unfold_json(folded)) == _exact(text)
    assert fold_json(folded) == folded


def test_recorded_documents_reverse_exactly() -> None:
    for name, text in json_documents():
        folded = fold_json(text.strip())
        assert folded is not None, name
        assert _exact(unfold_json(folded)) == _exact(text), name
        assert len(folded) < len(text), name


def test_recorded_tool_results_reverse_exactly() -> None:
    texts = [
        result for calls in tool_results("tau_bench_airline") for _, _, result in calls if result[:1] in ("{", "[")
    ]
    assert len(texts) > 100
    for text in texts:
        folded = fold_json(text)
        assert folded is not None
        assert _exact(unfold_json(folded)) == _exact(text)
