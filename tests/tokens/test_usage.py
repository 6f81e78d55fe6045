"""Counts against what OpenAI really charged, from recorded requests in public test suites.

`usage.prompt_tokens` values come from pydantic-ai's cassettes (tests/models/cassettes/test_openai:
multiple_agent_tool_calls, openai_native_output, openai_native_output_multiple, openai_instructions_with_tool_calls)
and, for gpt-3.5, from hmarr/openai-chat-tokens (tests/token-counts.test.ts); both MIT.
"""

from __future__ import annotations

from typing import Any

import pytest

from gateway.tokens.fast import message_tokens, request_overhead_tokens
from gateway.tokens.precise import Precise


@pytest.fixture(scope="module")
def precise() -> Precise:
    loaded = Precise()
    assert loaded.load("o200k_base") and loaded.load("cl100k_base")
    return loaded


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def called(name: str, arguments: str, result: str) -> list[dict[str, Any]]:
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": result},
    ]


def schema(**properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "additionalProperties": False,
        "properties": properties,
        "required": list(properties),
        "type": "object",
    }


def tool(name: str, parameters: dict[str, Any], description: str = "") -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


STRING = {"type": "string"}
CAPITAL = [
    tool(
        "get_capital",
        schema(country={"description": "The country name.", "type": "string"}),
        "Get the capital of a country.",
    )
]
COUNTRY = [tool("get_user_country", {"type": "object", "properties": {}, "additionalProperties": False})]
LOCATION = schema(city=STRING, country=STRING)
LANGUAGE = schema(country=STRING, language=STRING)
EITHER = schema(
    result={
        "anyOf": [
            schema(kind={"const": "CityLocation", "type": "string"}, data=LOCATION),
            schema(kind={"const": "CountryLanguage", "type": "string"}, data=LANGUAGE),
        ]
    }
)


def reply(name: str, wanted: dict[str, Any], **more: str) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": name, "schema": wanted, "strict": True, **more}}


FRANCE = [
    user("What is the capital of France?"),
    *called("get_capital", '{"country":"France"}', "Paris"),
    {"role": "assistant", "content": "The capital of France is Paris."},
    user("What is the capital of England?"),
]
CITY = [user("What is the largest city in the user country?")]
MEXICO = [*CITY, *called("get_user_country", "{}", "Mexico")]
LOCATED = {"tools": COUNTRY, "response_format": reply("CityLocation", LOCATION, description="A city and its country.")}
TOKYO = [{"role": "system", "content": "You are a helpful assistant."}, user("What is the temperature in Tokyo?")]
TEMPERATURE = [tool("get_temperature", schema(city=STRING))]

RECORDED: list[tuple[str, list[dict[str, Any]], dict[str, Any], int]] = [
    ("capital", FRANCE, {"tools": CAPITAL}, 104),
    ("capital, called", [*FRANCE, *called("get_capital", '{"country":"England"}', "London")], {"tools": CAPITAL}, 129),
    ("reply schema", CITY, LOCATED, 79),
    ("reply schema, called", MEXICO, LOCATED, 100),
    ("union schema", CITY, {"tools": COUNTRY, "response_format": reply("final_result", EITHER)}, 148),
    ("union schema, called", MEXICO, {"tools": COUNTRY, "response_format": reply("final_result", EITHER)}, 169),
    ("system and tools", TOKYO, {"tools": TEMPERATURE}, 50),
    (
        "system and tools, called",
        [*TOKYO, *called("get_temperature", '{"city":"Tokyo"}', "20.0")],
        {"tools": TEMPERATURE},
        75,
    ),
]


@pytest.mark.parametrize(
    ("messages", "fields", "charged"), [case[1:] for case in RECORDED], ids=[c[0] for c in RECORDED]
)
def test_within_two_tokens_of_what_was_charged(
    precise: Precise, messages: list[dict[str, Any]], fields: dict[str, Any], charged: int
) -> None:
    counts = [precise.message_tokens(message, "o200k_base") for message in messages]
    overhead = precise.request_overhead_tokens({**fields, "messages": messages}, "o200k_base")
    assert overhead is not None
    assert abs(sum(count or 0 for count in counts) + overhead - charged) <= 2


@pytest.mark.parametrize(
    ("messages", "fields", "charged"), [case[1:] for case in RECORDED], ids=[c[0] for c in RECORDED]
)
def test_the_fast_count_is_near_even_on_such_small_requests(
    messages: list[dict[str, Any]], fields: dict[str, Any], charged: int
) -> None:
    total = sum(map(message_tokens, messages)) + request_overhead_tokens({**fields, "messages": messages})
    assert 0.85 <= total / charged <= 1.25


RECIPE = {
    "type": "object",
    "required": ["ingredients", "instructions", "time_to_cook"],
    "properties": {
        "ingredients": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "unit", "amount"],
                "properties": {
                    "name": {"type": "string"},
                    "unit": {"enum": ["grams", "ml", "cups", "pieces", "teaspoons"], "type": "string"},
                    "amount": {"type": "number"},
                },
            },
        },
        "instructions": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Steps to prepare the recipe (no numbering)",
        },
        "time_to_cook": {"type": "number", "description": "Total time to prepare the recipe in minutes"},
    },
}
NESTED = {
    "type": "object",
    "properties": {
        "foo": {
            "type": "object",
            "properties": {"bar": {"type": "string", "enum": ["a", "b", "c"]}, "baz": {"type": "boolean"}},
        }
    },
}
FLAT = {
    "type": "object",
    "properties": {"foo": {"type": "string"}, "bar": {"type": "number", "description": "A number"}},
}


@pytest.mark.parametrize(
    ("functions", "charged"),
    [
        ([], 8),
        ([{"name": "foo", "parameters": {"type": "object", "properties": {}}}], 31),
        ([{"name": "foo", "description": "Do a foo", "parameters": {"type": "object", "properties": {}}}], 36),
        ([{"name": "bing_bong", "description": "Do a bing bong", "parameters": FLAT}], 57),
        ([{"name": "bing_bong", "description": "Do a bing bong", "parameters": NESTED}], 68),
        ([{"name": "get_recipe", "parameters": RECIPE}], 106),
    ],
)
def test_gpt_35_functions_within_three_tokens(precise: Precise, functions: list[dict[str, Any]], charged: int) -> None:
    message = precise.message_tokens(user("hello"), "cl100k_base")
    overhead = precise.request_overhead_tokens({"functions": functions}, "cl100k_base")
    assert message is not None and overhead is not None
    assert abs(message + overhead - charged) <= 3


def test_parallel_calls_pay_for_their_wrapper(precise: Precise) -> None:
    # pydantic-ai, test_temporal/test_complex_agent_run_in_workflow: the second request was charged 59 more.
    names = ("get_country", "get_product_name")
    calls = [{"id": n, "type": "function", "function": {"name": n, "arguments": "{}"}} for n in names]
    added = [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "get_country", "content": "Mexico"},
        {"role": "tool", "tool_call_id": "get_product_name", "content": "Pydantic AI"},
    ]
    assert sum(precise.message_tokens(message, "o200k_base") or 0 for message in added) == 59
