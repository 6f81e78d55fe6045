"""Whether a line holds a secret: it is then never stored, whoever said it.

Known token formats come from detect-secrets' own plugins, used as a library on one line: only those that recognise a
format (its entropy and keyword plugins are made for source files and fire on prose), never their network
verification. The rest are shapes that people type in chat: bearer tokens, private keys, connection strings,
passwords said in words, card and identity numbers.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable

from gateway.memory.patterns import Pattern

MAX_CHARS = 4_000
"""Characters of one line looked at; a candidate memory is at most 600."""

_PLUGINS = (
    ("artifactory", "ArtifactoryDetector"),
    ("aws", "AWSKeyDetector"),
    ("azure_storage_key", "AzureStorageKeyDetector"),
    ("basic_auth", "BasicAuthDetector"),
    ("discord", "DiscordBotTokenDetector"),
    ("github_token", "GitHubTokenDetector"),
    ("gitlab_token", "GitLabTokenDetector"),
    ("jwt", "JwtTokenDetector"),
    ("mailchimp", "MailchimpDetector"),
    ("npm", "NpmDetector"),
    ("openai", "OpenAIDetector"),
    ("private_key", "PrivateKeyDetector"),
    ("pypi_token", "PypiTokenDetector"),
    ("sendgrid", "SendGridDetector"),
    ("slack", "SlackDetector"),
    ("square_oauth", "SquareOAuthDetector"),
    ("stripe", "StripeDetector"),
    ("telegram_token", "TelegramBotTokenDetector"),
    ("twilio", "TwilioKeyDetector"),
)

_NEEDS = {"npm": ":_authToken"}
"""Its pattern tries every pair of slashes against the rest of the line: 90 ms for 4,000 of them."""

_WORD = (
    r"pass(?:word|phrase|code|wd)?s?|pwd|pin(?: code| number)?|secret(?: key)?|api[ _-]?keys?|access[ _-]?keys?|"
    r"private[ _-]?keys?|"
    r"(?:auth|access|bearer|refresh|bot|api)?[ _-]?tokens?|credentials?|recovery (?:code|phrase)|seed phrase|"
    r"passwort|kennwort|contraseña|"
    r"mot de passe|senha|lozinka|šifra|пароль|лозинка|密码|口令|密钥|私钥|令牌|验证码|パスワード|暗証番号|비밀번호"
)
_STATED_RE = Pattern(
    rf"(?:\b|(?<=[\u4e00-\u9fff]))(?:{_WORD})(?:[^\n,.;。，；!?]{{0,40}}?)(?:\b(?:is|are|was|to|ist|es|est|je|é)\b|"
    rf"[:=：是为은는]|は)\s*[\"'`“]?([^\s\"'`”，。]{{3,}})",
    re.IGNORECASE,
)
_OWN = (
    ("bearer token", Pattern(r"\bbearer\s+[A-Za-z0-9\-._~+/]{16,}=*", re.I)),
    ("basic authorisation", Pattern(r"\bauthorization\s*:\s*\S+", re.I)),
    ("private key", Pattern(r"-----BEGIN [A-Z ]*PRIVATE KEY")),
    ("connection string", Pattern(r"\b[a-z][a-z0-9+.\-]{1,30}://[^\s:/@]*:[^\s@/]+@[^\s]+", re.I)),
    ("connection string", Pattern(r"\b(?:password|pwd|accountkey|sharedaccesskey)=[^;\s]{3,}", re.I)),
    (
        "token format",
        Pattern(
            r"\b(?:sk|pk|rk|xai|gsk|hf|glpat|ghp|gho|ghs|ghu|github_pat|npm|pypi|xox[abprs]|AIza|ya29|dop_v1|shpat|"
            r"sq0\w{3}|SG|eyJ)"
            r"[-_.]?[A-Za-z0-9][A-Za-z0-9_\-.]{18,}"
        ),
    ),
    ("social security number", Pattern(r"\b(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}\b")),
)
_DIGITS_RE = Pattern(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?!\d|\.\d)")
_CHINESE_ID_RE = Pattern(r"(?<!\d)\d{17}[\dXx](?![\dA-Za-z])")
_LONG_RE = Pattern(r"[A-Za-z0-9+/_\-=]{20,}")
_NEAR_RE = Pattern(rf"(?:{_WORD})", re.IGNORECASE)
_PLAIN_VALUE_RE = Pattern(
    r"(?:stored|kept|managed|rotated|required|needed|optional|handled|hashed|encrypted|set|in|on|by|the|a|an|my|our|"
    r"not|never|always|via|"
    r"from|too|very|read|case|at|least|longer|generated|hard|good|bad|expired|wrong|correct|missing|used|valid|"
    r"invalid|reset|changed|"
    r"passed|checked|verified|sent|counted|billed|cheap|expensive|limited|存|放|保存|加密|过期|由)\b.*",
    re.IGNORECASE,
)


class SecretScanner:
    """`find(line)` names the kind of secret in a line, or None. detect-secrets is imported at the first use (0.2 s)."""

    def __init__(self) -> None:
        self._analyse: list[tuple[str, str, Callable[[str], Iterable[str]]]] | None = None

    def warm(self) -> None:
        """Load the plugins now, off the request path."""
        if self._analyse is None:
            self._analyse = _load()

    def find(self, line: str) -> str | None:
        """The kind of the first secret found in the first `MAX_CHARS` of `line`, or None."""
        line = line[:MAX_CHARS]
        for kind, pattern in _OWN:
            if pattern.search(line):
                return kind
        if _has_card(line) or _has_chinese_id(line):
            return "card or identity number"
        if _is_stated(line) or _is_opaque(line):
            return "password or key"
        if not _may_hold_token(line):
            return None
        self.warm()
        for kind, needs, analyse in self._analyse or ():
            if needs in line and any(analyse(line)):
                return kind
        return None


def _load() -> list[tuple[str, str, Callable[[str], Iterable[str]]]]:
    """Kind, what a line must hold for the plugin to be asked ("" for anything), and the plugin."""
    import importlib

    loaded: list[tuple[str, str, Callable[[str], Iterable[str]]]] = []
    for module, name in _PLUGINS:
        plugin = getattr(importlib.import_module(f"detect_secrets.plugins.{module}"), name)()
        loaded.append((str(plugin.secret_type), _NEEDS.get(module, ""), plugin.analyze_string))
    return loaded


def _may_hold_token(line: str) -> bool:
    """Every format the plugins know has a run of at least 12 token characters, `//` or a dashed header."""
    return re.search(r"[A-Za-z0-9+/_\-=.:]{12,}", line) is not None


def _is_stated(line: str) -> bool:
    for match in _STATED_RE.finditer(line):
        value = match.group(1)
        if _PLAIN_VALUE_RE.fullmatch(value):
            continue
        if (
            any(c.isdigit() or not c.isalnum() for c in value.rstrip(".!,"))
            or match.group(0)[-len(value) - 1] in ":=：\"'`“"
        ):
            return True
    return False


def _is_opaque(line: str) -> bool:
    """A long, dense run: suspicious beside a word such as *token*, and on its own where it looks like nothing else."""
    near = _NEAR_RE.search(line) is not None
    for run in _LONG_RE.findall(line):
        digits = sum(c.isdigit() for c in run)
        if digits < 3 or digits == len(run):
            continue
        entropy = -sum(n / len(run) * math.log2(n / len(run)) for n in Counter(run).values())
        mixed = run.lower() != run and run.upper() != run and "-" not in run[1:-1] and "/" not in run
        if (near and entropy > 3.0) or (mixed and len(run) >= 32 and entropy > 4.2):
            return True
    return False


def _has_card(line: str) -> bool:
    for match in _DIGITS_RE.findall(line):
        digits = [int(c) for c in match if c.isdigit()]
        if len(set(digits)) < 2:
            continue
        doubled = [
            sum(divmod(d * 2, 10)) if i % 2 else d for i, d in enumerate(reversed(digits))
        ]  # ISO/IEC 7812-1, Luhn
        if digits[0] in (2, 3, 4, 5, 6) and sum(doubled) % 10 == 0:
            return True
    return False


def _has_chinese_id(line: str) -> bool:
    for number in _CHINESE_ID_RE.findall(line):
        total = sum(
            int(d) * (pow(2, 17 - i) % 11) for i, d in enumerate(number[:17])
        )  # GB 11643-1999, ISO 7064 MOD 11-2
        if "10X98765432"[total % 11] == number[17].upper():
            return True
    return False
