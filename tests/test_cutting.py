"""Places to cut: safe on both sides, and what must stay word for word stays."""

from __future__ import annotations

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.cutting import place_at, places
from gateway.message import Messages
from gateway.tokens import fast
from tests.support.builders import Message, check_pairs, conversations
from tests.test_pipeline_properties import verbatim

reader = Messages(fast.message_tokens)


@settings(max_examples=120)
@given(conversations(), st.integers(1, 5))
def test_every_place_is_safe_and_keeps_what_must_stay(messages: list[Message], rounds: int) -> None:
    facts = [reader.read(orjson.dumps(message)).facts for message in messages]
    found = places(facts, rounds)
    assert [place.at for place in found] == sorted({place.at for place in found})
    for place in found:
        left = [messages[index] for index in (*place.before, *place.after, *range(place.at, len(messages)))]
        assert check_pairs(left) == []
        assert len(left) < len(messages)
        assert all(message in left for message in verbatim(messages))
        assert place == place_at(facts, place.at)


@settings(max_examples=80)
@given(conversations(), st.data())
def test_a_new_cut_lies_past_the_last_one(messages: list[Message], data: st.DataObject) -> None:
    facts = [reader.read(orjson.dumps(message)).facts for message in messages]
    since = data.draw(st.integers(0, len(messages)))
    assert all(place.at > since for place in places(facts, 3, since))
