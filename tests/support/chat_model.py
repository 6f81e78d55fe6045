"""The scripted upstream's default behaviour: a model with a window, that counts what it is sent with the real
tokenizer.

The gateway estimates; this is the truth it is held against. It knows nothing of the gateway: it refuses what is
over the window in OpenAI's words, answers any agent turn with a short text that depends only on the request, and
tells a summariser's call from the agent's by what the client said it would send (`announce`): a call that does not
end in the client's newest message is no turn of the agent.
"""

from __future__ import annotations

import functools
import hashlib
import threading
from dataclasses import dataclass, field
from typing import Any

import orjson
import tiktoken

from tests.support.upstream import Call, Reply, error_reply, json_reply, sse_reply

MESSAGE_OVERHEAD = 3
"""Tokens around each message, and again to prime the reply: OpenAI's cookbook, "How to count tokens with tiktoken"."""
IMAGE_TOKENS = 765
"""A 1024 × 1024 image at high detail by OpenAI's tile rule: 85 + 4 × 170. Tests on windows send no other."""

SUMMARY = (
    "Goal: finish the task the user set at the start. Decisions: keep the plan as agreed. "
    "Files: src/app.py, tests/test_app.py. "
    "Progress: the first steps are done and checked. Errors: a failing import was fixed by adding the missing package. "
    "Next: go on with the newest request."
)


@functools.cache
def _encoding() -> tiktoken.Encoding:
    return tiktoken.get_encoding("o200k_base")


@functools.lru_cache(maxsize=20_000)
def count_text(text: str) -> int:
    """Tokens of one text by o200k_base, special tokens read as text."""
    return len(_encoding().encode(text, disallowed_special=()))


def count_message(message: dict[str, Any]) -> int:
    """Tokens of one message: overhead, role, name, content, refusals, reasoning and tool calls."""
    total = MESSAGE_OVERHEAD + count_text(str(message.get("role", "")))
    content = message.get("content")
    if isinstance(content, str):
        total += count_text(content)
    for part in content if isinstance(content, list) else []:
        image = isinstance(part, dict) and part.get("type") == "image_url"
        total += IMAGE_TOKENS if image else count_text(str(part.get("text", "")) if isinstance(part, dict) else "")
    for key in ("name", "refusal", "reasoning_content", "tool_call_id"):
        if isinstance(message.get(key), str):
            total += count_text(message[key])
    for call in message.get("tool_calls") or []:
        function = call.get("function") or {}
        total += count_text(str(call.get("id", ""))) + count_text(str(function.get("name", "")))
        total += count_text(str(function.get("arguments", "")))
    return total


def count_request(request: dict[str, Any]) -> int:
    """The prompt's tokens: messages, tool definitions as compact JSON, and the priming of the reply."""
    total = MESSAGE_OVERHEAD + sum(count_message(message) for message in request.get("messages", []))
    for key in ("tools", "response_format"):
        if request.get(key):
            total += count_text(orjson.dumps(request[key]).decode())
    return total


def message_key(message: dict[str, Any]) -> str:
    """What names a message even where a stage has shrunk it: its role with its call id, else with its text."""
    mark = message.get("tool_call_id") or orjson.dumps(message.get("content")).decode()
    return f"{message.get('role')}:{mark}"


@dataclass
class Turn:
    """One call the model took part in."""

    request: dict[str, Any]
    prompt_tokens: int
    summariser: bool
    refused: bool


@dataclass
class ChatModel:
    """A handler for `Upstream`: `window` in tokens, None for no limit."""

    window: int | None = None
    summary: str | None = SUMMARY
    """What a summariser is answered; None: a 500."""
    turns: list[Turn] = field(default_factory=list)
    _announced: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def announce(self, messages: list[dict[str, Any]]) -> None:
        """The client is about to send these: a call that ends in the last of them is the agent's."""
        with self._lock:
            self._announced.add(message_key(messages[-1]))

    @property
    def agent_turns(self) -> list[Turn]:
        """Calls that were the agent's own, in order."""
        return [turn for turn in self.turns if not turn.summariser]

    @property
    def side_calls(self) -> list[Turn]:
        """Calls the gateway made on its own account."""
        return [turn for turn in self.turns if turn.summariser]

    def __call__(self, call: Call) -> Reply:
        if not call.target.split("?")[0].endswith("/chat/completions"):
            return error_reply(404, f"Invalid URL ({call.method} {call.target})")
        request = call.json()
        tokens = count_request(request)
        last = request["messages"][-1] if request.get("messages") else {}
        with self._lock:
            summariser = bool(self._announced) and message_key(last) not in self._announced
            reserved = request.get("max_completion_tokens") or request.get("max_tokens") or 0
            refused = self.window is not None and tokens + reserved > self.window
            self.turns.append(Turn(request, tokens, summariser, refused))
        if refused:
            return overflow_reply(self.window or 0, tokens, reserved)
        if not summariser:
            return completion_reply(request, tokens, reply_text(request))
        if self.summary is None:
            return error_reply(500, "The summariser is down.")
        return completion_reply(request, tokens, self.summary)


def reply_text(request: dict[str, Any]) -> str:
    """A short answer that depends only on what was asked."""
    digest = hashlib.sha256(orjson.dumps(request.get("messages"))).hexdigest()
    return f"Noted, going on with step {digest[:8]}."


def overflow_reply(window: int, prompt: int, reserved: int = 0) -> Reply:
    """OpenAI's refusal of a prompt over the window."""
    message = (
        f"This model's maximum context length is {window} tokens. However, you requested {prompt + reserved} tokens "
        f"({prompt} in the messages, {reserved} in the completion). "
        "Please reduce the length of the messages or completion."
    )
    return error_reply(400, message, "context_length_exceeded")


def completion_reply(request: dict[str, Any], prompt_tokens: int, text: str) -> Reply:
    """A whole completion, plain or streamed as the request asks, with true usage."""
    completion = count_text(text)
    usage = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion,
        "total_tokens": prompt_tokens + completion,
    }
    common = {"id": "chatcmpl-scripted", "created": 1_700_000_000, "model": request.get("model")}
    if not request.get("stream"):
        message = {"role": "assistant", "content": text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return json_reply({**common, "object": "chat.completion", "choices": [choice], "usage": usage})
    words = text.split(" ")
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": word if index == 0 else f" {word}"} for index, word in enumerate(words)]
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    if (request.get("stream_options") or {}).get("include_usage"):
        chunks.append({"choices": [], "usage": usage})
    lines = [b"data: " + orjson.dumps({**common, "object": "chat.completion.chunk", **chunk}) for chunk in chunks]
    return sse_reply(b"".join(line + b"\n\n" for line in [*lines, b"data: [DONE]"]))
