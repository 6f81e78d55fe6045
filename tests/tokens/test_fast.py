from __future__ import annotations

import math
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.tokens.fast import WHOLE, message_tokens, request_overhead_tokens, text_tokens
from tests.tokens.corpora import corpora


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
def test_within_ten_percent_of_tiktoken_on_each_corpus(shared_data: Path, encoding: str) -> None:
    exact = tiktoken.get_encoding(encoding)
    off = {}
    for kind, documents in corpora(shared_data).items():
        # Big logs are cut: their samples are what is estimated anyway.
        texts = [document[:200_000] for document in documents]
        truth = sum(len(exact.encode_ordinary(text)) for text in texts)
        ratio = sum(text_tokens(text, encoding) for text in texts) / truth
        if not 0.90 <= ratio <= 1.10:
            off[kind] = round(ratio, 3)
    assert not off


@pytest.mark.parametrize(
    "text",
    [
        "Покрените тест и проверите да ли је конфигурација исправна пре него што је пошаљете на сервер. " * 10,
        "Запустите тесты и проверьте, правильно ли настроено соединение, прежде чем отправлять запрос. " * 10,
        "Bitte prüfen Sie die Konfiguration, bevor Sie den Dienst auf dem entfernten Rechner neu starten. " * 10,
        "Vérifiez la configuration du serveur avant de redémarrer le service, puis consultez les journaux. " * 10,
        "يرجى التحقق من إعدادات الخادم قبل إعادة تشغيل الخدمة ثم مراجعة السجلات بعناية للتأكد من عدم وجود أخطاء. " * 10,
        "कृपया सर्वर को फिर से चालू करने से पहले उसकी सेटिंग जाँच लें और फिर त्रुटियों के लिए लॉग देखें। " * 10,
        "โปรดตรวจสอบการตั้งค่าเซิร์ฟเวอร์ก่อนเริ่มบริการใหม่ แล้วดูบันทึกเพื่อหาข้อผิดพลาด " * 10,
    ],
    ids=["Serbian", "Russian", "German", "French", "Arabic", "Hindi", "Thai"],
)
def test_other_languages_stay_near(text: str) -> None:
    truth = len(tiktoken.get_encoding("o200k_base").encode_ordinary(text))
    # One sentence is a small sample of a language, so the bound is wider than for a corpus.
    assert 0.75 <= text_tokens(text) / truth <= 1.3


def test_the_old_rule_would_fail_where_this_one_holds(shared_data: Path) -> None:
    logs = corpora(shared_data)["logs"][0][:200_000]
    truth = len(tiktoken.get_encoding("o200k_base").encode_ordinary(logs))
    assert abs(text_tokens(logs) / truth - 1) < abs((len(logs) / 4 + 1) / truth - 1)


def test_empty_and_single_characters() -> None:
    assert text_tokens("") == 0
    assert [text_tokens(char) for char in "x5."] == [1, 1, 1]


def test_lone_surrogates_are_counted_like_a_replacement() -> None:
    assert text_tokens("\ud800") >= 1


@given(st.text(min_size=1, max_size=400))
def test_bounds_and_determinism(text: str) -> None:
    tokens = text_tokens(text)
    assert tokens == text_tokens(text)
    # A token is at least a byte; o200k's longest are 128 characters of one kind.
    assert 1 <= tokens <= len(text.encode("utf-8", "replace"))
    assert tokens >= math.floor(len(text) / 128)


@settings(max_examples=60)
@given(
    st.sampled_from(["GET /v1/users/{i} 200 {i}ms\n", "def f_{i}(x):\n    return x + {i}\n"]), st.integers(300, 3_000)
)
def test_sampling_agrees_with_looking_at_the_whole(line: str, lines: int) -> None:
    text = "".join(line.replace("{i}", str(i * 7919 % 10_007)) for i in range(lines))
    parts = sum(text_tokens(text[at : at + WHOLE]) for at in range(0, len(text), WHOLE))
    assert abs(text_tokens(text) / parts - 1) < 0.05


def test_a_message_costs_its_text_and_its_frame() -> None:
    assert message_tokens({"role": "user", "content": "hello"}) == 4 + text_tokens("hello")
    assert message_tokens({"role": "user", "content": None}) == 4


def test_a_call_costs_name_arguments_and_its_frame() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"at": "sky"}'}}
    expected = 4 + 8 + text_tokens("look") + text_tokens('{"at": "sky"}')
    assert message_tokens({"role": "assistant", "content": None, "tool_calls": [call]}) == expected


def test_tools_are_counted() -> None:
    tool = {
        "type": "function",
        "function": {
            "name": "read_file",
            "description": "Read one file and give back its lines with their numbers.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string", "description": "Absolute"}}},
        },
    }
    many = [{**tool, "function": {**tool["function"], "name": f"read_{i}"}} for i in range(160)]  # type: ignore[dict-item]
    # 160 definitions of about 30 tokens each.
    assert 160 * 20 < request_overhead_tokens({"tools": many}) < 160 * 60
    assert request_overhead_tokens({}) == 3


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=12,
)
fields = st.sampled_from(
    ["content", "tool_calls", "function_call", "name", "refusal", "reasoning_content", "thinking", "type", "image_url"]
)


@given(st.dictionaries(fields, json_values, max_size=6) | json_values)
def test_no_shape_raises(message: object) -> None:
    assert message_tokens(message) >= 4
    assert message_tokens({"role": "user", "content": [message]}) >= 4
    assert request_overhead_tokens(message) >= 3
    assert request_overhead_tokens({"tools": [message], "response_format": message, "functions": message}) >= 3
