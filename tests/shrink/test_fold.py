from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.shrink.cost import tokens
from gateway.shrink.fold import fold
from gateway.shrink.terminal import overwrite, strip_escapes
from tests.shrink.data import tool_results

_pieces = st.sampled_from(
    [
        "\n",
        "\r",
        "\r\n",
        "  ",
        "a",
        "ab 12",
        "10%",
        "2024-01-02 10:00:01 done",
        "\x1b[31m",
        "\x1b]0;t\x07",
        "{}",
        "[×3]",
        "é",
        "中",
        "\x08",
        "x" * 30,
        "[… ×4 alike …]",
        "3fa9c1d2e4b5 pulled",
        "\ud800",
        "\t",
    ]
)
_texts = st.lists(_pieces, max_size=60).map("".join)


def test_escapes_go() -> None:
    assert fold("\x1b[1;34mINFO\x1b[m ok\x1b]8;;http://x\x07 link\x1b(B") == "INFO ok link"
    assert strip_escapes("\x1b\x1b[0m[0m\x9b1mx") == "[0mx"


def test_progress_overwritten_keeps_its_last_step() -> None:
    assert overwrite("a\n 10%|#   |\r 50%|##  |\r100%|####|\nb") == "a\n100%|####|\nb"


def test_overwriting_loses_no_message() -> None:
    assert overwrite("error: disk full\rretrying\rdone") == "error: disk full\nretrying\ndone"


def test_crlf_is_left_alone() -> None:
    assert fold("one\r\ntwo\r\nthree\r\n") == "one\r\ntwo\r\nthree\r\n"


def test_equal_lines_become_one_and_a_count() -> None:
    line = "WARNING: clock skew detected"
    assert fold("\n".join(["start", *[line] * 48, "end"])) == f"start\n{line}\n[×48]\nend"


def test_lines_that_differ_in_time_or_counter_keep_first_and_last() -> None:
    lines = [f"2024-05-02 10:00:{n:02d} INFO waiting for the database" for n in range(30)]
    assert fold("\n".join(lines)) == f"{lines[0]}\n[… ×28 alike …]\n{lines[-1]}"
    steps = [f"[{n}/120] Building CXX object core.o" for n in range(1, 121)]
    assert fold("\n".join(steps)) == f"{steps[0]}\n[… ×118 alike …]\n{steps[-1]}"


def test_image_layers_fold() -> None:
    lines = [
        f"{layer}: Pulling fs layer"
        for layer in ("a3ed95caeb02", "8f4e2b1c9d0a", "77c1f9e0a2b3", "1b2c3d4e5f60", "9f8e7d6c5b4a")
    ]
    assert fold("\n".join(lines)) == f"{lines[0]}\n[… ×3 alike …]\n{lines[-1]}"


@pytest.mark.parametrize(
    "text",
    [
        "1,20,300\n2,25,310\n3,31,290\n4,18,305\n5,22,307\n6,90,1\n7,3,4\n8,5,5\n9,1,2\n10,11,12\n11,8,8\n12,0,3",
        "def f():\n    if x:\n        return 1\n\n    return 2\n",
        "-rw-r--r-- 1 u u  120 a.py\n-rw-r--r-- 1 u u  950 b.py\n-rw-r--r-- 1 u u   11 c.py",
        "commit 3fa9c1d2e4b5a697\ncommit 9f8e7d6c5b4a3210\ncommit 0a1b2c3d4e5f6071\ncommit 77c1f9e0a2b31234",
        "3: x = 1\n4: y = 7\n5: z = 2\n6: w = 5",
    ],
)
def test_data_and_code_stay(text: str) -> None:
    assert fold(text) == text.rstrip(" ")


def test_repeated_blocks_fold() -> None:
    block = ["Entering directory /srv/app/module", "Nothing to be done for the target all"]
    assert fold("\n".join([*block * 5, "done"])) == "\n".join([*block, "[the 2 lines above ×5]", "done"])


def test_text_of_files_that_may_be_quoted_stays() -> None:
    text = '{\n  "name": "x",\n  "version": "1.0.0"  \n}\n' + "\n" * 40
    assert fold(text, quotable=True) == text
    assert fold("\x1b[1m" + text, quotable=True) == text


def test_json_with_space_around_it_folds() -> None:
    value = [{"name": f"n{n}", "size": n} for n in range(20)]
    folded = fold("\n" + json.dumps(value, indent=2) + "\n")
    assert folded.startswith('{"columns":["name","size"],"rows":[["n0",0],')


@settings(max_examples=200)
@given(_texts | st.text(max_size=200))
def test_idempotent_and_never_longer(text: str) -> None:
    once = fold(text)
    assert fold(once) == once
    assert len(once) <= len(text)
    quotable = fold(text, quotable=True)
    assert fold(quotable, quotable=True) == quotable
    assert len(quotable) <= len(text)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000,
        "\n" * 200_000,
        "[" * 100_000,
        '{"a":' * 50_000,
        "\x1b" * 300_000,
        "a\x08" * 100_000,
        "\r" * 300_000,
        "\x1b]" * 100_000,
        "12 " * 300_000,
        "0" * 500_000 + "\n" + "1" * 500_000,
        "a 1\nb 2\n" * 50_000,
        "=" * 1_000_000,
    ],
    ids=range(12),
)
def test_hostile_input_is_folded_in_linear_time(text: str) -> None:
    once = fold(text)
    assert len(once) <= len(text)
    assert fold(once) == once


def test_recorded_results_lose_tokens_and_nothing_else() -> None:
    before = after = 0
    for calls in tool_results("tau_bench_airline"):
        for _, _, result in calls:
            before += tokens(result)
            after += tokens(fold(result))
    assert after < 0.88 * before  # the aim is 12 %


def test_recorded_results_of_a_coding_agent_keep_every_distinct_line() -> None:
    for calls in tool_results("swe_agent"):
        for _, _, result in calls:
            folded = fold(result)
            lines = set(folded.split("\n"))
            if "×" not in folded and "\r" not in result and "\x1b" not in result and result[:1] not in "{[":
                assert {line.rstrip() for line in result.split("\n")} == lines
