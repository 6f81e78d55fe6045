"""Refusals are OpenAI-shaped documents, whatever they quote."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import BadRequest, GatewayError, NotFound


@given(st.text(st.characters(), max_size=30), st.none() | st.text(max_size=10))
def test_any_message_makes_a_document(message: str, param: str | None) -> None:
    error = json.loads(BadRequest(message, param=param).body())
    assert set(error) == {"error"}
    assert set(error["error"]) == {"message", "type", "param", "code"}
    assert error["error"]["param"] == param


def test_a_lone_surrogate_in_a_models_name_is_quoted_as_a_question_mark() -> None:
    error = NotFound("The model '\ud800x' does not exist.")
    assert json.loads(error.body())["error"]["message"] == "The model '?x' does not exist."
    assert error.status == 404


def test_the_general_error_is_a_500() -> None:
    assert GatewayError("x").status == 500
    assert json.loads(GatewayError("x").body())["error"]["type"] == "gateway_error"
