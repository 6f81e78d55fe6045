"""Whose call is it: whole messages, and streams in any order and any pieces."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.forms import TOOL_NAME
from gateway.readback.calls import CallRouter, parted
from tests.support.builders import tool_call

NAMES = ["read", "run", "r", "read_spilled_output_v2", TOOL_NAME]
CLIENT = frozenset(NAMES[:2])


def entries_of(index: int | None, call: dict[str, Any], cuts: list[int]) -> list[dict[str, Any]]:
    """A call as stream entries: named first, its arguments cut at `cuts`."""
    function = call["function"]
    text: str = function["arguments"]
    ends = [*sorted(cut for cut in cuts if 0 < cut < len(text)), len(text)]
    first: dict[str, Any] = {
        "id": call["id"],
        "type": "function",
        "function": {"name": function["name"], "arguments": ""},
    }
    rest = [{"function": {"arguments": text[a:b]}} for a, b in zip([0, *ends], ends, strict=False) if a < b]
    numbered = [] if index is None else [("index", index)]
    return [{**dict(numbered), **entry} for entry in [first, *rest]]


calls = st.lists(
    st.tuples(st.sampled_from(NAMES), st.dictionaries(st.sampled_from("ab"), st.text(max_size=9), max_size=2)),
    max_size=5,
).map(
    lambda made: [
        tool_call(f"id_{number}", name, orjson.dumps(arguments).decode())
        for number, (name, arguments) in enumerate(made)
    ]
)


@settings(max_examples=200)
@given(calls, st.lists(st.integers(1, 12), max_size=3), st.booleans())
def test_a_stream_comes_apart(made: list[dict[str, Any]], cuts: list[int], numbered: bool) -> None:
    router = CallRouter(CLIENT)
    got: list[dict[str, Any]] = []
    for place, call in enumerate(made):
        for entry in entries_of(place if numbered else None, call, cuts):
            if not numbered and "id" not in entry:
                entry["id"] = call["id"]
            got += router.route([entry])
    got += router.settle()
    own = [call for call in made if call["function"]["name"] == TOOL_NAME]
    theirs = [call for call in made if call["function"]["name"] != TOOL_NAME]
    assert [one.call for one in router.own()] == own
    assert [one.place for one in router.own()] == [made.index(call) for call in own]
    assert router.client_ids() == tuple(call["id"] for call in theirs)
    seen: dict[str, str] = {}
    order: list[str] = []
    for entry in got:
        if entry.get("type"):
            order.append(entry["id"])
        seen[order[-1]] = seen.get(order[-1], "") + entry["function"]["arguments"]
        if own and numbered:
            assert entry["index"] == len(order) - 1
    assert order == [call["id"] for call in theirs]
    assert seen == {call["id"]: call["function"]["arguments"] for call in theirs}
    assert (parted({"tool_calls": made})[1], len(parted({"tool_calls": made})[0])) == (theirs, len(own))


def test_interleaved_calls_keep_their_numbers() -> None:
    router = CallRouter(CLIENT)
    mine, first, second = tool_call("o", TOOL_NAME, "{}"), tool_call("a", "run", '{"x":1}'), tool_call("b", "run", "{}")
    parts = [entries_of(0, mine, [1]), entries_of(1, first, [3]), entries_of(2, second, [1])]
    mixed = [part[number] for number in range(3) for part in parts]
    got = router.route(mixed)
    assert [(entry["index"], entry.get("id")) for entry in got] == [
        (0, "a"),
        (1, "b"),
        (0, None),
        (1, None),
        (0, None),
        (1, None),
    ]
    assert [entry["function"]["arguments"] for entry in got if entry["index"] == 0] == ["", '{"x', '":1}']


def test_a_known_name_is_not_held_back() -> None:
    router = CallRouter(CLIENT)
    entry = {"index": 0, "id": "a", "type": "function", "function": {"name": "read", "arguments": ""}}
    assert router.route([entry]) == [entry]


@pytest.mark.parametrize(
    ("names", "mine"),
    [(["", TOOL_NAME], True), (["read_", "spilled_output"], True), (["read_", "file"], False), (["", "run"], False)],
)
def test_names_that_come_in_pieces(names: list[str], mine: bool) -> None:
    router = CallRouter(frozenset())
    got = []
    for number, name in enumerate(names):
        head = {"id": "a", "type": "function"} if not number else {}
        got += router.route([{"index": 0, **head, "function": {"name": name, "arguments": ""}}])
        assert got == [] or number == len(names) - 1
    assert router.has_own is mine
    assert bool(got) is not mine


def test_extra_fields_of_a_call_are_kept_and_an_id_is_made() -> None:
    signature = {"google": {"thought_signature": "abc"}}
    router = CallRouter(frozenset())
    function = {"name": TOOL_NAME, "arguments": "{}"}
    assert (
        router.route([{"index": 0, "id": "", "type": "function", "function": function, "extra_content": signature}])
        == []
    )
    (own,) = router.own()
    assert own.call["extra_content"] == signature
    assert own.id.startswith("call_")
    assert own.call["function"] == function
