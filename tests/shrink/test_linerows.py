from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.shrink.cost import tokens
from gateway.shrink.fold import fold
from gateway.shrink.linerows import fold_rows, has_rows, unfold_rows
from gateway.shrink.signals import WARNING, strength_of
from tests.shrink.data import ci_logs, need

PLACE = "/opt/miniconda3/envs/testbed/lib/python3.9/site-packages"
INSTALLED = [("pytz", "2024.2"), ("simplejson", "3.19.3"), ("mypy", "0.910"), ("flake8", "4.0.1"), ("tox", "4.23.2")]

_words = st.sampled_from(["a", "bb", "", "{}", "12", "13", "é", "\r", '"', "x" * 9, "[5 lines", "中文", "\ud800", "\t"])
_starts = st.sampled_from(
    ["2026-11-30T10:00:01.250Z worker-7 INFO ", "src/gateway/very/long/path/of/a/file.py:", "  - "]
)
_lines = st.builds(lambda start, words: start + " ".join(words), _starts, st.lists(_words, max_size=6))
_texts = st.lists(_lines, max_size=40).map(sorted).map("\n".join)


def test_lines_of_one_form_become_rows() -> None:
    lines = [f"Requirement already satisfied: {name} in {PLACE} (from app==1.0) ({at})" for name, at in INSTALLED]
    folded = fold_rows("\n".join(["Collecting app", *lines, "Successfully installed app-1.0"]))
    assert folded.split("\n") == [
        "Collecting app",
        f'[5 lines of the form "Requirement already satisfied: {{}} in {PLACE} (from app==1.0) ({{}})"'
        "; their {} are:]",
        "pytz 2024.2",
        "simplejson 3.19.3",
        "mypy 0.910",
        "flake8 4.0.1",
        "tox 4.23.2",
        "Successfully installed app-1.0",
    ]


def test_what_follows_a_shared_beginning_stays_word_for_word() -> None:
    code = [
        "    def create(self):",
        "        return self._post(",
        "    stream: bool,",
        "    @overload",
        "    ) -> None:",
        "x = 1",
        "",
    ]
    matches = [f"src/openai/resources/chat/completions.py:{n}:{line}" for n, line in enumerate(code, 98)]
    assert fold_rows("\n".join(matches)).split("\n") == [
        '[7 lines of the form "src/openai/resources/chat/completions.py:{}"; their {} are:]',
        "98:    def create(self):",
        "99:        return self._post(",
        "100:    stream: bool,",
        "101:    @overload",
        "102:    ) -> None:",
        "103:x = 1",
        "104:",
    ]


def test_times_are_cut_at_their_parts() -> None:
    lines = [f"[task 2025-02-13T21:59:{35 + n}.77{n}Z] INFO - step {'abcdefgh'[n] * (n + 2)} begun" for n in range(6)]
    head, first, *_ = fold_rows("\n".join(lines)).split("\n")
    assert head == '[6 lines of the form "[task 2025-02-13T21:59:{}] INFO - step {} begun"; their {} are:]'
    assert first == "35.770Z aa"


def test_lines_that_report_trouble_stay_word_for_word() -> None:
    lines = [f"2026-11-30T10:00:00.{n:03}Z worker-7 pid=4711 read block {n * 7919 % 97}" for n in range(30)]
    lines[12] = "2026-11-30T10:00:00.012Z worker-7 pid=4711 ERROR: checksum of block 3 differs"
    folded = fold_rows("\n".join(lines)).split("\n")
    assert lines[12] in folded
    assert len([line for line in folded if "of the form" in line]) == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "one line",
        "\n".join(f"name_{n}: {n * n}" for n in range(40)),  # too little is shared
        "\n".join(f"/very/long/path/of/the/repository/part_{n}.py" for n in range(3)),  # too few
        "\n".join(f"/very/long/path/of/the/repository/{{}}/part_{n}.py" for n in range(9)),  # could not be read back
        "\n".join(["/very/long/path/of/the/repository"] * 9),  # nothing differs
    ],
)
def test_left_alone(text: str) -> None:
    assert fold_rows(text) == text


def test_a_file_s_own_text_is_not_folded_to_rows() -> None:
    text = "\n".join(f"{PLACE}/package_{word} is up to date" for word in "abcdefgh")
    assert has_rows(fold(text))
    assert fold(text, quotable=True) == text


@pytest.mark.parametrize(
    "line",
    [
        "from gateway.shrink.very_long_module_name import function_{}",
        "import org.apache.commons.lang3.very.long.package.name.Class{};",
        '    self.assertEqual(first_of_a_long_line, second_of_it, "case {}")',
        "+from gateway.shrink.very_long_module_name import function_{}",
        "12:from gateway.shrink.very_long_module_name import function_{}",
    ],
)
def test_code_is_not_folded_to_rows(line: str) -> None:
    text = "\n".join(line.replace("{}", word) for word in "abcdefgh")
    assert fold_rows(text) == text


@given(_texts)
def test_rows_unfold_to_the_very_text(text: str) -> None:
    if not has_rows(text):
        folded = fold_rows(text)
        assert unfold_rows(folded) == text
        assert len(folded) <= len(text)


@given(_texts)
def test_folding_twice_is_folding_once(text: str) -> None:
    once = fold(text)
    assert fold(once) == once


def test_recorded_logs_unfold_and_keep_each_line_of_trouble() -> None:
    won = 0
    for _, text, labels in ci_logs():
        folded = fold_rows(text)
        assert unfold_rows(folded) == text
        assert [line for line in labels if strength_of(line) >= WARNING and line not in folded] == []
        won += tokens(text) - tokens(folded)
    assert won > 500_000  # of 2.4 million: times, levels and paths


def test_recorded_search_results_unfold() -> None:
    text = need("tool_outputs/grep_stream_openai_python.txt").read_text()
    folded = fold_rows(text)
    assert unfold_rows(folded) == text
    assert tokens(folded) < 0.9 * tokens(text)


def test_time_grows_with_the_size_alone() -> None:
    hostile = ["a b " * 30 + str(n * n) for n in range(400)] + ["a b " * 10 + "c" * n for n in range(400)]
    small, large = "\n".join(hostile), "\n".join(hostile * 8)
    begun = time.perf_counter()
    fold_rows(small)
    one = time.perf_counter() - begun
    fold_rows(large)
    assert time.perf_counter() - begun < 40 * one + 1
