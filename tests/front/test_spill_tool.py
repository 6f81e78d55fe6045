"""The model reads back what was cut: the gateway answers, and the client never sees that it was asked."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from typing import Any

import openai
import orjson
import pytest

from tests.conftest import Launch
from tests.support.anthropic_server import anthropic_server
from tests.support.builders import Message, assistant, check_pairs, function_tool, tool, tool_call, user
from tests.support.chat import CHAT, MODEL, auth, chat_body, eventually, fresh_key, send_chat
from tests.support.gateway_process import GatewayProcess
from tests.support.raw_http import fetch
from tests.support.upstream import Call, Headers, Reply, Upstream, error_reply, json_reply, split_events, sse_reply

NAME = "read_spilled_output"
TOOLS = [function_tool("run", command="string"), function_tool("read", path="string")]
LOG = "\n".join(f"step {n}: linked object file number {n * 7919 % 10007}" for n in range(1, 3001))
NEEDLE = f"step 1500: linked object file number {1500 * 7919 % 10007}"
USAGE: dict[str, Any] = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}
USAGE |= {"prompt_tokens_details": {"cached_tokens": 64}}


@pytest.fixture(scope="module")
def reading(launch: Launch) -> GatewayProcess:
    """A gateway whose model may read spilled outputs back."""
    return launch(spill={"tool": True}, memory={"enabled": False})


@pytest.fixture
def client(reading: GatewayProcess, upstream: Upstream) -> Iterator[Any]:
    """The real SDK under a fresh key; no retries. Untyped: the conversations here are plain dicts."""
    with openai.OpenAI(base_url=f"{reading.url}/v1", api_key=fresh_key(), max_retries=0, timeout=30) as made:
        yield made


def history(log: str = LOG) -> list[Message]:
    """An agent's first steps, the last of which printed a long log."""
    return [user("Build it."), assistant(None, tool_call("call_run", "run", "{}")), tool("call_run", log)]


def read_call(call_id: str, name: str, **arguments: str) -> Message:
    """A model's call of the tool."""
    return tool_call(call_id, NAME, orjson.dumps({"id": name, **arguments}).decode())


def spill_id(call: Call) -> str:
    """The id that the placeholder names, as a model would read it."""
    text = next(m["content"] for m in call.json()["messages"] if m["role"] == "tool")
    return str(text.split(f'{NAME}(id="')[1].split('"')[0])


def whole(message: Message, finish: str, number: int) -> Reply:
    """A plain reply."""
    choice = {"index": 0, "message": message, "finish_reason": finish}
    common = {"id": f"chatcmpl-{number}", "object": "chat.completion", "created": number, "model": MODEL}
    return json_reply({**common, "choices": [choice], "usage": USAGE})


def event(number: int, delta: Message | None, finish: str | None = None, **more: Any) -> bytes:
    """One event of a stream; `delta` None: a chunk with no choices."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    common = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": number, "model": MODEL}
    return b"data: " + orjson.dumps({**common, "choices": choices, **more}) + b"\n\n"


def call_deltas(number: int, index: int, call: Message) -> list[bytes]:
    """A call as OpenAI streams it: its name first, then its arguments in pieces."""
    function = call["function"]
    first = {"index": index, "id": call["id"], "type": "function", "function": {**function, "arguments": ""}}
    text = function["arguments"]
    pieces = [text[:5], text[5:11], text[11:]]
    rest = [{"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in pieces if piece]
    return [event(number, delta) for delta in [{"tool_calls": [first]}, *rest]]


def streamed(number: int, text: str, calls: list[Message], finish: str) -> list[bytes]:
    """A whole stream, with usage."""
    out = [event(number, {"role": "assistant", "content": ""})]
    out += [event(number, {"content": word}) for word in text.split("|") if word]
    for index, call in enumerate(calls):
        out += call_deltas(number, index, call)
    return [*out, event(number, {}, finish), event(number, None, usage=USAGE), b"data: [DONE]\n\n"]


def reads(*calls: tuple[str, dict[str, str]], text: str | None = None, own: list[Message] | None = None) -> Any:
    """A model that calls the tool for the id it sees, beside calls of the client's tools."""

    def reply(call: Call) -> Reply:
        made = [read_call(call_id, spill_id(call), **arguments) for call_id, arguments in calls]
        made = [*made[:1], *(own or []), *made[1:]]
        if call.json().get("stream"):
            return sse_reply(streamed(1, text or "", made, "tool_calls"))
        return whole(assistant(text, *made), "tool_calls", 1)

    return reply


def test_off_by_default(gateway: GatewayProcess, upstream: Upstream) -> None:
    reply = send_chat(gateway.port, history(), tools=TOOLS)
    assert reply.status == 200
    sent = upstream.only_call()
    assert sent.json()["tools"] == TOOLS
    assert NAME.encode() not in bytes(sent.body)
    assert b"/v1/memory/spill/" in bytes(sent.body)


def test_nothing_is_declared_where_nothing_was_cut(reading: GatewayProcess, upstream: Upstream) -> None:
    body = chat_body(history("done"), tools=TOOLS)
    assert fetch(reading.port, "POST", CHAT, body, auth(fresh_key(), ("Accept-Encoding", "gzip"))).status == 200
    assert bytes(upstream.only_call().body) == body
    assert upstream.only_call().header("Accept-Encoding") == "gzip"


def test_a_read_is_answered_and_hidden(upstream: Upstream, client: Any) -> None:
    upstream.queue(reads(("own_1", {"lines": "1499-1501"}), text="Let me look."))
    upstream.queue(whole(assistant("Number 1500 is fine."), "stop", 2))
    got = client.chat.completions.create(model=MODEL, messages=history(), tools=TOOLS)
    assert got.choices[0].message.content == "Number 1500 is fine."
    assert got.choices[0].message.tool_calls is None
    assert (got.id, got.choices[0].finish_reason) == ("chatcmpl-2", "stop")
    assert got.usage.prompt_tokens == 200
    assert got.usage.total_tokens == 214
    assert got.usage.prompt_tokens_details.cached_tokens == 128
    first, second = (call.json() for call in upstream.calls)
    assert first["tools"][:2] == TOOLS
    assert first["tools"][2]["function"]["name"] == NAME
    assert second["messages"][:-2] == first["messages"]
    call, result = second["messages"][-2:]
    assert call["content"] == "Let me look."
    assert result["tool_call_id"] == call["tool_calls"][0]["id"] == "own_1"
    lines = LOG.split("\n")[1498:1501]
    assert "\n".join(lines) in result["content"]
    assert NEEDLE in lines
    assert {**second, "messages": 0} == {**first, "messages": 0}


def test_the_prefix_stays_and_survives_a_restart(upstream: Upstream, launch: Launch) -> None:
    key, messages = fresh_key(), history()
    gateway = launch(spill={"tool": True}, memory={"enabled": False})
    upstream.queue(reads(("own_1", {"grep": "step 1500:"})), whole(assistant("Fine."), "stop", 2))
    assert send_chat(gateway.port, messages, key, tools=TOOLS).status == 200
    read = upstream.calls[-1]
    messages += [assistant("Fine."), user("Thanks. Next?")]
    assert send_chat(gateway.port, messages, key, tools=TOOLS).status == 200
    went_on = upstream.calls[-1]
    gateway.stop()
    gateway.start()
    assert send_chat(gateway.port, messages, key, tools=TOOLS).status == 200
    again = upstream.calls[-1]
    assert len(upstream.calls) == 4
    assert bytes(again.body) == bytes(went_on.body)
    sent = went_on.json()
    assert sent["tools"] == read.json()["tools"]
    assert sent["messages"][: len(read.json()["messages"])] == read.json()["messages"]
    assert sent["messages"][len(read.json()["messages"]) :] == messages[-2:]
    assert check_pairs(sent["messages"]) == []
    start = bytes(read.body)
    assert bytes(went_on.body).startswith(start[: start.rindex(b"]", 0, start.rindex(b'"tools"'))])


@pytest.mark.parametrize("stream", [False, True])
def test_beside_the_clients_own_calls(upstream: Upstream, client: Any, stream: bool) -> None:
    messages = history()
    own = [tool_call("c_1", "run", '{"command":"ls"}'), tool_call("c_2", "read", '{"path":"a.py"}')]
    upstream.queue(reads(("own_1", {"lines": "1500"}), ("own_2", {"grep": "nothing like it"}), text="Both.", own=own))
    create = client.chat.completions.create
    if stream:
        with client.chat.completions.stream(model=MODEL, messages=messages, tools=TOOLS) as chunks:
            seen = [index for event in chunks if event.type == "chunk" for index in _indices(event.chunk)]
            message = chunks.get_final_completion().choices[0].message
        assert sorted(set(seen)) == [0, 1]
    else:
        message = create(model=MODEL, messages=messages, tools=TOOLS).choices[0].message
    assert message.content == "Both."
    assert [call.id for call in message.tool_calls] == ["c_1", "c_2"]
    assert [call.function.arguments for call in message.tool_calls] == ['{"command":"ls"}', '{"path":"a.py"}']
    assert len(upstream.calls) == 1
    messages += [assistant("Both.", *own), tool("c_1", "a.py"), tool("c_2", "pass")]
    create(model=MODEL, messages=messages, tools=TOOLS)
    sent = upstream.calls[-1].json()["messages"]
    assert check_pairs(sent) == []
    assert [call["id"] for call in sent[3]["tool_calls"]] == ["own_1", "c_1", "c_2", "own_2"]
    assert [m["tool_call_id"] for m in sent[4:]] == ["own_1", "c_1", "c_2", "own_2"]
    assert NEEDLE in sent[4]["content"]
    assert "none of 3,000 lines" in sent[7]["content"]
    create(model=MODEL, messages=[*messages, assistant("ok"), user("more")], tools=TOOLS)
    assert upstream.calls[-1].json()["messages"][: len(sent)] == sent


def _indices(chunk: Any) -> list[int]:
    return [entry.index for choice in chunk.choices for entry in choice.delta.tool_calls or ()]


def test_streamed_rounds_are_one_stream(reading: GatewayProcess, upstream: Upstream) -> None:
    key, messages = fresh_key(), history()
    upstream.queue(reads(("own_1", {"lines": "1500"}), text="Let me| look."))
    upstream.queue(sse_reply(streamed(2, "It is| fine.", [tool_call("c_1", "run")], "tool_calls")))
    fields: dict[str, Any] = {"tools": TOOLS, "stream": True, "stream_options": {"include_usage": True}}
    reply = send_chat(reading.port, messages, key, **fields)
    assert reply.status == 200
    assert NAME.encode() not in reply.body
    events = [piece.removeprefix(b"data: ").strip() for piece in split_events(reply.body)]
    assert events.count(b"[DONE]") == 1
    assert events[-1] == b"[DONE]"
    chunks = [orjson.loads(data) for data in events[:-1]]
    assert {(chunk["id"], chunk["created"], chunk["model"]) for chunk in chunks} == {("chatcmpl-1", 1, MODEL)}
    (usage,) = [chunk["usage"] for chunk in chunks if chunk.get("usage")]
    assert usage == {**USAGE, "prompt_tokens": 200, "completion_tokens": 14, "total_tokens": 214} | {
        "prompt_tokens_details": {"cached_tokens": 128}
    }
    choices = [chunk["choices"][0] for chunk in chunks if chunk["choices"]]
    assert [c["finish_reason"] for c in choices if c["finish_reason"]] == ["tool_calls"]
    assert sum("role" in c["delta"] for c in choices) == 1
    said = "".join(c["delta"].get("content") or "" for c in choices)
    assert said == "Let me look.\n\nIt is fine."
    messages += [assistant(said, tool_call("c_1", "run")), tool("c_1", "ok")]
    send_chat(reading.port, messages, key, tools=TOOLS)
    before, sent = upstream.calls[1].json()["messages"], upstream.calls[2].json()["messages"]
    assert sent[: len(before)] == before
    assert sent[len(before)]["content"] == "It is fine."
    assert check_pairs(sent) == []


def test_text_is_not_held_back(upstream: Upstream, client: Any) -> None:
    gate = threading.Event()

    def slow(call: Call) -> Reply:
        parts = streamed(1, "Let me| look.", [read_call("own_1", spill_id(call))], "tool_calls")
        return sse_reply([*parts[:3], gate, *parts[3:]])

    upstream.queue(slow, sse_reply(streamed(2, "Done.", [], "stop")))
    stream = client.chat.completions.create(model=MODEL, messages=history(), stream=True)
    got = ""
    for chunk in stream:
        got += (chunk.choices[0].delta.content or "") if chunk.choices else ""
        if got == "Let me look.":
            assert len(upstream.calls) == 1
            gate.set()
    assert got == "Let me look.\n\nDone."


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": TOOLS, "tool_choice": "none"},
        {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "run"}}},
        {"tools": [*TOOLS, function_tool(NAME)]},
        {"functions": [TOOLS[0]["function"]]},
        {"tools": TOOLS, "n": 2},
    ],
    ids=["none", "forced", "same name", "functions", "n"],
)
def test_not_declared(reading: GatewayProcess, upstream: Upstream, fields: dict[str, Any]) -> None:
    assert send_chat(reading.port, history(), **fields).status == 200
    sent = upstream.only_call().json()
    assert {name: sent[name] for name in fields} == fields
    assert set(sent) == {"model", "messages", *fields}


def test_declared_where_the_client_has_no_tools_and_stays(reading: GatewayProcess, upstream: Upstream) -> None:
    key, messages = fresh_key(), history()
    assert send_chat(reading.port, messages, key).status == 200
    (declared,) = upstream.calls[0].json()["tools"]
    assert declared["function"]["name"] == NAME
    messages += [assistant("ok"), user("go on")]
    assert send_chat(reading.port, messages, key).status == 200
    assert upstream.calls[1].json()["tools"] == [declared]


def test_another_tenants_output(reading: GatewayProcess, upstream: Upstream) -> None:
    other = history(LOG.replace("step", "secret"))
    assert send_chat(reading.port, other, fresh_key(), tools=TOOLS).status == 200
    name = spill_id(upstream.calls[-1])
    upstream.queue(whole(assistant(None, read_call("own_1", name)), "tool_calls", 1))
    upstream.queue(whole(assistant("Not there."), "stop", 2))
    assert send_chat(reading.port, history(), fresh_key(), tools=TOOLS).status == 200
    told = upstream.calls[-1].json()["messages"][-1]["content"]
    assert "no output with the id" in told
    assert "secret" not in told


def test_broken_arguments_and_parallel_reads(reading: GatewayProcess, upstream: Upstream) -> None:
    def reply(call: Call) -> Reply:
        broken = tool_call("own_1", NAME, '{"id": "12')
        return whole(assistant(None, broken, read_call("own_2", spill_id(call), lines="2-2")), "tool_calls", 1)

    upstream.queue(reply, whole(assistant("So."), "stop", 2))
    assert send_chat(reading.port, history(), tools=TOOLS).status == 200
    first, second = upstream.calls[-1].json()["messages"][-2:]
    assert "no JSON object" in first["content"]
    assert LOG.split("\n")[1] in second["content"]


@pytest.mark.parametrize("tools", [TOOLS, None], ids=["tools", "no tools"])
@pytest.mark.parametrize("stream", [False, True])
def test_rounds_are_bounded(
    reading: GatewayProcess, upstream: Upstream, stream: bool, tools: list[Message] | None
) -> None:
    fields: dict[str, Any] = {"stream": True} if stream else {}
    fields |= {"tools": tools} if tools else {}
    with upstream.answering(reads(("own_1", {"lines": "7"}))):
        reply = send_chat(reading.port, history(), **fields)
    assert reply.status == 200
    assert NAME.encode() not in reply.body
    assert b'"tool_calls"' not in reply.body
    assert b'"finish_reason":"stop"' in reply.body
    assert len(upstream.calls) == 6
    last = upstream.calls[-1].json()
    assert last.get("tools") == tools if tools else last["tool_choice"] == "none"
    assert check_pairs(last["messages"]) == []
    assert "Go on with what you have" in last["messages"][-1]["content"]


def test_a_later_round_refused(reading: GatewayProcess, upstream: Upstream) -> None:
    upstream.queue(reads(("own_1", {})), error_reply(429, "Slow down.", "rate_limit_exceeded"))
    reply = send_chat(reading.port, history(), tools=TOOLS)
    assert reply.status == 429
    assert orjson.loads(reply.body)["error"]["message"] == "Slow down."
    upstream.queue(reads(("own_1", {}), text="Hm."), error_reply(429, "Slow down.", "rate_limit_exceeded"))
    reply = send_chat(reading.port, history(), tools=TOOLS, stream=True)
    assert reply.status == 200
    assert b"Hm." in reply.body
    assert orjson.loads(split_events(reply.body)[-1][6:])["error"]["message"] == "Slow down."


@pytest.mark.parametrize("stream", [False, True])
def test_hanging_up_cancels_a_later_round(upstream: Upstream, client: Any, stream: bool) -> None:
    def never(call: Call) -> Reply:
        threading.Event().wait(0.05)
        return Reply(before=[threading.Event()])

    upstream.queue(reads(("own_1", {}), text="Hm."), never)
    impatient = client.with_options(timeout=1.0)
    with pytest.raises(openai.APITimeoutError):
        got = impatient.chat.completions.create(model=MODEL, messages=history(), stream=stream)
        list(got)
    assert upstream.wait_until(lambda: len(upstream.calls) == 2 and upstream.calls[1].disconnected_at is not None)


def test_an_upstream_that_compresses_all_the_same(reading: GatewayProcess, upstream: Upstream) -> None:
    headers: Headers = [("Content-Encoding", "gzip")]

    def first(call: Call) -> Reply:
        reply = whole(assistant(None, read_call("own_1", spill_id(call))), "tool_calls", 1)
        return json_reply(
            gzip.compress(b"".join(part for part in reply.steps if isinstance(part, bytes))), 200, headers
        )

    upstream.queue(first, whole(assistant("Read."), "stop", 2))
    asked = auth(fresh_key(), ("Accept-Encoding", "gzip"))
    reply = fetch(reading.port, "POST", CHAT, chat_body(history(), tools=TOOLS), asked)
    assert orjson.loads(reply.body)["choices"][0]["message"]["content"] == "Read."
    assert upstream.calls[0].header_all("Accept-Encoding") == ["identity"]


def test_old_reads_shrink_like_other_results(launch: Launch, upstream: Upstream) -> None:
    gateway = launch(
        spill={"tool": True},
        memory={"enabled": False},
        models={MODEL: {"window": 12_000}},
        compaction={"enabled": False},
    )
    key, messages = fresh_key(), history()
    upstream.queue(reads(("own_1", {"lines": "1000-"})), whole(assistant("Fine."), "stop", 2))
    assert send_chat(gateway.port, messages, key, tools=TOOLS).status == 200
    read = upstream.calls[-1].json()["messages"][-1]
    for step in range(12):
        call = tool_call(f"c_{step}", "read", f'{{"path":"f{step}.py"}}')
        text = "\n".join(f"x_{step}_{line} = compute({line}, {step})" for line in range(80))
        messages += [assistant("Fine." if not step else None, call), tool(f"c_{step}", text)]
        assert send_chat(gateway.port, messages, key, tools=TOOLS).status == 200
        sent = upstream.calls[-1].json()["messages"]
        assert check_pairs(sent) == []
    own = [message for message in sent if message.get("tool_call_id") == "own_1"]
    assert not own or len(own[0]["content"]) < len(read["content"]) / 2


def test_metrics_tell_of_reads(reading: GatewayProcess, upstream: Upstream) -> None:
    upstream.queue(reads(("own_1", {})), whole(assistant("Read."), "stop", 2))
    reply = send_chat(reading.port, history(), tools=TOOLS)
    assert "read:1" in str(reply.header("X-Gateway-Actions"))
    counted = f'gateway_usage_tokens_total{{kind="cached",model="{MODEL}",route="default"}}'
    assert eventually(lambda: counted.encode() in fetch(reading.port, "GET", "/metrics", b"", []).body)


def test_usage_that_the_gateway_asked_for_is_counted_and_not_shown(launch: Launch, upstream: Upstream) -> None:
    up = {"name": "default", "base_url": f"{upstream.url}/v1", "include_usage": True}
    gateway = launch(spill={"tool": True}, memory={"enabled": False}, upstreams=[up])
    upstream.queue(reads(("own_1", {})), sse_reply(streamed(2, "Done.", [], "stop")))
    reply = send_chat(gateway.port, history(), tools=TOOLS, stream=True)
    assert b"Done." in reply.body
    assert b"usage" not in reply.body
    assert [call.json()["stream_options"] for call in upstream.calls] == [{"include_usage": True}] * 2
    counted = f'gateway_usage_tokens_total{{kind="prompt",model="{MODEL}",route="default"}} 200.0'
    assert eventually(lambda: counted.encode() in fetch(gateway.port, "GET", "/metrics", b"", []).body)


THINKING: Message = {"type": "thinking", "thinking": "I should read the middle of it.", "signature": "c2lnbmF0dXJl"}


@pytest.mark.parametrize("stream", [False, True])
def test_through_a_provider(launch: Launch, upstream: Upstream, stream: bool) -> None:
    with anthropic_server() as server:
        provider = {"name": "claude", "provider": "anthropic", "base_url": server.url, "api_key": "k"}
        gateway = launch(spill={"tool": True}, memory={"enabled": False}, upstreams=[provider])
        body = {"model": "claude-sonnet-4-5", "messages": history(), "tools": TOOLS, "max_tokens": 100}
        key = fresh_key()
        server.say({"type": "text", "text": "First."})
        assert fetch(gateway.port, "POST", CHAT, orjson.dumps(body), auth(key)).status == 200
        cut = orjson.dumps(server.requests[0]).decode()
        name = cut.split(NAME + "(id=")[1].split('"')[1].rstrip("\\")
        use = {"type": "tool_use", "id": "toolu_1", "name": NAME, "input": {"id": name, "lines": "1500"}}
        server.say(THINKING, {"type": "text", "text": "I look."}, use, stop_reason="tool_use")
        server.say({"type": "text", "text": "It is fine."})
        fields = {**body, "stream": stream, "reasoning_effort": "low", "max_tokens": 4_000}
        reply = fetch(gateway.port, "POST", CHAT, orjson.dumps(fields), auth(key))
    assert reply.status == 200
    assert NAME.encode() not in reply.body
    assert b"ine." in reply.body  # streamed in pieces
    question, answered = server.requests[-1]["messages"][-2:]
    blocks = {block["type"]: block for block in question["content"]}
    assert blocks["thinking"] == THINKING
    assert blocks["text"]["text"] == "I look."
    assert blocks["tool_use"]["input"] == use["input"]
    assert NEEDLE in orjson.dumps(answered).decode()
