"""Several streams as one: what the client gets while it waits, and what is let go of when it leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from gateway.body import ChatBody
from gateway.forms import TOOL_NAME
from gateway.forward import Answer
from gateway.readback import follow
from gateway.readback.course import Course
from gateway.readback.follow import Followed, StreamedReply
from gateway.upstream.sse import PING

BODY = ChatBody.parse(b'{"messages":[{"role":"user","content":""}]}')
DONE = b"data: [DONE]\n\n"


class Pieces:
    """An upstream's reply: these bytes, one after another."""

    def __init__(self, *pieces: bytes) -> None:
        self.status = 200
        self.headers = [(b"content-type", b"text/event-stream"), (b"content-length", b"7")]
        self.closed = False
        self._pieces = list(pieces)

    async def read(self) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""

    def close(self) -> None:
        self.closed = True


class Rounds:
    """Stands where the conductor does: the next round is what `following` gives."""

    def __init__(self, following: Callable[[], Awaitable[Answer]]) -> None:
        self.following = following
        self.ended: list[tuple[str, tuple[str, ...]]] = []

    async def next_round(self, course: Course, message: Any, calls: Any) -> Answer:
        course.rounds.append(orjson.dumps(message).decode())
        return await self.following()

    async def beside(self, course: Course, calls: Any) -> tuple[tuple[int, str, str], ...]:
        return ((0, "{}", "{}"),)

    def end(self, course: Course, text: str, ids: tuple[str, ...], beside: Any) -> None:
        self.ended.append((text, ids))


def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    """One event."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + orjson.dumps({"id": "x", "created": 1, "model": "m", "choices": [choice]}) + b"\n\n"


READ = event({"tool_calls": [{"index": 0, "id": "o", "function": {"name": TOOL_NAME, "arguments": "{}"}}]})


def answer(*pieces: bytes) -> Answer:
    """A stream."""
    return Answer(Pieces(*pieces), 60.0)


def course() -> Course:
    """Of a turn of which only this is looked at."""
    turn: Any = SimpleNamespace(
        rounds=0,
        tokens_after=10,
        items=[],
        body=BODY,
        changed=lambda: None,
        route=SimpleNamespace(upstream=SimpleNamespace(read_timeout_s=60.0)),
    )
    return Course(turn, b"k", b"k")


def test_a_comment_now_and_then_while_the_next_round_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "PING_EVERY_S", 0.01)

    async def run() -> tuple[list[bytes], Rounds]:
        gate = asyncio.Event()

        async def later() -> Answer:
            await gate.wait()
            return answer(event({"role": "assistant", "content": "Done."}), event({}, "stop"), DONE)

        rounds, made = Rounds(later), course()
        reply = Followed(StreamedReply(rounds, made, answer(READ, event({}, "tool_calls"), DONE)), made)  # type: ignore[arg-type]
        got = []
        while piece := await reply.read():
            got.append(piece)
            if got.count(PING) == 2:
                gate.set()
        reply.close()
        return got, rounds

    got, rounds = asyncio.run(run())
    assert got[:2] == [PING, PING]
    assert b"".join(piece for piece in got if piece != PING) == event({"content": "Done."}) + event({}, "stop") + DONE
    assert rounds.ended == [("Done.", ())]


@pytest.mark.parametrize("came", [False, True])
def test_leaving_lets_the_next_round_go(came: bool) -> None:
    async def run() -> tuple[bool, Pieces]:
        second = Pieces(DONE)
        gate, cancelled = asyncio.Event(), False

        async def later() -> Answer:
            nonlocal cancelled
            try:
                await gate.wait()
            except asyncio.CancelledError:
                cancelled = True
                raise
            return Answer(second, 60.0)

        made = course()
        reply = Followed(StreamedReply(Rounds(later), made, answer(READ, event({}, "tool_calls"), DONE)), made)  # type: ignore[arg-type]
        reading = asyncio.create_task(reply.read())
        await asyncio.sleep(0.01)
        if came:
            gate.set()
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        reply.close()
        await asyncio.sleep(0.01)
        return cancelled, second

    cancelled, second = asyncio.run(run())
    assert cancelled or second.closed


def test_framing_headers_do_not_survive() -> None:
    async def run() -> list[bytes]:
        made = course()
        return [name for name, _ in StreamedReply(Rounds(asyncio.Future), made, answer(DONE)).headers]  # type: ignore[arg-type]

    assert asyncio.run(run()) == [b"content-type"]
