"""Follows an answer in which the model may read spilled outputs back, until one comes that is the client's alone."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from gateway.body import as_object, decode, encode
from gateway.errors import GatewayError
from gateway.forward import COPY_MOST, Answer, Forwarder
from gateway.pipeline import Pipeline
from gateway.readback.calls import parted
from gateway.readback.course import Conductor, Course, summed
from gateway.readback.stream import CUT_SHORT, Mode, RoundStream
from gateway.readback.tool import client_tools
from gateway.services import Services
from gateway.turn import Turn
from gateway.types import ChatMessage, JsonObject
from gateway.upstream.decode import decoder_for
from gateway.upstream.http import Headers
from gateway.upstream.sse import PING, PING_EVERY_S
from gateway.upstream.usage import Usage

_MESSAGE_KEPT: Final = ("role", "content", "reasoning_content", "reasoning_details", "thinking_blocks")
"""Of a message of the model's, what goes back upstream beside its calls; other fields are refused by strict ones."""


class ReadBack:
    """Answers the model's calls of `read_spilled_output`."""

    def __init__(self, services: Services, pipeline: Pipeline, forwarder: Forwarder) -> None:
        self._conductor = Conductor(services, pipeline, forwarder)

    async def follow(self, turn: Turn, answer: Answer) -> Answer:
        """The answer for the client, given the first one to a turn on which the tool was offered.

        Raises:
            GatewayError: a later round reached no upstream, before anything was sent.
        """
        if answer.status != 200 or decoder_for(answer.encoding) is None:
            return answer
        course = self._conductor.begin(turn)
        if answer.is_stream:
            return Followed(StreamedReply(self._conductor, course, answer), course)
        return await self._plain(course, answer)

    async def _plain(self, course: Course, answer: Answer) -> Answer:
        try:
            while True:
                document = _document(await answer.whole(COPY_MOST), answer)
                choice = _first_choice(document)
                if answer.status != 200 or answer.is_stream or not answer.complete or not choice:
                    return answer
                message = as_object(choice.get("message"))
                own, theirs = parted(message)
                cut_short = choice.get("finish_reason") in CUT_SHORT
                if not own or theirs or cut_short or course.spent:
                    break
                course.add_usage(answer, as_object(document.get("usage")))
                answer.close()
                sent = {name: message[name] for name in _MESSAGE_KEPT if message.get(name) is not None}
                sent = {"role": "assistant", "content": None, **sent, "tool_calls": [one.call for one in own]}
                answer = await self._conductor.next_round(course, sent, own)
            beside: tuple[tuple[int, str, str], ...] = ()
            if own and theirs and not cut_short and not course.spent:
                beside = await self._conductor.beside(course, own)
            self._conductor.end(course, _text(message), tuple(str(c.get("id") or "") for c in theirs), beside)
            if not own and not course.rounds:
                return answer
            return _rewritten(course, answer, document, choice, theirs)
        except BaseException:
            answer.close()
            raise
        finally:
            course.settle()


class Followed(Answer):
    """An answer made of those to several requests."""

    def __init__(self, reply: StreamedReply | PlainReply, course: Course) -> None:
        super().__init__(reply, course.turn.route.upstream.read_timeout_s)
        self._rounds = reply
        self._course = course

    def usage(self) -> Usage | None:
        """Of all the requests."""
        return self._course.usage(self._rounds.last.usage())


class PlainReply:
    """A whole body, read like a reply."""

    def __init__(self, last: Answer, body: bytes) -> None:
        self.last = last
        self.status = last.status
        self.headers: Headers = [*_without_framing(last.headers), (b"content-length", str(len(body)).encode())]
        self._body = body

    async def read(self) -> bytes:
        """The body, then nothing."""
        body, self._body = self._body, b""
        return body

    def close(self) -> None:
        """Let the upstream go."""
        self.last.close()


class StreamedReply:
    """The streams of all rounds as one."""

    def __init__(self, conductor: Conductor, course: Course, first: Answer) -> None:
        self.last = first
        self.status = first.status
        self.headers = _without_framing(first.headers)
        self._conductor = conductor
        self._course = course
        self._identity: JsonObject = {}
        self._next: asyncio.Task[Answer] | None = None
        self._goes_on = self._ended = False
        self._begin(first)

    async def read(self) -> bytes:
        """The next bytes for the client; empty at the end."""
        while not self._ended:
            if self._next is not None:
                out = await self._wait(self._next)
            else:
                chunk = await self.last.read()
                out = self._round.feed(self._decoder.feed(chunk)) if chunk else self._round.close()
                if self._round.mode is Mode.HELD:
                    out += await self._decide()
                if not chunk:
                    self._over()
            if out:
                return out
        return b""

    def close(self) -> None:
        """Cancel whatever is under way."""
        if self._next is not None:
            self._next.cancel()
            self._next.add_done_callback(_close_late)
        self.last.close()
        self._course.settle()

    def _begin(self, answer: Answer) -> None:
        self.last = answer
        self._goes_on = False
        decoder = decoder_for(answer.encoding)
        assert decoder is not None
        self._decoder = decoder
        self._round = RoundStream(self._course, client_tools(self._course.turn.body), self._identity)

    async def _decide(self) -> bytes:
        """The model has finished: whether it waits for the gateway, the client, or nobody."""
        stream, course = self._round, self._course
        own, ids = stream.calls.own(), stream.calls.client_ids()
        answers = bool(own) and stream.finish_reason not in CUT_SHORT and not course.spent and not stream.failed
        if answers and not ids:
            self._goes_on = True
            return stream.swallow()
        beside = await self._conductor.beside(course, own) if answers else ()
        course.said += stream.told.removesuffix(stream.text)  # the paragraph that parts the texts
        self._conductor.end(course, course.said + stream.text, ids, beside)
        return stream.release()

    def _over(self) -> None:
        """A round's stream has ended."""
        stream = self._round
        if stream.failed or not self._goes_on:
            self._ended = True
            return
        self._course.add_usage(self.last, stream.usage)
        self._course.said += stream.told
        self._next = asyncio.create_task(
            self._conductor.next_round(self._course, stream.message(), stream.calls.own()), name="read back"
        )

    async def _wait(self, task: asyncio.Task[Answer]) -> bytes:
        """For the next round's head; the client gets a comment now and then."""
        done, _ = await asyncio.wait({task}, timeout=PING_EVERY_S)
        if not done:
            return PING
        self._next = None
        self.last.close()
        answer = task.result()
        if answer.status == 200 and answer.is_stream and decoder_for(answer.encoding) is not None:
            self._begin(answer)
            return b""
        self.last, self._ended = answer, True
        told = await answer.text()
        if answer.status == 200:
            told = GatewayError("The upstream did not stream its answer.", code="upstream_error").body()
        return b"data: " + told.replace(b"\n", b" ") + b"\n\n"


def _close_late(task: asyncio.Task[Answer]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()


def _document(raw: bytes, answer: Answer) -> JsonObject:
    decoder = decoder_for(answer.encoding)
    try:
        return as_object(decode(decoder.feed(raw) if decoder is not None else raw))
    except (ValueError, RecursionError):
        return {}


def _first_choice(document: JsonObject) -> JsonObject:
    choices = document.get("choices")
    return as_object(choices[0]) if isinstance(choices, list) and choices else {}


def _text(message: ChatMessage) -> str:
    content: Any = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if isinstance(part, dict) and "text" in part)
    return content if isinstance(content, str) else ""


def _rewritten(
    course: Course, answer: Answer, document: JsonObject, choice: JsonObject, theirs: list[JsonObject]
) -> Answer:
    """The last reply without the gateway's calls, its usage that of all rounds."""
    message = as_object(choice.get("message"))
    if theirs:
        message["tool_calls"] = theirs
    elif message.pop("tool_calls", None) and choice.get("finish_reason") not in CUT_SHORT:
        choice["finish_reason"] = "stop"
    if course.totals:
        document["usage"] = summed(course.totals, as_object(document.get("usage")))
    return Followed(PlainReply(answer, encode(document)), course)


def _without_framing(headers: Headers) -> Headers:
    """The headers of a body that may come out different."""
    return [(name, value) for name, value in headers if name not in (b"content-length", b"content-encoding")]
