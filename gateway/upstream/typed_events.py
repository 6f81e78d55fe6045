"""Replies that name their events by `type`: OpenAI's Responses API and Anthropic's messages.

These pass through the gateway untouched; their text, calls and usage are read where that is plain, so that usage is
counted for them too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gateway.types import JsonObject

if TYPE_CHECKING:
    from gateway.upstream.reply import ReplyBuilder

_TEXT_DELTAS: Final = {"response.output_text.delta": "text", "response.refusal.delta": "refusal"}
_REASONING_DELTAS: Final = ("response.reasoning_text.delta", "response.reasoning_summary_text.delta")
_RESPONSE_ENDS: Final = ("response.completed", "response.incomplete", "response.failed")
_STOP_REASONS: Final = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls"}
"""Anthropic's reasons in OpenAI's words; others keep their own."""


def apply_typed(builder: ReplyBuilder, chunk: JsonObject) -> bool:
    """Take a typed event, or a whole reply of either API; False where `chunk` is neither."""
    kind = chunk.get("type")
    if isinstance(kind, str) and kind.startswith("response."):
        _response_event(builder, kind, chunk)
    elif chunk.get("object") == "response":
        _whole_response(builder, chunk)
    elif kind == "message" and isinstance(chunk.get("content"), list):
        for index, block in enumerate(chunk["content"]):
            _block(builder, index, block)
        _stop(builder, chunk.get("stop_reason"))
    elif isinstance(kind, str) and kind.startswith(("message_", "content_block_")):
        _message_event(builder, kind, chunk)
    else:
        return False
    return True


def _response_event(builder: ReplyBuilder, kind: str, chunk: JsonObject) -> None:
    response = chunk.get("response")
    if isinstance(response, dict):
        builder.identify(response)
    if kind in _TEXT_DELTAS:
        builder.keep(getattr(builder.choice(0), _TEXT_DELTAS[kind]), chunk.get("delta"))
    elif kind in _REASONING_DELTAS:
        builder.keep(builder.choice(0).reasoning, chunk.get("delta"))
    elif kind == "response.output_item.done":
        _function_call(builder, chunk.get("item"))
    elif kind in _RESPONSE_ENDS and isinstance(response, dict):
        _finish_response(builder, response)


def _whole_response(builder: ReplyBuilder, response: JsonObject) -> None:
    output = response.get("output")
    for item in output if isinstance(output, list) else []:
        if not isinstance(item, dict):
            continue
        _function_call(builder, item)
        parts = [item.get("content"), item.get("summary")]
        for part in (part for group in parts if isinstance(group, list) for part in group):
            if not isinstance(part, dict):
                continue
            choice = builder.choice(0)
            if item.get("type") == "reasoning":
                builder.keep(choice.reasoning, part.get("text"))
            else:
                builder.keep(choice.text, part.get("text"))
                builder.keep(choice.refusal, part.get("refusal"))
    _finish_response(builder, response)


def _function_call(builder: ReplyBuilder, item: Any) -> None:
    if isinstance(item, dict) and item.get("type") == "function_call":
        function = {"name": item.get("name"), "arguments": item.get("arguments")}
        builder.call(builder.choice(0), {"id": item.get("call_id"), "function": function})


def _finish_response(builder: ReplyBuilder, response: JsonObject) -> None:
    status = response.get("status")
    choice = builder.choice(0)
    if status == "completed":
        choice.finish_reason = "tool_calls" if choice.calls.calls() else "stop"
    elif status == "incomplete":
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        choice.finish_reason = "length" if reason in (None, "max_output_tokens") else str(reason)


def _message_event(builder: ReplyBuilder, kind: str, chunk: JsonObject) -> None:
    if kind == "message_start" and isinstance(chunk.get("message"), dict):
        builder.identify(chunk["message"])
    elif kind == "content_block_start":
        _block(builder, chunk.get("index"), chunk.get("content_block"), started=True)
    elif kind == "content_block_delta" and isinstance(chunk.get("delta"), dict):
        delta = chunk["delta"]
        choice = builder.choice(0)
        builder.keep(choice.text, delta.get("text"))
        builder.keep(choice.reasoning, delta.get("thinking"))
        if isinstance(delta.get("partial_json"), str):
            builder.call(choice, {"index": chunk.get("index"), "function": {"arguments": delta["partial_json"]}})
    elif kind == "message_delta" and isinstance(chunk.get("delta"), dict):
        _stop(builder, chunk["delta"].get("stop_reason"))


def _block(builder: ReplyBuilder, index: Any, block: Any, *, started: bool = False) -> None:
    """A content block, whole or (`started`) as a stream opens it, its input still to come."""
    if not isinstance(block, dict):
        return
    choice = builder.choice(0)
    kind = block.get("type")
    if kind == "text":
        builder.keep(choice.text, block.get("text"))
    elif kind == "thinking":
        builder.keep(choice.reasoning, block.get("thinking"))
    elif kind == "tool_use":
        function = {"name": block.get("name"), "arguments": None if started else block.get("input")}
        builder.call(choice, {"index": index, "id": block.get("id"), "function": function})


def _stop(builder: ReplyBuilder, reason: Any) -> None:
    if isinstance(reason, str):
        builder.choice(0).finish_reason = _STOP_REASONS.get(reason, reason)
