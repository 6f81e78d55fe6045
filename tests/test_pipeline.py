"""Whatever fails, a sound request leaves: stages that raise at any point, and a store or a summariser that is away."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import Unavailable
from gateway.turn import Turn
from tests.support.builders import check_pairs
from tests.support.engine import Engine
from tests.test_pipeline_properties import agent_session, raw_messages, turns

STAGES = [
    "recall",
    "fold",
    "spill",
    "remember",
    "repeat",
    "snip",
    "microcompact",
    "compact",
    "heal",
    "inject",
    "dialect",
]
PARTS = [
    "gateway.forms.Forms.folded",
    "gateway.forms.Forms.within_budget",
    "gateway.forms.Forms.snipped",
    "gateway.forms.Forms.skeleton_of_result",
    "gateway.forms.Forms.skeleton_of_call",
    "gateway.counting.Counting.settle",
    "gateway.counting.Counting.recount",
    "gateway.forcing.lay",
    "gateway.stages.compact.place_at",
    "gateway.forcing.oldest_out",
    "gateway.proposal.Proposal.commit",
    "gateway.summarise.Summariser.summarise",
]
keys = (f"failing-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One gateway with memory on."""
    made = Engine(tmp_path_factory.mktemp("pipeline"))
    yield made
    made.close()


def boom(*_: Any, **__: Any) -> Any:
    """What breaks."""
    raise RuntimeError("boom")


def test_the_stages_run_in_the_order_of_the_contract(engine: Engine) -> None:
    names = [stage.name for stage in engine.pipeline.stages]
    assert [name for name in names if name in STAGES] == STAGES


@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("after", [False, True])
def test_a_stage_that_fails_is_skipped(engine: Engine, monkeypatch: pytest.MonkeyPatch, name: str, after: bool) -> None:
    stage = next(stage for stage in engine.pipeline.stages if stage.name == name)
    run = stage.run

    async def fails(turn: Turn) -> None:
        if after:
            await run(turn)
        raise RuntimeError("boom")

    monkeypatch.setattr(stage, "run", fails)
    monkeypatch.setattr(stage, "skips", lambda turn: False)
    key = next(keys)
    for request in turns(agent_session(14, seed=5))[::4]:
        sent = engine.send(request, window=900, key=key, x_field=[1])
        assert check_pairs(sent.messages) == []
        assert sent.messages[:2] == request[:2]
        assert sent.messages[-1].keys() == request[-1].keys()
        assert json.loads(sent.out)["x_field"] == [1]
        assert name in sent.turn.failures


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_fails_breaks_no_request(engine: Engine, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    key = next(keys)
    requests = turns(agent_session(16, seed=6))
    for request in requests[:8:3]:
        engine.send(request, window=900, key=key)
    with monkeypatch.context() as broken:
        broken.setattr(part, boom)
        for request in requests[8::3]:
            sent = engine.send(request, window=900, key=key, settle=False)
            assert check_pairs(sent.messages) == []
            assert sent.messages[:2] == request[:2]
    sent = engine.send(requests[-1], window=900, key=key)
    assert check_pairs(sent.messages) == []
    assert sent.turn.tokens_after <= sent.turn.limits.hard


def test_a_summariser_that_is_away_is_done_without(engine: Engine) -> None:
    messages = agent_session(40, seed=8)
    key = next(keys)
    engine.upstreams.summary = None
    try:
        before: list[bytes] = []
        for request in turns(messages):
            sent = engine.send(request, window=1_700, key=key)
            assert check_pairs(sent.messages) == []
            assert sent.turn.tokens_after <= sent.turn.limits.hard
            assert sent.messages[:2] == request[:2]
            if not sent.turn.rewritten:
                assert raw_messages(sent.out)[: len(before)] == before
            before = raw_messages(sent.out)
    finally:
        engine.upstreams.summary = "Goal: go on."


@pytest.mark.parametrize("method", ["load_decisions", "save_decisions", "put_spill", "count", "add_pending"])
def test_a_store_that_is_away_breaks_no_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    engine = Engine(tmp_path)

    async def away(*_: Any, **__: Any) -> Any:
        raise Unavailable("the store is locked")

    monkeypatch.setattr(engine.services.store, method, away)
    try:
        for request in turns(agent_session(12, seed=7))[3::3]:
            sent = engine.send(request, window=900)
            assert check_pairs(sent.messages) == []
            assert sent.turn.tokens_after <= sent.turn.limits.hard
    finally:
        engine.close()


def test_two_gateways_on_one_store_send_the_same_bytes(tmp_path: Path) -> None:
    one, two = Engine(tmp_path, memory={"enabled": False}), Engine(tmp_path, memory={"enabled": False})
    try:
        messages = agent_session(30, seed=11)
        before: list[bytes] = []
        for number, request in enumerate(turns(messages)):
            sent = (one, two)[number % 3 == 0].send(request, window=1_700)
            if not sent.turn.rewritten:
                assert raw_messages(sent.out)[: len(before)] == before
            before = raw_messages(sent.out)
    finally:
        one.close()
        two.close()
