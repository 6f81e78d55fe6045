from __future__ import annotations

from gateway.shrink.parts import map_text, texts


def test_a_string_is_mapped_into_a_copy() -> None:
    message = {"role": "tool", "tool_call_id": "1", "content": "abc", "extra": 1}
    assert map_text(message, str.upper) == {"role": "tool", "tool_call_id": "1", "content": "ABC", "extra": 1}
    assert message["content"] == "abc"


def test_only_text_parts_are_mapped() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:x"}}
    message = {
        "role": "tool",
        "content": [{"type": "text", "text": "a", "cache_control": {}}, image, {"type": "text", "text": "B"}],
    }
    changed = map_text(message, str.upper)
    assert changed is not None
    assert changed["content"] == [
        {"type": "text", "text": "A", "cache_control": {}},
        image,
        {"type": "text", "text": "B"},
    ]
    assert changed["content"][1] is image
    assert texts(message) == ["a", "B"]


def test_unchanged_is_none() -> None:
    assert map_text({"role": "tool", "content": "ABC"}, str.upper) is None
    assert map_text({"role": "tool", "content": "abc"}, lambda _: None) is None
    assert (
        map_text({"role": "tool", "content": [{"type": "text", "text": "A"}, "odd", {"type": "text"}]}, str.upper)
        is None
    )
    assert map_text({"role": "assistant", "content": None}, str.upper) is None
    assert map_text({"role": "assistant"}, str.upper) is None
