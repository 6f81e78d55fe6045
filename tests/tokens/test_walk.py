from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest

from gateway.tokens.fast import message_tokens, text_tokens
from gateway.tokens.media import family_of, wav_seconds
from gateway.tokens.schema import namespace, reply_schema
from gateway.tokens.walk import Walk, walk_fields, walk_message
from tests.tokens.test_images import png


def walk(**message: Any) -> Walk:
    return walk_message({"role": "user", **message})


def url(data: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def wav(seconds: float, rate: int = 16_000) -> bytes:
    body = bytes(int(seconds * rate * 2))
    form = struct.pack("<HHIIHH", 1, 1, rate, rate * 2, 2, 16)
    riff = b"WAVE" + b"fmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", len(riff)) + riff


def test_all_texts_of_a_message_are_found() -> None:
    found = walk(
        content=[{"type": "text", "text": "one"}, {"type": "input_text", "text": "two"}, "three"],
        name="four",
        refusal="five",
        reasoning_content="six",
        tool_calls=[{"function": {"name": "seven", "arguments": {"eight": 8}}}],
        function_call={"name": "nine", "arguments": "ten"},
        audio={"id": "audio_1"},
        unknown_field="not shown to a model",
    )
    assert found.texts == ["one", "two", "three", "five", "six", "four", "seven", '{"eight":8}', "nine", "ten"]


def test_reasoning_under_two_names_is_counted_once() -> None:
    details = [{"type": "reasoning.text", "text": "because"}]
    assert walk(reasoning="because", reasoning_details=details).texts == ["because"]


def test_anthropic_blocks() -> None:
    found = walk(
        content=[
            {"type": "thinking", "thinking": "hm", "signature": "x" * 400},
            {"type": "tool_use", "id": "t", "name": "look", "input": {"at": 1}},
            {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "sky"}]},
        ]
    )
    assert found.texts == ["hm", "look", '{"at":1}', "sky"]


def test_an_image_costs_its_tiles_not_its_bytes() -> None:
    part = {"type": "image_url", "image_url": {"url": url(png(1024, 1024) + bytes(3_000_000), "image/png")}}
    assert message_tokens({"role": "user", "content": [part]}, "openai", "gpt-4o") == 4 + 765
    part["image_url"] = {**part["image_url"], "detail": "low"}  # type: ignore[dict-item]
    assert message_tokens({"role": "user", "content": [part]}, "openai", "openai/gpt-4o") == 4 + 85


def test_an_image_behind_a_url_gets_an_ordinary_size() -> None:
    part = {"type": "image_url", "image_url": {"url": "https://example.com/picture.jpg"}}
    # 1,536 × 1,024 is scaled to 1,152 × 768: six tiles.
    assert message_tokens({"role": "user", "content": [part]}, "openai", "gpt-4o") == 4 + 85 + 6 * 170


def test_audio_by_its_duration() -> None:
    data = base64.b64encode(wav(30)).decode()
    part = {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}
    assert walk_message({"content": [part]}).fixed == 4 + 300  # a token per 100 ms
    assert walk_message({"content": [part]}, "gemini").fixed == 4 + 960  # 32 a second
    mp3 = {"type": "input_audio", "input_audio": {"data": base64.b64encode(bytes(160_000)).decode(), "format": "mp3"}}
    assert 4 + 95 <= walk_message({"content": [mp3]}).fixed <= 4 + 105  # ten seconds at 128 kbit/s


def test_wav_with_an_open_length() -> None:
    data = wav(2).replace(b"data" + struct.pack("<I", 64_000), b"data" + b"\xff" * 4)
    assert wav_seconds(data[:200], len(data)) == pytest.approx(2.0)


def test_files() -> None:
    text = {"type": "file", "file": {"filename": "a.txt", "file_data": url("héllo".encode(), "text/plain")}}
    assert walk(content=[text]).texts == ["a.txt", "héllo"]
    pdf = b"%PDF-1.7" + b"<< /Type /Pages >>" + b"<< /Type /Page >>" * 3
    part = {"type": "file", "file": {"file_data": url(pdf, "application/pdf")}}
    assert walk(content=[part]).fixed == 4 + 3 * 1_500
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "plain words, here"}}
    assert walk(content=[document]).texts == ["plain words, here"]


def test_an_unknown_part_counts_as_json_but_not_its_encoded_data() -> None:
    part = {"type": "hologram", "shape": "cube", "bytes": "QUJD" * 200_000}
    found = walk(content=[part])
    assert json.loads(found.texts[0]) == {"shape": "cube", "bytes": ""}
    assert found.fixed < 2_000
    chinese = {"type": "note", "body": "字" * 3_000}
    assert "字" * 3_000 in walk(content=[chinese]).texts[0]


def test_nesting_without_end_is_cut() -> None:
    part: Any = {"type": "tool_result"}
    for _ in range(2_000):
        part = {"type": "tool_result", "content": [part]}
    assert message_tokens({"content": part}) >= 4


def test_namespace_of_functions() -> None:
    parameters = {
        "type": "object",
        "required": ["path"],
        "properties": {
            "path": {"type": "string", "description": "Where"},
            "mode": {"enum": ["r", "w"], "default": "r"},
            "node": {"$ref": "#/$defs/Node"},
        },
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
    }
    text = namespace([{"name": "open", "description": " Open it. ", "parameters": parameters}])
    assert text.startswith(
        "namespace functions {\n\n// Open it.\ntype open = (_: {\n// Where\npath: string,\n"
        'mode?: "r" | "w", // default: r\nnode?: {\nnext?: {\n'
    )
    assert text.endswith("}) => any;\n\n} // namespace functions")
    # A schema that refers to itself is cut, not followed for ever.
    assert text.count("next?:") < 40


def test_reply_schema_drops_what_is_not_charged() -> None:
    assert reply_schema({"type": "object", "additionalProperties": False, "required": ["a"]}) == '{"type":"object"}'


def test_fields_of_other_families_are_json() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    assert json.loads(walk_fields({"tools": [tool]}, "qwen").texts[0]) == tool
    # Anthropic documents 346 tokens for the system prompt that comes with tools.
    plain = walk_fields({"tools": [tool]}, "qwen").fixed
    assert walk_fields({"tools": [tool]}, "anthropic").fixed - plain == 346


def test_top_level_system_text_is_counted() -> None:
    assert walk_fields({"system": [{"type": "text", "text": "be kind"}]}).texts == ["be kind"]
    assert message_tokens("a bare string") == 4 + text_tokens("a bare string")


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("gpt-4o", "openai"),
        ("anthropic/claude-sonnet-4-5", "anthropic"),
        ("gemini-2.5-pro", "gemini"),
        ("Qwen/Qwen3-VL-8B", "qwen"),
        ("my-own-model", "openai"),
    ],
)
def test_family_of_a_model(model: str, family: str) -> None:
    assert family_of(model) == family
