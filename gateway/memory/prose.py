"""What a message says in its author's own words, sentence by sentence.

Users paste: code, logs, diffs, JSON, stack traces, e-mails, whole files wrapped in tags by their agent. None of it
is theirs to be remembered by. This module keeps the prose, bounded, and splits it into sentences in the scripts that
need different rules.
"""

from __future__ import annotations

import re

from gateway.memory.render import strip_blocks

MAX_EDGE = 16_000
"""Characters looked at from each end of a long message: people state things before and after what they paste."""
MAX_SENTENCES = 200
MAX_SENTENCE = 600
"""Characters; a longer run without a stop is a paste."""


def word_set(text: str) -> frozenset[str]:
    """The words of `text`: a table that reads as a line of prose."""
    return frozenset(text.split())


_OWN_WORDS = word_set(
    "keep task user_query user_input user_message user_request user_prompt query message prompt request "
    "feedback question instruction instructions goal answer b i em strong p br "
)
"""Tags agents put around what the user typed: unwrapped. All other paired tags hold attachments: dropped."""

_FENCE_RE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_TAG_OPEN_RE = re.compile(r"<([A-Za-z][\w\-:]{0,60})(?:\s[^<>\n]{0,300})?>")
_LINE_NOISE_RE = re.compile(
    r"""^\s*(?:
      >|\||\}|\{|\[[\s"{\[]|\]|"[\w\- ]+"\s*:|</?\w|\#!|//|/\*|\*/|\$\s|>>>|%%|@@|\+\+\+|---\s?[ab/]
        |diff\s--git|index\s[0-9a-f]{6}
      |\[?\d{4}[-/.]\d\d[-/.]\d\d[T\s]\d\d:\d\d|\[?\d\d:\d\d:\d\d
      |(?:\w+\s){0,2}\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE|FATAL|CRITICAL)\]?[:\s\]]
      |Traceback\s\(|File\s"[^"]+",\sline|at\s[\w.$<>]+\(|[\w.]+(?:Error|Exception|Warning):|Caused\sby:
      |(?:def|class|async\sdef|func|fn|function|public|private|protected|static|package|namespace|struct|enum|interface)
        \s+\w+.*[:({;]
      |(?:import\s+[\w{*"']|from\s+[\w.]+\s+import\s|const\s+\w+|var\s+\w+\s*=
        |let\s+(?:mut\s+)?\w+\s*(?::\s*\w+\s*)?=|\#include|using\s+\w+;)
      |(?:return|if|for|while|else|elif|switch|try|except|catch)\b.*[:{;]\s*$
      |(?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP)\s.*\b(?:FROM|INTO|SET|TABLE|WHERE)\b
      |\w[\w.\[\]]*\s*(?:=|\+=|:=|->|=>)\s*\S
      |[\w\-./]+:\d+(?::\d+)?:
      |(?:npm|pip|pip3|git|docker|kubectl|cargo|yarn|pnpm|make|cd|ls|cat|sudo|curl|wget|python3?|node|go|brew|apt(?:-get)?)
        \s+[\w\-./@:]+(?:\s+[\w\-./@:=]+){0,6}$
    )""",
    re.VERBOSE,
)
_SYMBOLS_RE = re.compile(r"[{}()\[\];=<>|\\$&*^~`@#%+]")
_PASTE_RE = re.compile(
    r"(?:\b(?:following|below|this|here(?:'s| is| are)|e-?mail|article|text|letter|transcript|output|log|error|"
    r"paragraph|passage|story|"
    r"excerpt|notes|document|essay|review|translate|summari[sz]e|proofread|rewrite|rephrase|classify|extract)\b"
    r"|以下|下面|如下|这段|这篇|这封|原文|全文|翻译|总结|概括|润色|改写|摘要|次の|以下の)[^\n]*[:：]\s*$",
    re.IGNORECASE,
)
_ABOUT_ME_RE = re.compile(
    r"\b(?:about (?:me|us|my|our)|remember|my (?:setup|preferences|profile|stack)|our (?:stack|setup|conventions|"
    r"rules))\b|关于我|记住|我的(?:偏好|情况|习惯)|我们的",
    re.IGNORECASE,
)
_BULLET_RE = re.compile(r"^\s*(?:[-*•‣·–—]|\d{1,2}[.)、]|[（(]\d{1,2}[)）]|#{1,6})\s*(?=\S)")
_STOP_RE = re.compile(r"(?<=[。！？!?…؟।])(?![。！？!?…”’\"')）」』])|(?<=[.;；])(?=\s)|(?<=[.!?]['\"”’)])(?=\s)|\n")
_ABBREVIATION_RE = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|dr|mr|mrs|ms|prof|st|jr|sr|no|approx|z\.b|bzw|ca|p\.ej)|\b[A-Z])\.$", re.I
)


def prose(text: str) -> str:
    """The author's own prose in `text`: at most `2 × MAX_EDGE` characters, attachments and non-prose lines left out."""
    if len(text) > 2 * MAX_EDGE:
        tail_at = len(text) - MAX_EDGE
        inside = (text.count("\n```", 0, tail_at) + text.startswith("```")) % 2
        head, tail = text[:MAX_EDGE], text[tail_at:]
        tail = tail[max(tail.find("\n"), 0) :] if tail.find("\n") >= 0 else ""
        return f"{_own(head)}\n{_own(('```' if inside else '') + tail)}"
    return _own(text)


def _own(text: str) -> str:
    text = strip_blocks(text)
    if "```" in text or "~~~" in text:
        text = _FENCE_RE.sub("\n", text)
    if "<" in text:
        text = _untag(text)
    return "\n".join(_prose_lines(text))


def _untag(text: str) -> str:
    """`text` without paired tags and their content, those around the user's own words unwrapped. Linear: each
    tag is visited once.
    """
    out: list[str] = []
    at = 0
    while (match := _TAG_OPEN_RE.search(text, at)) is not None:
        name = match.group(1)
        out.append(text[at : match.start()])
        at = match.end()
        closing = f"</{name}>"
        end = text.find(closing, at)
        if end < 0:
            continue
        if name.lower() in _OWN_WORDS:
            out.append(f"\n{_untag(text[at:end])}\n" if len(name) > 2 else text[at:end])
        at = end + len(closing)
    out.append(text[at:])
    return "".join(out)


def _prose_lines(text: str) -> list[str]:
    diff = "\n@@ " in text or "diff --git " in text
    kept: list[str] = []
    for raw in text.split("\n"):
        line = raw.rstrip()
        if not line or is_noise(line) or (diff and line[0] in "+- "):
            continue
        if len(line) > 4 and raw.startswith(("    ", "\t")) and not _BULLET_RE.match(line) and _SYMBOLS_RE.search(line):
            continue
        kept.append(line)
        if line[-1] in ":：" and _PASTE_RE.search(line) and not _ABOUT_ME_RE.search(line):
            break  # what follows is somebody's text to work on
    return kept


def is_noise(line: str) -> bool:
    """Whether a line is code, a log record, a diff, JSON, a quotation, a stack frame or a shell command rather
    than prose.
    """
    if _LINE_NOISE_RE.match(line):
        return True
    symbols = len(_SYMBOLS_RE.findall(line))
    if symbols * 6 > len(line) > 8 or (line.endswith((";", "{", "}", ");")) and symbols > 1):
        return True
    stripped = line.strip()
    return len(stripped) > 2 and stripped[0] in '"“「『«' and stripped[-1] in '"”」』»'


def sentences(text: str) -> list[str]:
    """The sentences of `text` (already prose), bullets and numbering removed, at most `MAX_SENTENCES`."""
    out: list[str] = []
    for piece in _STOP_RE.split(text):
        sentence = piece.strip()
        if not sentence:
            continue
        if out and _ABBREVIATION_RE.search(out[-1]) and not out[-1].endswith("\n"):
            out[-1] = f"{out[-1]} {sentence}"
        else:
            out.append(_BULLET_RE.sub("", sentence, count=1).strip())
        if len(out) >= MAX_SENTENCES:
            break
    return [sentence for sentence in out if 1 < len(sentence) <= MAX_SENTENCE]


_CLAUSE_RE = re.compile(
    r"[,，;；、:：]\s*|\s+(?:and|but|so|because|although|und|aber|y|pero|et|mais)\s+|(?:但是|所以|因为|而且|不过)"
)


def clauses(sentence: str) -> list[str]:
    """The clauses of one sentence, split at commas and the commonest conjunctions."""
    return [part for part in (piece.strip() for piece in _CLAUSE_RE.split(sentence)) if part]


_SCRIPTS = (
    ("ja", re.compile(r"[぀-ヿ]")),
    ("ko", re.compile(r"[가-힯]")),
    ("zh", re.compile(r"[一-鿿㐀-䶿]")),
    ("sr", re.compile(r"[ђјљњћџЂЈЉЊЋЏ]")),
    ("ru", re.compile(r"[Ѐ-ӿ]")),
    ("ar", re.compile(r"[؀-ۿ]")),
    ("hi", re.compile(r"[ऀ-ॿ]")),
    ("el", re.compile(r"[Ͱ-Ͽ]")),
    ("th", re.compile(r"[฀-๿]")),
)
_LATIN_WORDS = {
    "en": word_set("i the my is are we our you of to in and it for with on use prefer please always that have at not"),
    "de": word_set("ich und der die das nicht mein meine wir ist mit für auf ein eine bitte unser bin "),
    "es": word_set("yo el la los las que mi mis me nosotros nuestro es en con para por una vivo prefiero y "),
    "fr": word_set("je le la les des et mon ma mes nous notre est dans avec pour une chez j'habite j'utilise à "),
    "pt": word_set("eu o os as que meu minha nosso nossa é em com para uma não e moro "),
    "sr": word_set("ja i u je sam se nije moj moja naš živim radim koristim više volim da kao nego za "),
    "it": word_set("io il lo gli che mio mia nostro è con per una sono non di abito "),
}


def language_of(text: str) -> str:
    """ISO 639-1 of a short text: by script, and among Latin scripts by its commonest words; `en` where nothing
    speaks against it.
    """
    sample = text[:400]
    if sample.isascii() is False:
        for code, script in _SCRIPTS:
            enough = 0 if code == "sr" else len(sample.replace(" ", ""))  # one such letter is enough
            if len(script.findall(sample)) * 8 > enough:
                return code
    words = set(re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", sample.lower()))
    best, votes = "en", 0
    for code, common in _LATIN_WORDS.items():
        if (hits := len(words & common)) > votes:
            best, votes = code, hits
    return best
