"""Cutting and splicing a request's bytes: arbitrary JSON comes apart and together again without a byte changed."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.body import ChatBody, decode, encode, with_field
from gateway.errors import BadRequest

space = st.sampled_from(["", "", "", " ", "\n  ", "\t", " \r\n "])
strings = st.one_of(
    st.text(max_size=12).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.text(max_size=12).map(json.dumps),
    st.sampled_from(['"\\ud800"', '"\\udfff\\ud800x"', '"\\u0041\\/"', '"a,\\"b\\":[1]}"', '"messages"', '""']),
)
numbers = st.one_of(
    st.integers().map(str), st.sampled_from(["-0", "1.0", "1.10", "1E5", "-2.5e-3", "9" * 40, "-" + "8" * 25])
)
scalars = st.one_of(strings, numbers, st.sampled_from(["true", "false", "null", "NaN", "-Infinity", "1e999"]))


def _array(items: list[str], gap: str) -> str:
    return "[" + gap + ",".join(f"{gap}{item}{gap}" for item in items) + "]"


def _object(pairs: list[tuple[str, str]], gap: str) -> str:
    return "{" + gap + ",".join(f"{gap}{key}{gap}:{gap}{value}{gap}" for key, value in pairs) + "}"


values = st.recursive(
    scalars,
    lambda inner: (
        st.builds(_array, st.lists(inner, max_size=3), space)
        | st.builds(_object, st.lists(st.tuples(strings, inner), max_size=3), space)
    ),
    max_leaves=8,
)
"""JSON texts, written as no serialiser would: any white space, number form and escape, duplicate keys."""
objects = st.builds(_object, st.lists(st.tuples(strings, values), max_size=3), space)
FIELD_NAMES = ["model", "stream", "tools", "temperature", "metadata", "message", "Messages", "x_näme", "a\\u0062"]


@dataclass
class Written:
    """A body by its parts: `fields` are [what stands before the value, the value] of each key, as text."""

    fields: list[list[str]]
    keys: list[str]
    leads: list[str]
    messages: list[str]
    close: str
    tail: str

    @property
    def raw(self) -> bytes:
        return ("".join(lead + value for lead, value in self.fields) + self.tail).encode()


@st.composite
def bodies(draw: st.DrawFn, unique: bool = False) -> Written:
    """A body with `messages` somewhere among its fields; the last of several `messages` is the one that counts."""
    keys = draw(st.lists(st.sampled_from(FIELD_NAMES), max_size=5, unique=unique))
    keys.insert(draw(st.integers(0, len(keys))), "messages")
    if not unique and draw(st.booleans()):
        keys.insert(0, draw(st.sampled_from(["messages", "mess\\u0061ges"])))
    last = max(index for index, key in enumerate(keys) if json.loads(f'"{key}"') == "messages")
    messages = draw(st.lists(objects, min_size=1, max_size=4))
    leads = [f"{'[' if index == 0 else draw(space) + ','}{draw(space)}" for index in range(len(messages))]
    close = draw(space) + "]"
    array = "".join(lead + message for lead, message in zip(leads, messages, strict=True)) + close
    fields = []
    for index, key in enumerate(keys):
        lead = f'{draw(space)}{"," if index else "{"}{draw(space)}"{key}"{draw(space)}:{draw(space)}'
        fields.append([lead, array if index == last else draw(values)])
    return Written(fields, keys, leads, messages, close, f"{draw(space)}}}{draw(space)}")


@settings(max_examples=150)
@given(bodies())
def test_every_body_is_cut_where_it_was_put_together(written: Written) -> None:
    body = ChatBody.parse(written.raw)
    assert [[piece.lead.decode(), piece.value.decode()] for piece in body.fields] == written.fields
    assert [piece.name for piece in body.fields] == [json.loads(f'"{key}"') for key in written.keys]
    assert body.tail.decode() == written.tail
    assert [lead.decode() for lead in body.leads] == written.leads
    assert [message.decode() for message in body.messages] == written.messages
    assert body.close.decode() == written.close
    assert body.rebuild() == written.raw
    assert body.rebuild(body.messages, {}) == written.raw


@settings(max_examples=80)
@given(bodies(unique=True), st.data())
def test_a_change_touches_its_own_field_only(written: Written, data: st.DataObject) -> None:
    body = ChatBody.parse(written.raw)
    at = data.draw(st.integers(0, len(written.fields) - 1))
    name = json.loads(f'"{written.keys[at]}"')
    expected = Written([list(pair) for pair in written.fields], [], [], [], "", written.tail)
    expected.fields[at][1] = '{"new":[1]}'
    assert body.rebuild(changes={name: b'{"new":[1]}'}) == expected.raw
    grown = body.rebuild(changes={"x_new": b"7"})
    assert grown == written.raw[: len(written.raw) - len(written.tail.encode())] + b',"x_new":7' + written.tail.encode()


@settings(max_examples=80)
@given(bodies(), st.data())
def test_fields_taken_out_leave_the_others_as_written(written: Written, data: st.DataObject) -> None:
    body = ChatBody.parse(written.raw)
    names = [json.loads(f'"{key}"') for key in written.keys]
    others = sorted(set(names) - {"messages"})
    gone = data.draw(st.sets(st.sampled_from(others))) if others else set()
    pairs = json.loads(body.rebuild(changes=dict.fromkeys(gone)), object_pairs_hook=list, parse_constant=str)
    last = {name: index for index, name in enumerate(names)}
    stay = [index for index, name in enumerate(names) if not (name in gone and last[name] == index)]
    expected = [
        [names[index], json.loads(written.fields[index][1], object_pairs_hook=list, parse_constant=str)]
        for index in stay
    ]
    assert [list(pair) for pair in pairs] == expected


@settings(max_examples=80)
@given(bodies(), st.lists(objects, min_size=1, max_size=5))
def test_other_messages_take_the_place_of_the_old(written: Written, messages: list[str]) -> None:
    body = ChatBody.parse(written.raw)
    made = body.rebuild([message.encode() for message in messages])
    again = ChatBody.parse(made)
    assert [message.decode() for message in again.messages] == messages
    effective = max(index for index, piece in enumerate(body.fields) if piece.name == "messages")
    for index, (before, after) in enumerate(zip(body.fields, again.fields, strict=True)):
        assert before.lead == after.lead
        assert index == effective or before.value == after.value
    assert again.tail == body.tail


def test_a_byte_order_mark_is_read_over_and_passes_through() -> None:
    raw = b'\xef\xbb\xbf{"model":"m","messages":[{"role":"user"}]}'
    body = ChatBody.parse(raw)
    assert body.get("model") == "m"
    assert body.rebuild() == raw
    assert body.rebuild(changes={"model": b'"n"'}) == b'{"model":"n","messages":[{"role":"user"}]}'


def test_nested_messages_are_not_the_messages() -> None:
    raw = b'{"metadata":{"messages":[1]},"tools":[{"messages":"x"}],"messages":[{"role":"user","messages":[{}]}]}'
    body = ChatBody.parse(raw)
    assert body.messages == [b'{"role":"user","messages":[{}]}']
    assert body.get("metadata") == {"messages": [1]}
    assert body.raw_field("tools") == b'[{"messages":"x"}]'
    assert body.raw_field("absent") == b""
    assert body.get("absent") is None


def test_null_is_written_and_absent_is_not() -> None:
    body = ChatBody.parse(b'{"stop":null,"messages":[{}]}')
    assert body.has("stop")
    assert body.get("stop") is None
    assert not body.has("n")


MALFORMED = [
    (b"", None, None),
    (b" \r\n\t", None, None),
    (b'{"messages":[{}]', "invalid_json", None),
    (b'{"messages":[{}]}}', "invalid_json", None),
    (b'{"messages":[{}],}', "invalid_json", None),
    (b"{'messages':[{}]}", "invalid_json", None),
    (b'{"messages" [{}]}', "invalid_json", None),
    (b'{"messages":[{} {}]}', "invalid_json", None),
    (b'{"messages":[{"a":"\x01"}]}', "invalid_json", None),
    (b'{"messages":[{"a":01}]}', "invalid_json", None),
    (b'{"messages":[{"a":tru}]}', "invalid_json", None),
    (b'{"messages":[{"a":"\\x"}]}', "invalid_json", None),
    (b'{"messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "invalid_json", None),
    (b'{"messages":[{"a":"\xff"}]}', "invalid_utf8", None),
    (b'{"messages":[{"a":"\xed\xa0\x80"}]}', "invalid_utf8", None),
    (b'{"messages":[{"a":"\xc3', "invalid_utf8", None),
    ('{"messages":[{}]}'.encode("utf-16"), "invalid_utf8", None),
    (b"[1]", "invalid_type", None),
    (b'"messages"', "invalid_type", None),
    (b"7", "invalid_type", None),
    (b"null", "invalid_type", None),
    (b"{}", "missing_required_parameter", "messages"),
    (b'{"model":"m"}', "missing_required_parameter", "messages"),
    (b'{"messages":null}', "invalid_type", "messages"),
    (b'{"messages":"hi"}', "invalid_type", "messages"),
    (b'{"messages":{"role":"user"}}', "invalid_type", "messages"),
    (b'{"messages":[{}],"messages":7}', "invalid_type", "messages"),
    (b'{"messages":[]}', "empty_array", "messages"),
    (b'{"messages":[ ]}', "empty_array", "messages"),
    (b'{"messages":[{}, "hi"]}', "invalid_type", "messages[1]"),
    (b'{"messages":[null]}', "invalid_type", "messages[0]"),
    (b'{"messages":[{},{},[{}]]}', "invalid_type", "messages[2]"),
]


@pytest.mark.parametrize(("raw", "code", "param"), MALFORMED)
def test_malformed_bodies_are_refused_by_name(raw: bytes, code: str | None, param: str | None) -> None:
    with pytest.raises(BadRequest) as caught:
        ChatBody.parse(raw)
    assert (caught.value.code, caught.value.param) == (code, param)
    error = json.loads(caught.value.body())["error"]
    assert error["type"] == "invalid_request_error"
    assert error["message"]


@given(st.binary(max_size=80) | st.text(alphabet='{}[]":,\\ mesag01tru\n', max_size=60).map(str.encode))
def test_nothing_but_a_refusal_comes_of_garbage(raw: bytes) -> None:
    try:
        body = ChatBody.parse(raw)
    except BadRequest:
        return
    assert "messages" in json.loads(raw)
    assert body.rebuild() == raw


def test_nesting_near_the_recursion_limit_is_read_or_refused() -> None:
    for depth in range(sys.getrecursionlimit() - 150, sys.getrecursionlimit() + 150, 7):
        raw = b'{"tools":' + b"[" * depth + b"]" * depth + b',"messages":[{}]}'
        try:
            body = ChatBody.parse(raw)
        except BadRequest:
            continue
        assert body.rebuild() == raw
        assert isinstance(body.get("tools"), list)


def test_integers_of_any_size_survive_decoding_and_encoding() -> None:
    raw = b'{"a":18446744073709551616,"b":-9223372036854775809,"c":123456789012345678901234567890}'
    assert encode(decode(raw)) == raw


@given(st.text(max_size=20), st.text(alphabet="\udfffa", max_size=4))
def test_texts_survive_encoding_even_with_lone_surrogates(text: str, broken: str) -> None:
    assert json.loads(encode({"t": text, "b": broken})) == {"t": text, "b": broken}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"{}", b'{"n":1}'),
        (b"{ } \n", b'{ "n":1}'),
        (b'{"a":{}}', b'{"a":{},"n":1}'),
        (b'{"a":{ }\n}\n', b'{"a":{ }\n,"n":1}'),
    ],
)
def test_a_field_is_put_at_the_end(raw: bytes, expected: bytes) -> None:
    assert with_field(raw, "n", b"1") == expected
    assert json.loads(expected)["n"] == 1
