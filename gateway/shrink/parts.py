"""A text function applied to a message's content, whichever of its two shapes that has."""

from __future__ import annotations

from collections.abc import Callable

from gateway.types import ChatMessage, Json


def map_text(message: ChatMessage, fn: Callable[[str], str | None]) -> ChatMessage | None:
    """A copy of `message` with `fn` applied to its content, or to each text part of it; None where nothing changed.

    `fn` gives the new text, or None to leave it. Parts of other types, unknown fields and the original stay untouched.
    """
    content = message.get("content")
    if isinstance(content, str):
        changed = _mapped(content, fn)
        return None if changed is None else {**message, "content": changed}
    if not isinstance(content, list):
        return None
    parts = [_mapped_part(part, fn) for part in content]
    if all(new is None for new in parts):
        return None
    return {**message, "content": [old if new is None else new for old, new in zip(content, parts, strict=True)]}


def texts(message: ChatMessage) -> list[str]:
    """The message's text: its content, or the text of each text part; empty where it has none."""
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content if _is_text(part)] if isinstance(content, list) else []


def _is_text(part: Json) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)


def _mapped_part(part: Json, fn: Callable[[str], str | None]) -> Json | None:
    if not _is_text(part):
        return None
    changed = _mapped(part["text"], fn)
    return None if changed is None else {**part, "text": changed}


def _mapped(text: str, fn: Callable[[str], str | None]) -> str | None:
    changed = fn(text)
    return None if changed == text else changed
