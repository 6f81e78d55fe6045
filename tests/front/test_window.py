"""Long conversations on a small window, judged at the upstream by the real tokenizer."""

from __future__ import annotations

import itertools
import random
import time

import orjson
import pytest

from tests.conftest import Launch
from tests.support.agent import Agent, chinese_text, source_text
from tests.support.builders import assistant, check_pairs, system, tool, tool_call, user
from tests.support.chat import auth, chat_body, fresh_key, send_chat
from tests.support.chat_model import ChatModel, count_request, count_text
from tests.support.gateway_process import GatewayProcess
from tests.support.raw_http import fetch
from tests.support.upstream import Upstream

WINDOW = 8192
QUIET_S = 0.7
"""No new side call for so long: there are none under way. They are answered at once here."""
SYSTEM = "You are a careful engineer. Read before you write, and say what you found."
TASK = "Find why the nightly import of the ledger drops the last row, and fix it in src/ledger/import.py."


@pytest.fixture(scope="module")
def small_window(launch: Launch) -> GatewayProcess:
    """A gateway that knows how small the model is."""
    return launch(models={"small-8k": {"window": WINDOW}})


def assert_within_window(model: ChatModel) -> None:
    """No call was over the window, the gateway's own calls included."""
    assert [turn.prompt_tokens for turn in model.turns if turn.refused] == []
    assert max(turn.prompt_tokens for turn in model.turns) <= WINDOW


def assert_whole(model: ChatModel, task: str) -> None:
    """Pairs, instructions and the task are whole in every request; something was shortened on the way."""
    for turn in model.agent_turns:
        messages = turn.request["messages"]
        assert check_pairs(messages) == []
        assert messages[0]["role"] == "system"
        assert messages[0]["content"].startswith(SYSTEM)
        assert any(message["role"] == "user" and message["content"] == task for message in messages)


def settled_side_calls(model: ChatModel) -> int:
    """How many side calls there are once no more are made: a summary may be under way ahead of need."""
    seen = -1
    while seen != len(model.side_calls):
        seen = len(model.side_calls)
        time.sleep(QUIET_S)
    return seen


def wait_for_side_call(model: ChatModel) -> None:
    """Until the first one has come: it begins once the turn has been answered."""
    until = time.monotonic() + 30
    while not model.side_calls and time.monotonic() < until:
        time.sleep(0.05)


def assert_asked_once_for_each_compaction(agent: Agent, turns: int) -> None:
    """The summariser is asked seldom, never the same thing twice, and not at all for a history already summarised."""
    model = agent.model
    asked = [orjson.dumps(turn.request["messages"]) for turn in model.side_calls]
    assert len(set(asked)) == len(asked)
    assert agent.turns_with_side_calls <= turns // 4
    for _ in range(2):  # the newest turn may have begun a summary ahead of need; the next one takes it up
        settled_side_calls(model)
        agent.send()
    settled = settled_side_calls(model)
    newest = orjson.dumps(model.agent_turns[-1].request)
    agent.send()
    assert settled_side_calls(model) == settled
    assert orjson.dumps(model.agent_turns[-1].request) == newest


@pytest.mark.parametrize("reserve", [{}, {"max_tokens": 1500}, {"stream": True}], ids=["plain", "reserve", "stream"])
def test_two_hundred_tool_turns(upstream: Upstream, small_window: GatewayProcess, reserve: dict[str, object]) -> None:
    model = ChatModel(window=WINDOW)
    agent = Agent(small_window.port, model, [system(SYSTEM), user(TASK)], fields=reserve)
    with upstream.answering(model):
        agent.tool_rounds(200, lambda state, number: source_text(state, 4 + number % 17))
        assert_within_window(model)
        assert_whole(model, TASK)
        assert_asked_once_for_each_compaction(agent, 200)
    assert len(agent.messages) > 400
    assert model.side_calls, "sixty thousand tokens of code can't fit without a summary"


@pytest.mark.parametrize("resumed", [True, False])
def test_a_summary_made_ahead_is_not_waited_for(
    upstream: Upstream, small_window: GatewayProcess, resumed: bool
) -> None:
    """Close under the limit, grown so or come so: a summary is made after the answer, and taken up when needed."""
    model = ChatModel(window=WINDOW)
    agent = Agent(small_window.port, model, [system(SYSTEM), user(TASK)])
    state = random.Random(3)
    with upstream.answering(model):
        number = 0
        while count_request({"messages": agent.messages}) < 0.85 * WINDOW:
            if not resumed:
                agent.send()
                settled_side_calls(model)
            agent.messages.append(assistant(source_text(state, 14)))
            agent.messages.append(user(f"Now part {number}."))
            number += 1
        agent.send()
        wait_for_side_call(model)
        assert settled_side_calls(model) == 1
        agent.messages.append(assistant(source_text(state, 60)))
        agent.messages.append(user("Now the last part."))
        assert "compact:ahead" in str(agent.send().header("X-Gateway-Actions"))
        assert model.agent_turns[-1].prompt_tokens < 0.7 * WINDOW
        settled_side_calls(model)
        before_the_last = model.turns.index(model.agent_turns[-1])
        assert [turn.summariser for turn in model.turns[: before_the_last + 1]].count(True) == 1


def test_a_task_that_leaves_no_room_is_cut_once_for_many_rounds(
    upstream: Upstream, small_window: GatewayProcess
) -> None:
    model = ChatModel(window=WINDOW)
    source = source_text(random.Random(5), 1_000)
    lines = next(n for n in range(1_000) if count_text("\n".join(source.split("\n")[:n])) > 0.86 * WINDOW)
    task = "\n".join([TASK, *source.split("\n")[:lines]])
    agent = Agent(small_window.port, model, [system(SYSTEM), user(task)])
    state = random.Random(4)
    with upstream.answering(model):
        for number in range(6):
            agent.messages.append(assistant(None, tool_call(f"call_{number}")))
            agent.messages.append(tool(f"call_{number}", source_text(state, 12)))
            agent.send()
    assert_within_window(model)
    tasks = [turn.request["messages"][1]["content"] for turn in model.agent_turns]
    assert tasks[0] == task
    assert len({text for text in tasks if text != task}) == 1
    assert all(text.startswith(TASK) for text in tasks)
    assert "call_2" in str(model.agent_turns[-1].request["messages"])


def test_a_chat_without_tools(upstream: Upstream, small_window: GatewayProcess) -> None:
    model = ChatModel(window=WINDOW)
    agent = Agent(small_window.port, model, [system(SYSTEM), user(TASK)])
    with upstream.answering(model):
        agent.chat_rounds(60, lambda state, number: source_text(state, 6))
        assert_within_window(model)
        assert_whole(model, TASK)
        assert_asked_once_for_each_compaction(agent, 60)
    newest = agent.messages[-1]
    assert all(turn.request["messages"][-1]["role"] == "user" for turn in model.agent_turns)
    assert model.agent_turns[-1].request["messages"][-1] == newest


def test_a_chinese_conversation(upstream: Upstream, small_window: GatewayProcess) -> None:
    model = ChatModel(window=WINDOW)
    task = "请找出每晚导入账本时丢失最后一行的原因,并修复 src/ledger/import.py。"
    agent = Agent(small_window.port, model, [system(SYSTEM), user(task)])
    with upstream.answering(model):
        agent.tool_rounds(80, lambda state, number: chinese_text(state, 150 + 40 * (number % 12)))
        assert_within_window(model)
        assert_whole(model, task)


def test_one_turn_larger_than_the_window(upstream: Upstream, small_window: GatewayProcess) -> None:
    model = ChatModel(window=WINDOW)
    state = random.Random(3)
    messages = [system(SYSTEM), user(TASK)]
    for number in range(6):
        messages.append(assistant(None, tool_call(f"call_{number}", "bash", '{"cmd":"make"}')))
        messages.append(tool(f"call_{number}", source_text(state, 2000)))
    agent = Agent(small_window.port, model, messages)
    with upstream.answering(model):
        agent.send()
    assert_within_window(model)
    assert_whole(model, TASK)


def test_a_summariser_that_is_down(upstream: Upstream, small_window: GatewayProcess) -> None:
    model = ChatModel(window=WINDOW, summary=None)
    agent = Agent(small_window.port, model, [system(SYSTEM), user(TASK)])
    with upstream.answering(model):
        agent.tool_rounds(60, lambda state, number: source_text(state, 12))
    assert_within_window(model)
    assert_whole(model, TASK)


def test_old_bytes_stay_between_compactions(upstream: Upstream, small_window: GatewayProcess) -> None:
    model = ChatModel(window=WINDOW)
    agent = Agent(small_window.port, model, [system(SYSTEM), user(TASK)])
    with upstream.answering(model):
        agent.tool_rounds(60, lambda state, number: source_text(state, 10))
    sent = [turn.request["messages"] for turn in model.agent_turns]
    stable = sum(later[: len(earlier)] == earlier for earlier, later in itertools.pairwise(sent))
    # 60 rounds of about 250 tokens; a shrink from 0.70 to 0.50 of the window makes room for at least six rounds
    assert stable >= 45


def test_a_large_result_is_cut_at_first_sight_and_bypass_leaves_it(
    upstream: Upstream, small_window: GatewayProcess
) -> None:
    lines = [f"step {number} of the build is done, {number * 7919 % 10_007} objects" for number in range(3000)]
    lines[1500] = "ERROR: ledger/import.py:42: undefined name 'last_row'"
    log = "\n".join(lines)
    messages = [user(TASK), assistant(None, tool_call("c1", "bash")), tool("c1", log)]
    body = chat_body(messages, model="gpt-4o")
    key = fresh_key()
    shrunk = fetch(small_window.port, "POST", "/v1/chat/completions", body, auth(key))
    before, after = (int(shrunk.header(f"x-gateway-tokens-{when}") or -1) for when in ("before", "after"))
    assert 0 < after < before
    assert shrunk.header("x-gateway-actions")
    sent = upstream.only_call().json()["messages"]
    assert sent[:2] == messages[:2]
    assert lines[1500] in sent[2]["content"]
    assert sent[2]["content"].splitlines()[0] == lines[0]
    assert lines[-1] in sent[2]["content"]
    assert len(sent[2]["content"]) < len(log) / 2
    for bypass in ("all", "compaction"):
        upstream.reset()
        fetch(small_window.port, "POST", "/v1/chat/completions", body, auth(key, ("X-Gateway-Bypass", bypass)))
        assert bytes(upstream.only_call().body) == body


def test_the_same_large_result_shrinks_to_the_same_bytes(upstream: Upstream, small_window: GatewayProcess) -> None:
    log = source_text(random.Random(5), 4000)
    opening = [user(TASK), assistant(None, tool_call("c1", "bash")), tool("c1", log)]
    key = fresh_key()
    send_chat(small_window.port, opening, key, model="gpt-4o")
    later = [*opening, assistant("Reading on."), user("Go on.")]
    send_chat(small_window.port, later, key, model="gpt-4o")
    first, second = (call.json()["messages"] for call in upstream.calls)
    assert len(first[2]["content"]) < len(log)
    assert second[:3] == first
