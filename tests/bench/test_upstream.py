"""The mock upstream over HTTP: which request is the turn, what it answers, and that HTTP counts as offline does."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from aiohttp import web

from bench.processes import free_port
from bench.replay import strategies
from bench.replay.conversations import LOGS, Conversation
from bench.replay.counting import TokenCounter, load_encoding
from bench.replay.runner import Replay, post, replay_baseline
from bench.upstream import Upstream

CALL = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": '{"cmd": "make"}'}}
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "You build software."},
    {"role": "user", "content": "Build src/app/main.c and tell me how it went."},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "compiling\nmain.c:3: error: no such thing\ndone"},
    {"role": "assistant", "content": "It failed in line 3."},
    {"role": "user", "content": "Fix it."},
    {"role": "assistant", "content": "Done."},
]
CONVERSATION = Conversation("tiny", LOGS, MESSAGES, {3: ["main.c:3: error: no such thing"]})


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The mock on a thread of its own."""
    port = free_port()
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(Upstream().app())

    async def start() -> None:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()

    loop.run_until_complete(start())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield f"http://127.0.0.1:{port}"
    asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


def begin(url: str, lane: str, newest: dict[str, Any], reply: dict[str, Any]) -> None:
    httpx.post(f"{url}/__lane", json={"lane": lane}).raise_for_status()
    httpx.post(f"{url}/__expect", json={"lane": lane, "newest": newest, "reply": reply}).raise_for_status()


def ask(url: str, lane: str, messages: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    body = {"model": "gpt-4o", "messages": messages, **fields}
    response = httpx.post(f"{url}/v1/chat/completions", json=body, headers={"Authorization": f"Bearer {lane}"})
    answer: dict[str, Any] = response.raise_for_status().json()
    return answer


def settle(url: str, lane: str, turns: list[str | None]) -> dict[str, Any]:
    answer: dict[str, Any] = (
        httpx.post(f"{url}/__settle", json={"lane": lane, "turns": turns}).raise_for_status().json()
    )
    return answer


def test_a_direct_replay_costs_what_no_gateway_costs_offline(url: str) -> None:
    over_http = Replay("direct", None, url, url, think_s=0).run(CONVERSATION)
    offline = replay_baseline(CONVERSATION, "direct", strategies.no_gateway, TokenCounter())
    assert over_http.bill == offline.bill
    assert (over_http.kept, over_http.labelled, over_http.lost, over_http.problem) == (1, 1, 0, "")
    assert over_http.bill.turns == 3


def test_the_turn_gets_the_recorded_reply_and_a_side_call_a_summary(url: str) -> None:
    begin(url, "lane-a", MESSAGES[3], MESSAGES[4])
    turn = ask(url, "lane-a", MESSAGES[:4])
    assert turn["choices"][0]["message"]["content"] == "It failed in line 3."
    side = ask(url, "lane-a", [*MESSAGES[:4], {"role": "user", "content": "Summarise the conversation."}])
    text = side["choices"][0]["message"]["content"]
    for thing in ("Goal", "decisions", "src/app/main.c", "Progress", "error: no such thing"):
        assert thing in text
    settled = settle(url, "lane-a", [turn["id"]])
    assert (settled["bill"]["turns"], settled["bill"]["side_calls"], settled["by_guess"]) == (1, 1, 0)
    # The instruction comes after the very same prefix, all of which is cached.
    assert settled["bill"]["side_cached"] == settled["bill"]["tokens"]


def test_a_shadow_copy_of_the_turn_is_a_side_call(url: str) -> None:
    begin(url, "lane-b", MESSAGES[1], MESSAGES[2])
    ask(url, "lane-b", MESSAGES[:2])
    turn = ask(url, "lane-b", MESSAGES[:2])
    assert turn["choices"][0]["message"]["tool_calls"] == [CALL]
    settled = settle(url, "lane-b", [turn["id"]])
    assert (settled["bill"]["turns"], settled["bill"]["side_calls"]) == (1, 1)


def test_where_a_proxy_gives_replies_new_ids_the_newest_message_decides(url: str) -> None:
    begin(url, "lane-c", MESSAGES[3], MESSAGES[4])
    ask(url, "lane-c", [{"role": "user", "content": "Summarise: compiling"}])
    ask(url, "lane-c", [*MESSAGES[:3], {**MESSAGES[3], "content": "cut short"}])
    settled = settle(url, "lane-c", [None])
    assert (settled["bill"]["turns"], settled["bill"]["side_calls"], settled["by_guess"]) == (1, 1, 1)


def test_a_long_conversation_is_summarised_in_about_250_tokens(url: str) -> None:
    begin(url, "lane-d", MESSAGES[1], MESSAGES[2])
    talk = "\n".join(f"Step {n}: we looked at lib/part_{n}.py and decided to keep it as it was." for n in range(400))
    texts = [
        ask(url, "lane-d", [{"role": "user", "content": f"{talk}\nround {n} of the work is over"}])["choices"][0][
            "message"
        ]
        for n in range(2)
    ]
    tokens = len(load_encoding().encode(texts[0]["content"]))
    assert 225 <= tokens <= 300
    assert texts[0] != texts[1]


@pytest.mark.parametrize(
    ("content", "fields"),
    [
        ("Extract facts. Respond only with JSON.", {}),
        ("Extract facts.", {"response_format": {"type": "json_object"}}),
    ],
)
def test_an_extraction_gets_json(url: str, content: str, fields: dict[str, Any]) -> None:
    begin(url, "lane-e", MESSAGES[1], MESSAGES[2])
    answer = ask(url, "lane-e", [{"role": "user", "content": content}], **fields)
    assert "facts" in json.loads(answer["choices"][0]["message"]["content"])


def test_the_openai_sdk_reads_it_streamed(url: str) -> None:
    begin(url, "lane-f", MESSAGES[1], MESSAGES[2])
    with openai.OpenAI(base_url=f"{url}/v1", api_key="lane-f", max_retries=0) as client:
        assert [model.id for model in client.models.list()] == ["gpt-4o"]
        chunks = list(
            client.chat.completions.create(
                model="gpt-4o",
                messages=[{"role": "user", "content": MESSAGES[1]["content"]}],
                stream=True,
                stream_options={"include_usage": True},
            )
        )
    calls = [call for chunk in chunks for choice in chunk.choices for call in choice.delta.tool_calls or []]
    assert calls[0].function is not None
    assert calls[0].function.arguments == '{"cmd": "make"}'
    assert chunks[-1].usage is not None
    # The user's message alone: its text and the overhead of one message.
    assert chunks[-1].usage.prompt_tokens == len(load_encoding().encode(MESSAGES[1]["content"])) + 4


def test_a_body_without_messages_is_refused_in_openai_s_shape(url: str) -> None:
    response = httpx.post(f"{url}/v1/chat/completions", content=b"{nonsense")
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"


def test_a_refusal_sent_before_the_body_was_read_is_reported_as_such() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def refuse() -> None:
            taken, _ = server.accept()
            with taken:
                taken.recv(1000)
                taken.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 8\r\n\r\ntoo long")
                taken.shutdown(socket.SHUT_RD)
                while taken.recv(1 << 20):
                    pass

        thread = threading.Thread(target=refuse)
        thread.start()
        status, body = post(f"http://127.0.0.1:{server.getsockname()[1]}/v1", b"x" * 20_000_000, "key")
        thread.join(10)
    assert (status, body) == (413, b"too long")


def test_a_proxy_that_fails_is_reported_and_its_turns_are_lost(url: str) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    outcome = Replay("broken", None, nobody, url, think_s=0).run(CONVERSATION)
    assert (outcome.lost, outcome.bill.turns) == (3, 0)
    assert "ConnectionRefusedError" in outcome.problem
