"""Understand a reply while its bytes pass by: text, reasoning, tool calls, finish, usage, error.

The bytes themselves go to the client untouched; this reads a copy for usage, memory and metrics. It
takes OpenAI's chat chunks in every vendor's variation, legacy completions, and through `typed_events` the Responses
API and Anthropic's messages. It never raises: what it can't read it leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from gateway.types import ChatMessage, Json, JsonObject
from gateway.upstream.sse import DONE, Event, EventSplitter
from gateway.upstream.toolcalls import ToolCall, ToolCallAssembler
from gateway.upstream.typed_events import apply_typed
from gateway.upstream.usage import Usage, find_usage, read_usage

MAX_KEPT_CHARS: Final = 16 * 1024 * 1024
"""Text, reasoning and arguments kept per reply, in characters; past it only usage and errors are read."""

_REASONING_FIELDS: Final = ("reasoning_content", "reasoning", "thinking", "reasoning_text")
_REASONING_LISTS: Final = ("reasoning_details", "thinking_blocks")


@dataclass(slots=True)
class Choice:
    """One of the `n` answers."""

    index: int
    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    finish_reason: str | None = None

    def message(self) -> ChatMessage:
        """The assistant message as a client would send it back: content null where there are only calls."""
        message: ChatMessage = {"role": "assistant", "content": self.text or (None if self.tool_calls else "")}
        if self.tool_calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in self.tool_calls
            ]
        return message


@dataclass(slots=True)
class Reply:
    """What a reply said. `usage_only_chunk`: a chunk of usage without choices was seen. `error`: the error object of
    a failed reply, or of a stream that broke off. `truncated`: it ended without a finish reason or `[DONE]`."""

    id: str = ""
    model: str = ""
    choices: list[Choice] = field(default_factory=list)
    usage: Usage | None = None
    usage_only_chunk: bool = False
    error: JsonObject | None = None
    truncated: bool = False

    @property
    def text(self) -> str:
        """The text of the first choice."""
        return self.choices[0].text if self.choices else ""

    @classmethod
    def from_json(cls, body: bytes) -> Reply:
        """Read a reply that was not streamed. A body that is not a JSON object gives an empty, truncated reply."""
        builder = ReplyBuilder()
        try:
            document = orjson.loads(body)
        except orjson.JSONDecodeError:
            return builder.build()
        if isinstance(document, dict):
            builder.add(document)
            builder.done = bool(builder.choices) or builder.error is not None
        reply = builder.build()
        reply.usage_only_chunk = False
        return reply


class ReplyTee:
    """Reads a stream on the side: `feed` each piece as it passes, then `finish` once."""

    __slots__ = ("_builder", "_splitter")

    def __init__(self) -> None:
        self._splitter = EventSplitter()
        self._builder = ReplyBuilder()

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes, decoded from any content encoding."""
        for event in self._splitter.feed(chunk):
            self._event(event)

    def finish(self) -> Reply:
        """The reply as far as it came."""
        for event in self._splitter.finish():
            self._event(event)
        return self._builder.build()

    def _event(self, event: Event) -> None:
        if event.data == DONE:
            self._builder.done = True
            return
        try:
            chunk = orjson.loads(event.data)
        except orjson.JSONDecodeError:
            if event.event == "error":
                self._builder.error = {"message": event.data.decode("utf-8", "replace")}
            return
        if isinstance(chunk, dict):
            self._builder.add(chunk, event.event)


class ChoiceBuilder:
    """Collects one choice."""

    __slots__ = ("calls", "finish_reason", "reasoning", "refusal", "text")

    def __init__(self) -> None:
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.refusal: list[str] = []
        self.calls = ToolCallAssembler()
        self.finish_reason: str | None = None

    def build(self, index: int) -> Choice:
        """The choice as far as it came."""
        return Choice(
            index,
            "".join(self.text),
            "".join(self.reasoning),
            "".join(self.refusal),
            self.calls.calls(),
            self.finish_reason,
        )


class ReplyBuilder:
    """Takes parsed chunks, one by one, and builds the reply."""

    def __init__(self) -> None:
        self.id = ""
        self.model = ""
        self.choices: dict[int, ChoiceBuilder] = {}
        self.error: JsonObject | None = None
        self.done = False
        self._usage: JsonObject = {}
        self._usage_only = False
        self._room = MAX_KEPT_CHARS

    def add(self, chunk: JsonObject, event: str | None = None) -> None:
        """Take a chunk of a stream, or a whole reply."""
        self.identify(chunk)
        usage = find_usage(chunk)
        if usage:
            # Later counts win; Anthropic's come in two parts.
            self._usage.update({key: value for key, value in usage.items() if value is not None})
        error = error_of(chunk, event)
        if error is not None:
            self.error = error
        choices = chunk.get("choices")
        if isinstance(choices, list):
            self._usage_only = self._usage_only or (not choices and isinstance(chunk.get("usage"), dict))
            for position, choice in enumerate(choices):
                if isinstance(choice, dict):
                    self._choice(choice, position)
        elif not apply_typed(self, chunk) and len(chunk) == 1 and isinstance(chunk.get("value"), str):
            self.keep(self.choice(0).text, chunk["value"])  # Writer's completions

    def identify(self, chunk: JsonObject) -> None:
        """Take the id and the model, where they are given."""
        if not self.id and isinstance(chunk.get("id"), str):
            self.id = chunk["id"]
        if not self.model and isinstance(chunk.get("model"), str):
            self.model = chunk["model"]

    def choice(self, index: int) -> ChoiceBuilder:
        """The builder of one choice."""
        found = self.choices.get(index)
        if found is None:
            found = self.choices[index] = ChoiceBuilder()
        return found

    def keep(self, pieces: list[str], text: Any) -> None:
        """Append text, while there is room."""
        if isinstance(text, str) and text and self._room > 0:
            pieces.append(text)
            self._room -= len(text)

    def call(self, choice: ChoiceBuilder, entry: JsonObject) -> None:
        """Take one entry of `tool_calls`, while there is room."""
        if self._room > 0:
            self._room -= choice.calls.add(entry)

    def build(self) -> Reply:
        """The reply as far as it came."""
        choices = [self.choices[index].build(index) for index in sorted(self.choices)]
        finished = bool(choices) and all(choice.finish_reason for choice in choices)
        return Reply(
            id=self.id,
            model=self.model,
            choices=choices,
            usage=read_usage(self._usage) if self._usage else None,
            usage_only_chunk=self._usage_only,
            error=self.error,
            truncated=not (finished or self.done),
        )

    def _choice(self, choice: JsonObject, position: int) -> None:
        index = choice.get("index")
        builder = self.choice(index if isinstance(index, int) else position)
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            delta = choice.get("message")
        if isinstance(delta, dict):
            self._delta(builder, delta)
        self.keep(builder.text, choice.get("text"))  # legacy completions
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish:
            builder.finish_reason = finish

    def _delta(self, builder: ChoiceBuilder, delta: JsonObject) -> None:
        content = delta.get("content")
        if isinstance(content, list):
            for part in content:
                self._part(builder, part)
        else:
            self.keep(builder.text, content)
        self._reasoning(builder, delta)
        self.keep(builder.refusal, delta.get("refusal"))
        calls = delta.get("tool_calls")
        if isinstance(calls, list):
            for entry in calls:
                if isinstance(entry, dict):
                    self.call(builder, entry)
        function = delta.get("function_call")
        if isinstance(function, dict):  # before there were tools
            self.call(builder, {"index": 0, "function": function})

    def _part(self, builder: ChoiceBuilder, part: Json) -> None:
        """One content part: `text`, `refusal`, or Mistral's `thinking`, itself a list of text parts."""
        if not isinstance(part, dict):
            return
        kind = part.get("type")
        if kind == "thinking":
            self.keep(builder.reasoning, _flat(part.get("thinking")))
        elif kind == "refusal":
            self.keep(builder.refusal, part.get("refusal"))
        else:
            self.keep(builder.text, part.get("text"))

    def _reasoning(self, builder: ChoiceBuilder, delta: JsonObject) -> None:
        """Reasoning under the first name that has any: vendors repeat the same text under several."""
        for name in _REASONING_FIELDS:
            text = _flat(delta.get(name))
            if text:
                self.keep(builder.reasoning, text)
                return
        for name in _REASONING_LISTS:
            text = _flat(delta.get(name))
            if text:
                self.keep(builder.reasoning, text)
                return


def _flat(value: Json) -> str:
    """The text of a string, of a part, or of a list of parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_flat(item) for item in value if isinstance(item, dict | str))
    if isinstance(value, dict):
        for name in ("text", "content", "thinking", "summary"):
            inner = value.get(name)
            if isinstance(inner, str) and inner:
                return inner
    return ""


def first_event_error(event: Event) -> JsonObject | None:
    """The error object of an event that reports one, as overflow inside an HTTP 200 does; None for any other event.

    To be asked of the first event with data, before any byte went to the client.
    """
    try:
        chunk = orjson.loads(event.data)
    except orjson.JSONDecodeError:
        return {"message": event.data.decode("utf-8", "replace")} if event.event == "error" else None
    return error_of(chunk, event.event) if isinstance(chunk, dict) else None


def error_of(chunk: JsonObject, event: str | None = None) -> JsonObject | None:
    """The error object in a chunk or a reply: OpenAI's `error`, vLLM's flat one, Anthropic's and the Responses API's
    typed events, an `event: error` line, or one in a choice (OpenRouter)."""
    error = chunk.get("error")
    response = chunk.get("response")
    if not error and isinstance(response, dict):
        error = response.get("error")
    if not error and (event == "error" or chunk.get("type") == "error" or chunk.get("object") == "error"):
        error = chunk
    choices = chunk.get("choices")
    if not error and isinstance(choices, list):
        error = next((c["error"] for c in choices if isinstance(c, dict) and c.get("error")), None)
    if not error:
        return None
    return error if isinstance(error, dict) else {"message": str(error)}
