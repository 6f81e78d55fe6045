"""The memory block in a message: after the original system text, or in a system message of its own."""

from __future__ import annotations

from gateway.message import Message, Messages


def with_block(messages: Messages, first: Message, block: str) -> Message:
    """The system message with the block at its end; a new one where the conversation begins with none."""
    if not first.facts.is_instruction:
        return messages.make({"role": "system", "content": block})
    content = first.data.get("content")
    if isinstance(content, list):
        return messages.make({**first.data, "content": [*content, {"type": "text", "text": block}]})
    text = content if isinstance(content, str) else ""
    return messages.make({**first.data, "content": f"{text}\n\n{block}" if text else block})


def mid_message(messages: Messages, block: str) -> Message:
    """The block on its own, for upstreams that take a system message in the middle."""
    return messages.make({"role": "system", "content": block})
