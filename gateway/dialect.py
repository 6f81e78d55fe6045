"""What an upstream's chat template can't take, put into a form that it can."""

from __future__ import annotations

from gateway.message import Message, Messages
from gateway.settings import UpstreamSettings


def adapted(messages: Messages, upstream: UpstreamSettings, out: list[Message]) -> list[Message]:
    """The messages as the upstream takes them; the very same list where it takes them as they are."""
    if upstream.developer_to_system:
        out = [
            messages.make({**message.data, "role": "system"}) if message.facts.role == "developer" else message
            for message in out
        ]
    return _merged(messages, out) if upstream.strict_roles else out


def _merged(messages: Messages, given: list[Message]) -> list[Message]:
    """Two user messages in a row become one, their texts apart by an empty line."""
    out: list[Message] = []
    for message in given:
        if out and message.facts.role == "user" == out[-1].facts.role:
            content = _joined(out[-1].data.get("content"), message.data.get("content"))
            out[-1] = messages.make({**out[-1].data, "content": content})
        else:
            out.append(message)
    return out


def _joined(first: object, second: object) -> object:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [*_parts(first), *_parts(second)]


def _parts(content: object) -> list[object]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if isinstance(content, str) else []
