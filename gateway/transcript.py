"""Messages written out as plain text, for a model that reads them as material: the summariser, the extractor."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.message import Message, functions_called, text_of
from gateway.tokens.fast import text_tokens

GAP_TOKENS = 1
"""Between two messages."""


def written(message: Message) -> str:
    """One message: who speaks, what is said, which tools are called."""
    data = message.data
    lines = [text_of(data)] if text_of(data) else []
    for _, function in functions_called(data):
        lines.append(f"→ {function.get('name')}({function.get('arguments')})")
    if message.facts.has_image:
        lines.append("(an image)")
    name = {"tool": "tool result", "function": "tool result"}.get(message.facts.role, message.facts.role)
    return f"[{name}]\n" + "\n".join(lines)


def pieces(messages: Sequence[Message], chunk: int, most: int) -> list[str]:
    """The messages as texts of about `chunk` messages and at most `most` tokens each.

    A call is never parted from its replies while they fit together; a message over `most` is split.
    """
    out: list[str] = []
    for group in _chunks(messages, chunk):
        parts: list[str] = []
        size = 0
        for message in group:
            for part in _split(written(message), most):
                tokens = text_tokens(part) + GAP_TOKENS
                if parts and size + tokens > most:
                    out.append("\n\n".join(parts))
                    parts, size = [], 0
                parts.append(part)
                size += tokens
        if parts:
            out.append("\n\n".join(parts))
    return out


def _chunks(messages: Sequence[Message], chunk: int) -> list[list[Message]]:
    groups: list[list[Message]] = []
    for message in messages:
        if not groups or (len(groups[-1]) >= chunk and not message.facts.is_tool):
            groups.append([])
        groups[-1].append(message)
    return groups


def _split(text: str, most: int) -> list[str]:
    tokens = text_tokens(text)
    if tokens <= most:
        return [text]
    step = max(1, len(text) * most // tokens * 9 // 10)
    parts: list[str] = []
    position = 0
    while position < len(text):
        end = min(len(text), position + step)
        border = text.rfind("\n", position + step // 2, end)
        end = border + 1 if border > 0 and end < len(text) else end
        parts += (
            _split(text[position:end], most)
            if text_tokens(text[position:end]) > most and end - position > 1
            else [text[position:end]]
        )
        position = end
    return parts
