"""Long outputs of many tools, written for these tests after the tools' real formats, with the lines that matter named.

Each `Log` has noise before, between and after its labelled lines, as a real failing run has.
"""

# ruff: noqa: E501  (lines as long as the tools print them)

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Log(NamedTuple):
    """One tool's output: its text, and the lines that say what went wrong, in order."""

    name: str
    text: str
    labels: tuple[str, ...]


class _Tool(NamedTuple):
    noise: Callable[[int], str]
    blocks: tuple[str, ...]
    """Blocks of lines put into the noise; labelled lines start with `!`."""


_TOOLS: dict[str, _Tool] = {
    "pytest": _Tool(
        lambda i: (
            f"tests/unit/test_orders_{i % 40}.py::test_create_{i} PASSED                       [{i * 100 // 3000:3d}%]"
        ),
        (
            "=================================== FAILURES ===================================\n"
            "_________________________ test_total_with_discount _________________________\n"
            "\n    def test_total_with_discount():\n        order = Order(items=[Item(price=100)])\n"
            ">       assert order.total(discount=0.1) == 90\n"
            "!E       assert 91 == 90\n!E        +  where 91 = total(discount=0.1)\n\n!tests/unit/test_orders_3.py:41: AssertionError",
            "!FAILED tests/unit/test_orders_3.py::test_total_with_discount - assert 91 == 90\n"
            "!ERROR tests/unit/test_db.py::test_connect - sqlalchemy.exc.OperationalError: could not connect",
        ),
    ),
    "jest": _Tool(
        lambda i: f"    ✓ renders row {i} of the table ({i % 9 + 1} ms)",
        (
            "!FAIL src/components/Cart.test.tsx (5.31 s)\n!  ● Cart › adds an item\n\n"
            "    expect(received).toBe(expected) // Object.is equality\n\n!    Expected: 2\n!    Received: 1",
            "!Tests:       1 failed, 812 passed, 813 total",
        ),
    ),
    "go test": _Tool(
        lambda i: f"=== RUN   TestParse/case_{i}" if i % 2 else f"    --- PASS: TestParse/case_{i - 1} (0.00s)",
        (
            "!--- FAIL: TestBalance (0.02s)\n!    balance_test.go:57: got 3 levels, want 2",
            "!panic: runtime error: index out of range [5] with length 5\n\ngoroutine 34 [running]:\n"
            "main.lookup(...)\n\t/src/app/lookup.go:22",
            "!FAIL\texample.com/app/tree\t0.412s",
        ),
    ),
    "go build": _Tool(
        lambda i: f"example.com/app/internal/pkg{i}",
        (
            "!internal/api/server.go:88:14: undefined: newRouter\n!internal/api/server.go:91:2: declared and not used: cfg",
        ),
    ),
    "cargo": _Tool(
        lambda i: f"   Compiling crate-{i} v0.{i % 30}.{i % 7}",
        (
            '!error[E0308]: mismatched types\n  --> src/main.rs:14:18\n   |\n14 |     let n: u32 = "five";\n'
            "   |            ---   ^^^^^^ expected `u32`, found `&str`",
            "!thread 'parser::tests::nested' panicked at src/parser.rs:210:9:\n!assertion `left == right` failed",
            '!error: could not compile `app` (bin "app") due to 1 previous error',
        ),
    ),
    "gradle": _Tool(
        lambda i: f"> Task :module{i}:compileJava UP-TO-DATE",
        (
            "!> Task :app:compileKotlin FAILED\n!e: file:///app/src/Main.kt:12:9 Unresolved reference: foo",
            "!FAILURE: Build failed with an exception.\n\n* What went wrong:\n"
            "!Execution failed for task ':app:compileKotlin'.",
            "!BUILD FAILED in 41s",
        ),
    ),
    "maven": _Tool(
        lambda i: f"[INFO] Copying {i} resources from src/main/resources to target/classes",
        (
            "![ERROR] /app/src/main/java/com/acme/Cart.java:[33,17] cannot find symbol",
            "!Tests run: 12, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 1.2 s <<< FAILURE! -- in com.acme.CartTest",
            "!java.lang.IllegalStateException: cart is closed\n\tat com.acme.Cart.add(Cart.java:40)\n"
            "!Caused by: java.io.IOException: stream closed",
            "[INFO] ------------------------------------------------------------------------\n![INFO] BUILD FAILURE",
        ),
    ),
    "tsc": _Tool(
        lambda i: f"[10:01:{i % 60:02d}] checked src/modules/module{i}.ts",
        (
            "!src/app.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.",
            "!src/util.ts:10:5 - error TS2304: Cannot find name 'foo'.\n\n!Found 2 errors in 2 files.",
        ),
    ),
    "eslint": _Tool(
        lambda i: f"/repo/src/page{i}.js" if i % 2 else f"  {i}:1  ok",
        (
            "/repo/src/index.js\n!  12:5   error    'x' is assigned a value but never used  no-unused-vars",
            "!✖ 1 problem (1 error, 0 warnings)",
        ),
    ),
    "docker": _Tool(
        lambda i: (
            f"#12 {i / 10:.1f} Get:{i} http://deb.debian.org/debian bookworm/main amd64 lib{i} all 1.{i} [{i} kB]"
        ),
        (
            "!#12 31.20 E: Unable to locate package libfoo-dev",
            '!ERROR: failed to solve: process "/bin/sh -c apt-get install -y libfoo-dev" did not complete successfully: '
            "exit code: 100",
        ),
    ),
    "kubectl": _Tool(
        lambda i: f'Normal   Pulled   {i}m   kubelet   Container image "registry/app:{i}" already present on machine',
        (
            "!Warning  Unhealthy  3m  kubelet  Readiness probe failed: HTTP probe failed with statuscode: 503",
            "!Warning  BackOff    2m  kubelet  Back-off restarting failed container app in pod app-7c9f",
            "!    Reason:       OOMKilled",
        ),
    ),
    "github actions": _Tool(
        lambda i: f"2024-05-02T10:{i // 60 % 60:02d}:{i % 60:02d}.1234567Z Requirement already satisfied: package-{i}",
        (
            "!2024-05-02T10:41:07.1111111Z ##[error]Process completed with exit code 2.",
            "!2024-05-02T10:41:09.5555555Z ##[error]The operation was canceled because the job exceeded 360 minutes.",
        ),
    ),
    "terraform": _Tool(
        lambda i: f"aws_instance.web[{i}]: Refreshing state... [id=i-0abc{i:06d}]",
        (
            "!Error: creating EC2 Instance: UnauthorizedOperation: You are not authorized to perform this operation.\n\n"
            '  with aws_instance.web,\n  on main.tf line 12, in resource "aws_instance" "web":',
        ),
    ),
    "webpack": _Tool(
        lambda i: f"asset chunk-{i}.js {i % 90} KiB [emitted] [immutable] (name: chunk-{i})",
        (
            "!ERROR in ./src/App.jsx 4:0-32\n!Module not found: Error: Can't resolve './missing' in '/repo/src'",
            "!webpack 5.91.0 compiled with 1 error in 8123 ms",
        ),
    ),
    "bazel": _Tool(
        lambda i: f"[{i:,} / 3,000] Compiling lib/core/file{i}.cc; 1s linux-sandbox",
        (
            "!ERROR: /repo/lib/core/BUILD:14:11: Compiling lib/core/tree.cc failed: (Exit 1): gcc failed: error executing command",
            "!lib/core/tree.cc:77:10: error: 'nodes_' was not declared in this scope",
            "!FAILED: Build did NOT complete successfully",
        ),
    ),
    "cmake": _Tool(
        lambda i: f"[{i * 100 // 3000:3d}%] Building CXX object src/CMakeFiles/app.dir/file{i}.cpp.o",
        (
            '!CMake Error at CMakeLists.txt:31 (find_package):\n!  Could not find a package configuration file provided by "Qt6"',
            "!/repo/src/main.cpp:(.text+0x1f): undefined reference to `start()'\n!collect2: error: ld returned 1 exit status\n"
            "!make[2]: *** [src/CMakeFiles/app.dir/build.make:97: app] Error 1",
        ),
    ),
    "jenkins": _Tool(
        lambda i: f"[Pipeline] echo step {i}",
        ("!ERROR: script returned exit code 1", "!Finished: FAILURE"),
    ),
    "syslog": _Tool(
        lambda i: (
            f"May  2 10:{i // 60 % 60:02d}:{i % 60:02d} web{i % 3} CRON[{1000 + i}]: (root) CMD (run-parts /etc/cron.hourly)"
        ),
        (
            "!May  2 10:17:01 web1 kernel: [12345.678] Out of memory: Killed process 4242 (java) total-vm:8123456kB",
            "!May  2 10:18:44 web1 kernel: [12399.001] app[4311]: segfault at 0 ip 00007f1c sp 00007ffd error 4 in libc.so.6",
        ),
    ),
    "nginx": _Tool(
        lambda i: (
            f'10.0.{i % 250}.7 - - [02/May/2024:10:00:{i % 60:02d} +0000] "GET /item/{i} HTTP/1.1" 200 {i * 7} "-" "curl/8"'
        ),
        (
            '!10.0.3.9 - - [02/May/2024:10:00:41 +0000] "POST /pay HTTP/1.1" 502 157 "-" "curl/8"',
            "!2024/05/02 10:00:41 [error] 31#31: *77 connect() failed (111: Connection refused) while connecting to upstream",
        ),
    ),
    "python": _Tool(
        lambda i: f"2024-05-02 10:00:{i % 60:02d},001 INFO worker processed batch {i}",
        (
            '!Traceback (most recent call last):\n  File "/srv/app/run.py", line 12, in <module>\n    main()\n'
            "!KeyError: 'customer_id'",
            "!2024-05-02 10:07:31,220 ERROR worker could not reach the queue",
        ),
    ),
    "node": _Tool(
        lambda i: f"GET /api/items/{i} 304 {i % 20}.{i % 9} ms",
        (
            "!TypeError: Cannot read properties of undefined (reading 'id')\n    at handler (/srv/app/routes/items.js:14:22)",
            "![nodemon] app crashed - waiting for file changes before starting...",
        ),
    ),
    "npm": _Tool(
        lambda i: f"npm http fetch GET 200 https://registry.npmjs.org/package-{i} {i}ms (cache hit)",
        ("!npm ERR! code ERESOLVE\n!npm ERR! ERESOLVE unable to resolve dependency tree",),
    ),
    "rust panic": _Tool(
        lambda i: f"[2024-05-02T10:00:{i % 60:02d}Z DEBUG store] wrote segment {i}",
        ("!thread 'main' panicked at src/store.rs:88:14:\n!called `Option::unwrap()` on a `None` value",),
    ),
    "gcc asan": _Tool(
        lambda i: f"[ RUN      ] Suite.Case{i}" if i % 2 else f"[       OK ] Suite.Case{i - 1} (0 ms)",
        (
            "!==4242==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602000000014 at pc 0x0000004f",
            "![  FAILED  ] Suite.Bounds (3 ms)",
        ),
    ),
    "ansible": _Tool(
        lambda i: f"ok: [host{i}] => (item=package{i})",
        (
            '!fatal: [web1]: FAILED! => {"changed": false, "msg": "No package matching \'nginxx\' is available"}',
            "!web1 : ok=12 changed=0 unreachable=0 failed=1 skipped=2 rescued=0 ignored=0",
        ),
    ),
    "pip": _Tool(
        lambda i: f"  Downloading package_{i}-1.0-py3-none-any.whl ({i} kB)",
        ("!ERROR: Could not find a version that satisfies the requirement torchx==99 (from versions: 0.1, 0.2)",),
    ),
    "git": _Tool(
        lambda i: f"Auto-merging src/file{i}.c",
        (
            "!CONFLICT (content): Merge conflict in src/main.c\n!Automatic merge failed; fix conflicts and then commit the result.",
            "!fatal: Not possible to fast-forward, aborting.",
        ),
    ),
    "dotnet": _Tool(
        lambda i: f"  Project{i} -> /repo/bin/Release/net8.0/Project{i}.dll",
        (
            "!/repo/src/Api/Startup.cs(40,13): error CS0103: The name 'AddFoo' does not exist in the current context",
            "!Build FAILED.",
        ),
    ),
    "json lines": _Tool(
        lambda i: f'{{"level":"info","ts":1714640{i:04d},"msg":"handled","path":"/v1/item/{i}","status":200}}',
        ('!{"level":"error","ts":1714649999,"msg":"database is locked","path":"/v1/pay","status":500}',),
    ),
    "postgres": _Tool(
        lambda i: (
            f"2024-05-02 10:00:{i % 60:02d}.123 UTC [{i}] LOG:  checkpoint complete: wrote {i} buffers (0.{i % 9}%)"
        ),
        (
            '!2024-05-02 10:09:12.001 UTC [88] FATAL:  password authentication failed for user "app"',
            "!2024-05-02 10:09:13.001 UTC [89] ERROR:  deadlock detected",
        ),
    ),
    "中文": _Tool(
        lambda i: f"2024-05-02 10:00:{i % 60:02d} [信息] 已处理第 {i} 批订单,耗时 {i % 90} 毫秒",
        (
            "!2024-05-02 10:21:07 [错误] 数据库连接失败:连接超时",
            "!编译失败:找不到符号 订单服务",
            "!java.lang.NullPointerException: 用户编号为空",
        ),
    ),
    "tap": _Tool(
        lambda i: f"ok {i} - parses input {i}",
        ("!not ok 1501 - rejects an empty name\n  ---\n  operator: equal", "!# fail  1"),
    ),
    "mocha": _Tool(
        lambda i: f"    ✔ saves document {i}",
        ("!  1 failing\n\n  1) Store\n       reopens after a crash:\n!     AssertionError: expected 3 to equal 4",),
    ),
    "rspec": _Tool(
        lambda i: f"  creates user {i}",
        (
            "!  1) User is invalid without a name\n!     Failure/Error: expect(user).to be_valid",
            "!412 examples, 1 failure",
        ),
    ),
    "swift": _Tool(
        lambda i: f"[{i}/3000] Compiling Core Module{i}.swift",
        ("!/repo/Sources/App/main.swift:8:5: error: cannot find 'foo' in scope",),
    ),
}

LOOK_ALIKES = (
    "0 errors, 0 warnings",
    "Tests run: 40, Failures: 0, Errors: 0, Skipped: 1",
    "errors: 0",
    "Finished with no errors",
    "INFO  loaded plugin error-handler from src/error_handler.py",
    "gcc -Wall -Werror -Wno-error=unused -c src/fail.c -o build/fail.o",
    "Compiling src/errors/exception.rs",
    "PASSED tests/test_errors.py::test_failure_is_reported",
    "test result: ok. 41 passed; 0 failed; 0 ignored",
    "    ✓ shows an error when the name is missing (3 ms)",
    "--- PASS: TestErrorHandling (0.00s)",
    "pytest --maxfail=3 --fail-under=80",
    "exit code: 0",
    "process exited with status 0",
    "ok 12 - throws an error on bad input",
    "web1 : ok=12 changed=0 unreachable=0 failed=0 skipped=2 rescued=0 ignored=0",
    "没有发现错误",
    "构建完成,0 个错误",
    'GET /errors/500 HTTP/1.1" 200 512',
    "adding 'httpx/_exceptions.py'",
    "npm warn using --force",
)
"""Lines that hold a word of trouble and report none; the last is a warning, no error."""


def log(name: str, lines: int = 3_000) -> Log:
    """The output of one tool with `lines` lines of noise, its blocks spread over the middle half."""
    tool = _TOOLS[name]
    out: list[str] = []
    labels: list[str] = []
    step = lines // (2 * len(tool.blocks) + 2)
    places = {lines // 4 + step * (2 * at + 1): block for at, block in enumerate(tool.blocks)}
    for index in range(lines):
        out.append(tool.noise(index))
        for line in places.get(index, "").split("\n") if index in places else ():
            labelled = line.startswith("!")
            out.append(line[1:] if labelled else line)
            if labelled:
                labels.append(line[1:])
    return Log(name, "\n".join(out) + "\n", tuple(labels))


NAMES = tuple(_TOOLS)
