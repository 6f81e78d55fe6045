"""The demo's tool results: long, plausible and the same on every run, so that a small trace fills a window.

What makes an agent's context grow is the output of its tools: files, test runs, build logs, query results. Shipping
such texts would take megabytes; they are made here instead, from a seed, with what real ones have: colours, progress
bars that overwrite themselves, hundreds of lines that say "ok" and a few in the middle that matter.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence

Maker = Callable[[random.Random, int], str]

_NOUNS = ("row", "batch", "ledger", "account", "entry", "cursor", "window", "rate", "total", "queue", "file", "limit")
_VERBS = ("load", "parse", "flush", "merge", "check", "store", "split", "count", "close", "fetch", "sort", "match")
_UNITS = ("reader", "writer", "index", "pool", "clock", "router", "schema", "codec", "journal", "planner")
_PACKAGES = ("aiolib", "bandit", "cachet", "delta", "ember", "fastcsv", "gridkit", "harness", "ioutil", "jsonette")
_ZH_EVENTS = (
    "泊位分配完成",
    "收到船舶进港申请",
    "更新潮汐数据",
    "写入作业计划",
    "同步堆场状态",
    "心跳正常",
    "重新计算队列",
)
GREEN, RED, RESET = "\x1b[32m", "\x1b[31m", "\x1b[0m"


def make_output(spec: str | Sequence[str | int]) -> str:
    """The text of a tool result: `spec` itself, or `[maker, seed, size, …]` run through the maker."""
    if isinstance(spec, str):
        return spec
    maker, seed, size, *more = spec
    state = random.Random(f"{maker} {seed}")
    if maker == "pytest":
        return pytest_run(state, int(size), int(more[0]))
    return MAKERS[str(maker)](state, int(size))


def source(state: random.Random, lines: int) -> str:
    """A module of about `lines` lines."""
    out = ['"""Part of the service."""', "", "import logging", "", "log = logging.getLogger(__name__)", ""]
    while len(out) < lines:
        verb, noun, unit = state.choice(_VERBS), state.choice(_NOUNS), state.choice(_UNITS)
        out += ["", f"def {verb}_{noun}_{len(out)}(self, {noun}s, {unit}=None, size={state.randrange(8, 4096)}):"]
        out.append(f'    """{verb.capitalize()} each {noun} that the {unit} has not seen."""')
        for _ in range(state.randrange(3, 9)):
            left, right = state.choice(_NOUNS), state.choice(_UNITS)
            out.append(f"    {left}_{state.choice(_VERBS)}ed = self.{right}.{state.choice(_VERBS)}({noun}s, {left!r})")
        out.append(f"    log.debug('{verb}ed %d {noun}s', len({noun}s))")
        out.append(f"    return {noun}s")
    return "\n".join(out)


def pytest_run(state: random.Random, tests: int, failures: int) -> str:
    """A verbose test run; its failures are in the middle and in the summary."""
    bad = set(state.sample(range(tests // 4, 3 * tests // 4), failures))
    names = [f"tests/test_{state.choice(_UNITS)}.py::test_{state.choice(_VERBS)}_{number}" for number in range(tests)]
    out = ["=" * 30 + " test session starts " + "=" * 30, f"collected {tests} items", ""]
    for number, name in enumerate(names):
        verdict = f"{RED}FAILED{RESET}" if number in bad else f"{GREEN}PASSED{RESET}"
        out.append(f"{name} {verdict} [{100 * (number + 1) // tests:3d}%]")
    for number in sorted(bad):
        line, noun = state.randrange(20, 200), state.choice(_NOUNS)
        out += ["", f"______ {names[number].rsplit(':', 1)[-1]} ______", f">       assert {noun}s == expected"]
        out += [f"E       AssertionError: {noun}s: 6 items, expected 7", f"{names[number].split(':')[0]}:{line}"]
    seconds = state.randrange(300, 3000) / 100
    said = f"{failures} failed, {tests - failures} passed" if failures else f"{tests} passed"
    return "\n".join([*out, "", f"======== {said} in {seconds:.2f}s ========"])


def build(state: random.Random, lines: int) -> str:
    """A build log whose few errors stand in the middle."""
    out = []
    for number in range(lines):
        unit, noun, verb = state.choice(_UNITS), state.choice(_NOUNS), state.choice(_VERBS)
        other = state.choice(_UNITS)
        out.append(
            f"[{number + 1}/{lines}] compiling src/{unit}/{verb}_{noun}.c against the {other} headers, no warnings"
        )
    at = lines // 2
    out[at : at + 1] = [
        "/usr/bin/ld: cannot find -lpq: No such file or directory",
        "collect2: error: ld returned 1 exit status",
        "make[1]: *** [Makefile:87: native] Error 1",
    ]
    return "\n".join([*out, f"{lines} steps, 1 failed"])


def install(state: random.Random, packages: int) -> str:
    """An installer's output, with progress bars that overwrite themselves."""
    out = []
    for number in range(packages):
        name = f"{state.choice(_PACKAGES)}-{number}"
        size = state.randrange(100, 9000)
        out.append(f"Collecting {name}>={state.randrange(1, 9)}.{state.randrange(20)}")
        bars = (f"     {'━' * step}{' ' * (20 - step)} {size * step // 20}/{size} kB" for step in range(0, 21, 2))
        out.append("\r".join(bars))
    return "\n".join([*out, f"Successfully installed {packages} packages"])


def grep(state: random.Random, hits: int) -> str:
    """Hits of a search in code."""
    return "\n".join(
        f"src/harbor/{state.choice(_UNITS)}.py:{state.randrange(1, 400)}:"
        f"    {state.choice(_NOUNS)}s = {state.choice(_VERBS)}(last_row, {state.choice(_NOUNS)})"
        for _ in range(hits)
    )


def records(state: random.Random, count: int) -> str:
    """A JSON array of uniform objects, as APIs and query tools return them."""
    rows = [
        {
            "id": 4000 + number,
            "ref": f"{state.choice(_PACKAGES)}-{state.randrange(10_000):04d}",
            "account": state.choice(_UNITS),
            "amount": state.randrange(100_000) / 100,
            "state": state.choice(("open", "closed", "held")),
        }
        for number in range(count)
    ]
    return json.dumps(rows, indent=2)


def tree(state: random.Random, files: int) -> str:
    """A listing of a repository."""
    names = {
        f"src/harbor/{state.choice(_UNITS)}/{state.choice(_VERBS)}_{state.choice(_NOUNS)}.py" for _ in range(files)
    }
    return "\n".join(["README.md", "CHANGELOG.md", ".ci/build.yaml", *sorted(names), "tests/test_importer.py"])


def yaml(state: random.Random, steps: int) -> str:
    """A CI workflow."""
    out = ["steps:", "  - run: apt-get install -y gcc"]
    for number in range(steps // 2):
        out += [
            f"  - name: {state.choice(_VERBS)} {state.choice(_UNITS)} {number}",
            f"    run: make {state.choice(_NOUNS)}",
        ]
    return "\n".join(out)


def gitlog(state: random.Random, commits: int) -> str:
    """The last commits, with the files they touched."""
    out = []
    for _ in range(commits):
        out.append(f"commit {state.getrandbits(160):040x}")
        out += [f"    {state.choice(_VERBS).capitalize()} the {state.choice(_NOUNS)}", ""]
        for unit in state.sample(_UNITS, 4):
            out.append(f" src/harbor/{unit}.py | {state.randrange(2, 40)} ++--")
    return "\n".join(out)


def zhlog(state: random.Random, lines: int) -> str:
    """A service's log in Chinese, one failure in the middle."""
    out = []
    for number in range(lines):
        clock = f"{number // 60 % 24:02d}:{number % 60:02d}:{state.randrange(60):02d}"
        out.append(
            f"{clock} 信息 {state.choice(_ZH_EVENTS)}，"
            f"船舶编号 {state.randrange(10_000)}，耗时 {state.randrange(900)} 毫秒"
        )
    out[lines // 2] = "错误：内存不足，进程被系统终止，退出码 137"
    return "\n".join(out)


MAKERS: dict[str, Maker] = {
    "source": source,
    "build": build,
    "install": install,
    "grep": grep,
    "records": records,
    "tree": tree,
    "yaml": yaml,
    "gitlog": gitlog,
    "zhlog": zhlog,
}
