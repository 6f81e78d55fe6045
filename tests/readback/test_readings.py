"""What was read comes back in its place, for the reply that it led to and for no other."""

from __future__ import annotations

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.conversation import Conversation, Reading, Record
from gateway.forms import TOOL_NAME
from gateway.message import Messages, chain
from gateway.readback.readings import READINGS_KEPT, reading_digest, with_reading, with_readings
from gateway.tokens.fast import message_tokens
from gateway.turn import Item
from tests.support.builders import Message, assistant, check_pairs, tool, tool_call, user

MESSAGES = Messages(message_tokens, 0)
CLIENT = [user("go"), assistant(None, tool_call("c0")), tool("c0", "cut"), assistant("It is fine."), user("more")]


def items_of(messages: list[Message]) -> list[Item]:
    """As a request is read."""
    at, found = b"\0" * 16, []
    for data in messages:
        message = MESSAGES.make(data)
        at = chain(at, message.facts.identity)
        found.append(Item(at, message, message))
    return found


def text(message: Message) -> str:
    """As it is kept."""
    return orjson.dumps(message).decode()


def own(name: str) -> tuple[str, str]:
    """A round of the gateway's."""
    return text(assistant("Let me look.", tool_call(name, TOOL_NAME))), text(tool(name, f"lines for {name}"))


def reading(*names: str, reply: str = "It is fine.", said: str = "") -> Reading:
    """Rounds before a reply of text alone."""
    return Reading(tuple(part for name in names for part in own(name)), said, reading_digest(said + reply))


def put_back(messages: list[Message], at: int, *readings: Reading, start: int = 0) -> list[Item]:
    """The items of a conversation with readings after message `at`."""
    items = items_of(messages)
    conversation = Conversation("t", "s")
    conversation.records[items[at].chain] = Record(readings=readings)
    return with_readings(MESSAGES, conversation, items, start)


def data(items: list[Item]) -> list[Message]:
    """Their messages."""
    return [item.sent.data for item in items]


def test_rounds_stand_before_the_reply() -> None:
    got = put_back(CLIENT, 2, reading("o1", "o2"))
    rounds = [orjson.loads(part) for name in ("o1", "o2") for part in own(name)]
    assert data(got) == [*CLIENT[:3], *rounds, *CLIENT[3:]]
    assert check_pairs(data(got)) == []
    assert [item.own for item in got] == [False] * 3 + [True] * 4 + [False] * 2
    assert len({item.chain for item in got}) == len(got)
    assert [item.chain for item in got if not item.own] == [item.chain for item in items_of(CLIENT)]


def test_the_reply_is_known_by_its_text_and_loses_what_was_said_before() -> None:
    one, two = reading("o1", reply="A."), reading("o2", reply="B.", said="Hm.\n\n")
    told = [*CLIENT[:3], assistant("Hm.\n\nB.\n"), user("x")]
    got = put_back(told, 2, one, two)
    assert [m.get("tool_call_id") for m in data(got)[3:5]] == [None, "o2"]
    assert got[5].sent.data == assistant("B.\n")
    assert got[5].client is not None
    assert got[5].client.data == told[3]
    parts = [{"type": "text", "text": "Hm.\n\nB."}]
    got = put_back([*CLIENT[:3], {"role": "assistant", "content": parts}, user("x")], 2, one, two)
    assert got[5].sent.data["content"] == [{"type": "text", "text": "B."}]


def test_another_reply_gets_the_first_reading_and_other_calls_none() -> None:
    assert len(put_back([*CLIENT[:3], assistant("Edited."), user("x")], 2, reading("o1"))) == 7
    calling = [*CLIENT[:3], assistant(None, tool_call("c9")), tool("c9", "r")]
    assert data(put_back(calling, 2, reading("o1"))) == calling
    assert data(put_back(CLIENT[:3], 2, reading("o1"))) == CLIENT[:3]
    assert data(put_back([*CLIENT[:3], user("no reply")], 2, reading("o1"))) == [*CLIENT[:3], user("no reply")]


@settings(max_examples=100)
@given(st.lists(st.booleans(), min_size=2, max_size=6).filter(lambda made: True in made and False in made), st.data())
def test_calls_beside_the_clients_come_back_in_order(mine: list[bool], draw: st.DataObject) -> None:
    calls = [tool_call(f"x{place}", TOOL_NAME if own_one else "run") for place, own_one in enumerate(mine)]
    theirs = [call for call, own_one in zip(calls, mine, strict=True) if not own_one]
    beside = tuple(
        (place, text(call), text(tool(call["id"], "read"))) for place, call in enumerate(calls) if mine[place]
    )
    made = Reading((), "", reading_digest(""), tuple(call["id"] for call in theirs), beside)
    results = draw.draw(st.permutations([tool(call["id"], "ok") for call in theirs]))
    told = [*CLIENT[:3], assistant(None, *theirs), *results, user("next")]
    got = put_back(told, 2, made, start=draw.draw(st.sampled_from([0, 2])))
    assert data(got)[3]["tool_calls"] == calls
    assert check_pairs(data(got)) == []
    assert [m for item, m in zip(got, data(got), strict=True) if not item.own and item.client is None] == [
        *told[:3],
        *results,
        told[-1],
    ]
    if list(results) == [tool(call["id"], "ok") for call in theirs]:
        assert [m["tool_call_id"] for m in data(got)[4:-1]] == [call["id"] for call in calls]


def test_readings_are_never_changed_and_bounded() -> None:
    kept: tuple[Reading, ...] = ()
    for number in range(READINGS_KEPT + 5):
        before = kept
        kept = with_reading(kept, reading("o", reply=f"reply {number}"))
        assert kept[: len(before)] == before
    assert len(kept) == READINGS_KEPT
    assert with_reading(kept[:1], reading("other", reply="reply 0")) == kept[:1]


def test_records_are_stored_whole() -> None:
    made = Reading(own("o1"), "Hm.", "d" * 8, ("c1", ""), ((0, "{}", "{}"), (2, '{"a":"ü"}', "{}")))
    record = Record(spilled=True, readings=(made, reading("o2")))
    assert Record.from_bytes(record.to_bytes()) == record
    assert Record.from_bytes(b'{"level":0}') == Record()
