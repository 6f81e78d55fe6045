from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.shrink.signals import ERROR, PLACE, TROUBLE, VERDICT, WARNING, kind_key, signal_lines, strength_of
from tests.shrink import logs
from tests.shrink.data import ci_logs


@pytest.mark.parametrize("line", logs.LOOK_ALIKES)
def test_look_alikes_are_no_errors(line: str) -> None:
    assert strength_of(line) <= WARNING


@pytest.mark.parametrize("name", logs.NAMES)
def test_noise_is_quiet(name: str) -> None:
    noise = logs.log(name, 3_000).text.split("\n")[:700]
    assert [noise[signal.index] for signal in signal_lines(noise) if signal.strength > WARNING] == []


@pytest.mark.parametrize(
    ("line", "least"),
    [
        ("app/models.py:12: error: Incompatible types in assignment", VERDICT),
        ("src/a.py:1:8: F401 `os` imported but unused", ERROR),
        ("PHP Fatal error:  Uncaught Error: Call to undefined function foo()", VERDICT),
        ("Error: INSTALLATION FAILED: cannot re-use a name that is still in use", VERDICT),
        ("curl: (7) Failed to connect to localhost port 8080", ERROR),
        ("NoMethodError: undefined method `name' for nil:NilClass", VERDICT),
        ("ERROR 1064 (42000) at line 3: You have an error in your SQL syntax", ERROR),
        ("E/AndroidRuntime(12345): FATAL EXCEPTION: main", VERDICT),
        ("E0502 10:00:00.123456   1234 reflector.go:138] watch closed", ERROR),
        ("ninja: build stopped: subcommand failed.", TROUBLE),
        ('Exception in thread "main" java.lang.RuntimeException: boom', VERDICT),
        ("Execution halted", ERROR),
        ("make: *** No rule to make target 'foo', needed by 'all'.  Stop.", VERDICT),
        ("Process finished with exit code 139", ERROR),
        ("WARNING: DATA RACE", VERDICT),
        ("fatal error: all goroutines are asleep - deadlock!", VERDICT),
        ("任务执行失败,退出码 1", ERROR),
        ("[错误] 无法连接", VERDICT),
        ("エラー: ファイルが見つかりません", ERROR),
        ("Ошибка: файл не найден", ERROR),
        ("SyntaxError: invalid syntax", VERDICT),
        ("warning: unused variable: `x`", WARNING),
        ("@@ -1,7 +1,7 @@", PLACE),
        ('  File "/app/shop/orders.py", line 12, in total', PLACE),
        ("00:12 +41 -1: test/order_test.dart: totals [E]", VERDICT),
        ("rspec ./spec/models/order_spec.rb:14 # Order#total applies the discount", VERDICT),
        ("    Exit Code:    137", ERROR),
        ("ResolvePackageNotFound:", ERROR),
        ("            got: 91", TROUBLE),
    ],
)
def test_tools_not_in_the_samples(line: str, least: int) -> None:
    assert strength_of(line) >= least


def test_numbered_titles_of_failures_matter_and_numbered_steps_do_not() -> None:
    lines = [
        "  1) Order#total applies the discount",
        "     Failure/Error: expect(order.total).to eq(90)",
        "1) App\\Tests\\OrderTest::testTotal",
        "Failed asserting that 91 matches expected 90.",
        "  2) [chromium] › tests/login.spec.ts:14:5 › logs in",
        "",
        "    Error: Timed out 5000ms waiting for expect(locator).toBeVisible()",
        "To do:",
        "  1) install",
        "  2) run",
        "120 examples, 2 failures",
    ]
    strengths = {signal.index: signal.strength for signal in signal_lines(lines)}
    assert [strengths[index] for index in (0, 2, 4)] == [VERDICT] * 3
    assert not {8, 9} & strengths.keys()


def test_the_level_of_the_line_weighs() -> None:
    assert strength_of("2024-05-02 INFO client saw error: retry later") < TROUBLE
    assert strength_of("2024-05-02 ERROR client saw error: retry later") >= ERROR
    assert strength_of("21:36:09     INFO - TEST-UNEXPECTED-FAIL | a.html | wrong colour") == VERDICT


def test_repeats_share_their_kind() -> None:
    first = "2024-05-02T10:00:01.123Z worker 3: failed to open /srv/a/b.txt at 0xdeadbeef (try 1)"
    second = "2024-06-12T23:59:59.999Z worker 17: failed to open /tmp/c.log at 0x1234 (try 20)"
    assert kind_key(first) == kind_key(second)
    assert kind_key(first) != kind_key("worker 3: refused to open /srv/a/b.txt")


def test_recorded_error_lines_are_verdicts() -> None:
    seen = 0
    for _, text, labels in ci_logs():
        lines = text.split("\n")
        strong = [lines[signal.index] for signal in signal_lines(lines) if signal.strength == VERDICT]
        for label in labels:
            assert any(label in line for line in strong), label
            seen += 1
    assert seen == 62


@settings(max_examples=150)
@given(
    st.lists(
        st.text(max_size=40) | st.sampled_from(["İ error: x", "error\ninside", "失败", "5 errors", "E   assert"]),
        max_size=12,
    )
)
def test_every_signal_names_a_line_in_order(lines: list[str]) -> None:
    found = signal_lines(lines)
    indices = [signal.index for signal in found]
    assert indices == sorted(set(indices))
    assert all(0 <= index < len(lines) for index in indices)
    assert all(PLACE <= signal.strength <= VERDICT for signal in found)


@pytest.mark.parametrize(
    "text", ["error " * 200_000, "a/" * 500_000, "- " * 500_000, "fail\n" * 200_000, "-error" * 150_000], ids=range(5)
)
def test_hostile_input_takes_linear_time(text: str) -> None:
    assert isinstance(signal_lines(text.split("\n")), list)
