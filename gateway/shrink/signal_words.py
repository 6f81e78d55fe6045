"""The words of trouble, and what stands around them when they mean it.

`HIT` and, where the text isn't ASCII, `FOREIGN_HIT` find the words in lower-cased text; `weigh` says what one
occurrence is worth. The same word may be a test runner's verdict ("2 failed"), its opposite ("0 failed", "without
errors"), a name (`error_handler.py`, `--fail-fast`, `on_error`) or a command that was echoed.
"""

from __future__ import annotations

import re

CERTAIN = 6
"""A verdict whatever level its line claims: crashes and sanitizers' findings, relayed by a harness as information."""
VERDICT = 5
"""A tool's own verdict of failure: failed tests, compiler errors, crashes, fatal errors."""
ERROR = 4
"""An error said in plain words: `error:`, exceptions, `Caused by`, exit codes other than 0."""
TROUBLE = 3
"""Something went wrong, perhaps handled: cannot, timed out, refused, missing."""
WARNING = 2
"""Warnings."""
PLACE = 1
"""Where things are: hunk heads of diffs, file:line references."""

# Written as a tree of letters: a flat list of the same words is six times slower to search.
HIT = re.compile(
    r"e(?:rr(?:or|no\b|[!:])|x(?:ception|it(?:ed|ing|s)?\b|pected|ceeded)|victed|rreur)"
    r"|t(?:ime(?:d out|-?out)|raceback \(|erminated|oo (?:many|large|long|few))|a(?:bort|ssert)"
    r"|no(?:tfound|t (?:found|ok\b|allowed|permitted|supported|ready|valid)| such| space| mat(?:ching|ch)"
    r"| module|n-?zero)"
    r"|i(?:n(?:compatible|valid)|llegal|magepull)|o(?:ut of|om|verflow)"
    r"|s(?:eg(?:mentation fault|fault)|ig(?:segv|abrt|kill|bus|ill|fpe|trap|term)|evere|tack trace|anitizer: )"
    r"|re(?:fused|jected|set by peer|turned|ceived:)"
    r"|c(?:a(?:n(?:not|'t| not)|used by|lled `)|o(?:uld(?: not|n't)|re dumped|mmand not found|nflict|rrupt)"
    r"|r(?:ash|itical))"
    r"|d(?:e(?:nied|adlock|clared|precat)|oes not|id not|ata race)|f(?:a(?:il|tal|llo)|orbidden|ehler)"
    r"|un(?:able to|defined|handled|caught|resolved|known|reachable|authorized|recogni[sz]ed|healthy|satisfied|bound"
    r"|available|stable|met)|panic|m(?:issing|ismatch|alformed)|warn|kill|halted|lost connection|bug: "
    r"|leak|ba(?:ck-?off|d gateway)|violat|got: |actual: |rspec \./"
    r"|\*\*\*|\n(?:@@ |e {2,}|[ef]\d{4} \d\d:|not ok\b| *file \"[^\"\n]+\", line \d)|\[e\](?=\n|$)"
    r"|\.[a-z]{1,5}:\d+(?::\d+)?: | 5\d\d[ ,\"\n]|\"5\d\d[ ,\"\n]"
)
FOREIGN_HIT = re.compile(
    r"✗|✖|✘|❌|⨯|●|×|错误|錯誤|失败|失敗|异常|異常|致命|崩溃|崩潰|超时|超時|警告|拒绝|無法|无法|不存在|未找到|找不到|中断|终止|报错"
    r"|出错|不足|溢出|エラー|例外|오류|실패|예외|ошибк|сбой|échou|échec"
)

_CODE_SUFFIX = re.compile(
    r"[\w.+-]*\.(?:[ch]|cc|cpp|cs|css|cxx|dart|erb|exs?|go|hpp|hs|html?|java|jar|jsx?|json|kts?|less|log|lua|[mc]?[jt]s|map"
    r"|md|php|pl|png|properties|pyc?|pyi|rb|rs|rst|s?css|scala|sh|so|sql|svg|swift|toml|tsx?|txt|vue|whl|xml|ya?ml|yml)\b"
)
# Right after the word: what makes it a name for handling trouble, not trouble.
_NAME_AFTER = re.compile(
    r"(?:s|ed|ing|ure|ures)?[ _-](?:handl\w+|rates?|count\w*|pages?|boundar\w+|report\w*|recover\w*|budgets?|threshold"
    r"|tolerance|fast\b|over\b|safe\b|class\w*|logg\w+|logs?\b|policy|limits?\b|settings?|options?|level|prone|format"
    r"|codes?\b(?!\W{0,12}-?[1-9])|types?\b|annotations?|hooks?|callbacks?|middleware|pages?|docs?\b|strategy|only\b)"
    r"|(?:handl(?:er|ing)|boundary|reporter|logger|page|tests?\b|spec\b)"  # as a part of the same word
)
_NONE_AFTER = re.compile(
    r"(?:s|ed|ing|ure|ures)?(?:\(s\))?[\"']?(?: count)?\s*(?:[:=]|\bis\b|\bwas\b)\s*[\"']?"
    r"(?:0\b(?![.x/\d]|:\d)|none\b|null\b|false\b|\[\]|nil\b|ok\b)"
)
# One of these right before the word, or with one word between, takes the trouble back.
_NO_TROUBLE = frozenset(
    [
        "0", "no", "zero", "without", "non", "never", "any", "if", "known", "handle", "handles", "handled",
        "handling", "catch", "catches", "catching", "prevent", "prevents", "avoid", "avoids", "expected", "fix",
        "fixed", "fixes", "not", "don't", "unless", "retry", "when", "ignore", "ignored", "ignores", "ignoring"
    ]
)  # fmt: skip
_NO_TROUBLE_NEAREST = frozenset(["on", "x", "for", "(0", "=0", "[0"])
_SOME_BEFORE = re.compile(
    r"(?<![\d.,:/])\b[1-9][\d,]*\s+(?:(?:tests?|fatal|lint|type|unit|new|specs?|files?|jobs?)\s+)?$"
)
_SOME_AFTER = re.compile(r"(?:s|ed|ures?)?[\"']?\s*[:=]\s*[1-9]\d*\b(?![.:-])")
_ECHO_BEFORE = re.compile(r"\b(?:echo|printf|grep|fprintf\(\w+,)\s+(?:-\w+ )*[\"']?[^\"']*$")
_ECHOED = re.compile(r"echo|print|grep")
_CODED_AFTER = re.compile(r"(?:s)?(?:\[[\w:-]+\]|:? ?\b[a-z]{1,10}\d{2,6}\b|!)")
_PLACE_BEFORE = re.compile(
    r"(?:[\w.)\]]:\d+(?::\d+)?|\(\d+(?:,\d+)*\)|^\s*\d+:\d+)\s*:?\s+(?:-\s+)?(?:fatal |internal )?$"
)
_TAG_BEFORE = re.compile(r"(?:##\[|::|\[[\w.-]{0,40}:)$")
_CLASS_AFTER = re.compile(r"(?: \[\w+\])?(?::|\s*$)")
_CLASS_BEFORE = re.compile(
    r"^\W{0,4}(?:exception in thread \S+ |caused by: |uncaught |unhandled )?(?:[\w$]+[.:/\\]+)*[\w$]*$"
)
_HEAD_BEFORE = re.compile(r"^[\s\W]*$")
_CONTRAST_AFTER = re.compile(r"\s*(?:value)?:|.{0,50}\b(?:got|but|actual|received|found|was|to (?:be|equal))\b")
_BARE_EXIT = re.compile(r" \d+;?\s*$")
_STATUS_BEFORE = re.compile(r"(?:\"|http/[\d.]+|\bhttp|\bstatus(?: code)?|statuscode|returned|response)\W*$")
_STATUS_AFTER = re.compile(r"internal server|bad gateway|service unav|gateway time|server error")
_TIMEOUT_SET = re.compile(r"\s*(?:to|is|set to|[:=])?\s*\d")
_EXIT_CODE = re.compile(
    r"(?: with)?(?: (?:a |an )?(?:non-?zero )?(?:exit )?(?:code|status|value|error))?\s*[:=(]*\s*(-?\d+)\b"
)
_MESSAGE_AFTER = re.compile(r"s?\s*[:!\](]|\)| ?(?:-|—|–) |\s{2,}\S|: ")
_DOING_AFTER = re.compile(r"(?:ed|ure)? (?:to|with|in|at|on|tests?|while|because|after|during|for|by)\b|ed[:.!]|ure:")

# Words that are a verdict wherever they stand (in prose they are too rare to matter).
_ALWAYS = frozenset(["core dumped", "segmentation fault", "segfault", "sanitizer: ", "data race"])
_CRASHES = frozenset(["sigsegv", "sigabrt", "sigbus", "sigill", "sigfpe", "imagepull"])
_STRONG = (
    "caused by", "traceback (", "no such", "no space", "command not found", "timed out", "terminated", "unhandled",
    "uncaught", "undefined", "unresolved", "denied", "refused", "deadlock", "severe", "critical", "evicted",
    "unsatisfied", "unmet", "bad gateway", "unhealthy", "conflict", "corrupt", "reset by peer", "no matching",
    "no module", "exceeded", "cannot", "halted", "lost connection", "bug: ",
)  # fmt: skip
_FOREIGN = (
    "错误", "錯誤", "失败", "失敗", "异常", "異常", "报错", "出错", "エラー", "例外", "오류", "실패", "예외",
    "ошибк", "сбой", "fehler", "fallo", "échou", "échec", "erreur",
)  # fmt: skip
_FOREIGN_NONE = re.compile(
    r"(?:没有|未)(?:发现|出现)?(?:任何)?$|(?<!\d)0\s*(?:个|条|处|项|件)?\s*$|无$|なし$|忽略$|处理$"
)
_FOREIGN_NONE_AFTER = re.compile(r"(?:数|数量|个数|次数)?\s*[::=]?\s*0(?!\d)|处理|码\s*[::=]?\s*0\b|重试|なし")
_PATH_BEFORE = re.compile(r"^\s*[\w@+.\\/-]+$")

REACH = 60
"""Characters looked at on each side of a word."""
CUT = "x "
"""Stands at the start of what is before a word where that is cut: neither blank nor a part of a longer word."""


def weigh(word: str, before: str, after: str, capital: bool) -> int:
    """What `word` is worth between what stands before and after it in its line: `VERDICT` to `PLACE`, or 0.

    All in lower case; `capital` tells FAILED from failed. `before` starts with the line, or with `CUT` where it is cut.
    """
    if word == "expected" and before.endswith("un"):
        word, before = "unexpected", before[:-2]
    first = word[0]
    if not first.isalpha() or (not before and (word.startswith(("e  ", "not ok")) or word[-1] == ":")):
        return _weigh_sign(word, before, after)
    if first > "\x7f" or word in _FOREIGN:
        return _weigh_foreign(word, before, after)
    if word == "err!" or (word == "rspec ./" and not before):
        return VERDICT
    if _is_name(before, after, capital):
        return 0
    if before[-1:] == "_" or after[:1] == "_":  # inside a symbol: NS_ERROR_FAILURE tells something, on_error nothing
        return TROUBLE if capital else 0
    return _weigh_word(word, before, after, capital)


def _weigh_sign(word: str, before: str, after: str) -> int:
    if word.startswith(("e  ", "not ok", "f")):
        return VERDICT
    if word[0] == "e":  # a glog line: E0411 12:00
        return ERROR
    if word == "@@ " or '", line ' in word:
        return PLACE
    if word == "[e]":  # Flutter's mark of a failed test, after how many have passed and failed
        return VERDICT if re.search(r"\+\d+ (?:~\d+ )?-\d+: ", before) else 0
    if word == "***":
        return VERDICT if re.search(r"error|stop|fail|fatal", after) else 0
    if word[0] == ".":
        if not _PATH_BEFORE.match(before):
            return PLACE
        return ERROR if word.count(":") > 2 else (TROUBLE if before[:1].isspace() else PLACE)
    if word[0] in ' "':
        told = _STATUS_BEFORE.search(before) or _STATUS_AFTER.match(after)
        return ERROR if told else 0
    if word == "×":
        return VERDICT if not before.strip() and after[:1] == " " else 0
    return VERDICT if _HEAD_BEFORE.match(before) else TROUBLE


def _weigh_foreign(word: str, before: str, after: str) -> int:
    if _FOREIGN_NONE.search(before) or _FOREIGN_NONE_AFTER.match(after):
        return 0
    if word in ("致命", "崩溃", "崩潰"):
        return VERDICT
    if word == "警告":
        return WARNING
    if word in _FOREIGN:
        marked = before[-1:] in ("[", "【") or after[:1] in (":", ":", "]", "】") or _HEAD_BEFORE.match(before)
        return (
            VERDICT
            if marked or re.search(r"(?:编译|构建|测试|部署|执行|安装|运行|ビルド|テスト)已?$", before)
            else ERROR
        )
    return TROUBLE


def _is_name(before: str, after: str, capital: bool) -> bool:
    """Whether the word is part of a file's, flag's, symbol's or setting's name, or says that there is no trouble."""
    last, following = before[-1:], after[:1]
    if not capital and (last == "/" or following in ("/", "\\")):
        return True
    if (before[-2:] == "::" and len(before) > 2) or after[:2] == "::":
        return True
    token = before.rsplit(None, 1)[-1] if before and not last.isspace() else ""
    if token[:1] == "-" and (token in ("-", "--") or token[-1].isalnum() or token[1:2].isalpha()):
        return True  # a flag: --fail-fast, -Werror
    if not capital and "/" in token and following != ":":
        return True
    if "." in after and _CODE_SUFFIX.match(after):
        return not re.match(r"[\w.+-]*:\d+", after) and "/" not in after
    return bool(
        _NAME_AFTER.match(after)
        or _NONE_AFTER.match(after)
        or (last in " _-" and _taken_back(before))
        or (_ECHOED.search(before) and _ECHO_BEFORE.search(before))
    )


def _taken_back(before: str) -> bool:
    """Whether what stands before the word says "0", "no", "without", "handle" or the like."""
    words = before[-28:].replace("_", " ").replace("-", " ").split()[-2:]
    if not words:
        return False
    if words[-1] in _NO_TROUBLE or words[-1] in _NO_TROUBLE_NEAREST:
        return True
    return len(words) > 1 and words[0] in _NO_TROUBLE and words[1].isalpha()


def _weigh_word(word: str, before: str, after: str, capital: bool) -> int:
    if word in _ALWAYS:
        return CERTAIN
    if word in _CRASHES:
        return VERDICT
    if word.startswith("exit") or word in ("returned", "terminated", "non-zero", "nonzero"):
        return _weigh_exit(word, before, after)
    if word.startswith("err"):
        return _weigh_error(word, before, after, capital)
    if word in ("fail", "exception", "fatal", "panic", "crash", "assert", "abort", "kill"):
        return _weigh_failure(word, before, after, capital)
    if word.startswith(("warn", "deprecat")):
        return WARNING
    if word in ("oom", "out of"):
        return (
            VERDICT
            if re.match(r"[ -]?kill| memory| ?:", after)
            else (TROUBLE if word == "out of" and re.match(r" (?:range|bounds|date|sync|disk)", after) else 0)
        )
    if word in ("timeout", "time-out") and _TIMEOUT_SET.match(after):
        return 0
    if word == "unexpected":
        return VERDICT if capital else TROUBLE
    if word in ("got: ", "actual: "):
        return TROUBLE if not before.strip() else 0
    if word == "notfound":
        return ERROR if _CLASS_AFTER.match(after) or after.startswith("error") else TROUBLE
    if word == "expected":
        return TROUBLE if _CONTRAST_AFTER.match(after) else 0
    if word == "called `":
        return ERROR if "unwrap" in after or "expect" in after else 0
    if word in ("declared", "unknown", "unbound", "leak", "back-off", "backoff", "unavailable", "unstable"):
        return TROUBLE if word != "declared" or "not used" in after else 0
    return ERROR if word in _STRONG or capital else TROUBLE


def _weigh_exit(word: str, before: str, after: str) -> int:
    if word.startswith("non"):
        return ERROR if re.match(r" (?:exit|status|code|return)", after) else 0
    if word == "exit" and _BARE_EXIT.match(after) and before[-2:].isspace():
        return 0  # a line of a script that was printed
    code = _EXIT_CODE.match(after)
    if code is None:
        return TROUBLE if word == "terminated" else 0
    if int(code[1]) == 0 or (word == "returned" and not re.match(r".{0,30}(?:code|status|exit)", after)):
        return 0
    return ERROR


def _weigh_error(word: str, before: str, after: str, capital: bool) -> int:
    if _CODED_AFTER.match(after) or _TAG_BEFORE.search(before) or _PLACE_BEFORE.search(before):
        return VERDICT
    if _SOME_BEFORE.search(before) or _SOME_AFTER.match(after):
        return VERDICT
    if before[-1:].isalpha():
        return (
            VERDICT
            if _CLASS_BEFORE.match(before) and _CLASS_AFTER.match(after)
            else (ERROR if after[:1] in (":", ")") else TROUBLE)
        )
    if capital or (_HEAD_BEFORE.match(before) and _DOING_AFTER.match(after)) or after.startswith("ed "):
        return ERROR
    return ERROR if _MESSAGE_AFTER.match(after) or re.search(r"(?:level|severity)\"?[=:]\s?\"?$", before) else TROUBLE


def _weigh_failure(word: str, before: str, after: str, capital: bool) -> int:
    if capital and before[-1:] != "_":
        return VERDICT
    if word == "fail":
        if _SOME_BEFORE.search(before) or _SOME_AFTER.match(after) or _HEAD_BEFORE.match(before):
            return VERDICT
        return ERROR if _DOING_AFTER.match(after) else TROUBLE
    if word == "exception":
        named = before[-1:].isalpha()
        if named and _CLASS_BEFORE.match(before) and _CLASS_AFTER.match(after):
            return VERDICT
        return ERROR if named or after[:1] == ":" or after.startswith(" in thread") else TROUBLE
    if word == "fatal":
        return VERDICT if re.match(r"(?: \w+){0,2}\s*[:\]]", after) or _HEAD_BEFORE.match(before) else TROUBLE
    if word == "panic":
        return VERDICT if re.match(r"ked\b|:|!| -", after) else TROUBLE
    if word == "assert":
        return ERROR if re.match(r"(?:ion)?(?:error|\b.{0,50}(?:fail|violat))", after) else 0
    if after[:2] in ("ed", "in"):  # crashed, aborted, aborting, killed
        return ERROR
    return TROUBLE if word != "kill" else 0
