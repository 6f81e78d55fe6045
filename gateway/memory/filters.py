"""The gate between what was proposed and what is remembered.

Nearly all that naive extraction keeps is junk and some of it is planted, so a proposal must
pass as itself and in the sentence it was drawn from: a model turns "I may have used Redis" into "the user used
Redis", and only the source knows better. The order matters: what came from where, then secrets, then attacks, then
form.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass
from typing import Literal

from gateway.memory import cues, directives
from gateway.memory.lasting import is_lasting
from gateway.memory.proposals import Proposal
from gateway.memory.prose import clauses, is_noise, language_of, sentences, word_set
from gateway.memory.render import has_block, strip_blocks
from gateway.memory.secrets import SecretScanner

Outcome = Literal["keep", "drop", "quarantine"]

MIN_CHARS = 6
"""Latin letters and digits; a CJK character says as much as two or three letters and counts as two."""
MAX_CHARS = 500
MAX_WHOLE = 4 * MAX_CHARS
"""Characters of a proposal with its value, object and aliases."""
MAX_LEADS = 3
MAX_SOURCE = 40_000
"""Characters of the source looked at; as `prose.prose` gives them."""
SUPPORT = 0.5
"""Share of a proposal's words that its source sentence must hold to be taken for its source."""

TRUSTED_ROLES = frozenset({"user", "assistant", "api"})


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a proposal, and the rule that says so."""

    outcome: Outcome
    reason: str = ""

    @property
    def keep(self) -> bool:
        """Whether it may be remembered."""
        return self.outcome == "keep"


KEEP = Verdict("keep")

_EXPLICIT_RE = re.compile(
    r"^\W*(?:(?:please|and|also|so|hey|ok(?:ay)?)\W+)*(?:remember|note|keep in mind|bear in mind|just so you know|"
    r"for (?:your|future) (?:information|reference)|fyi|for the record|don't forget|do not forget|"
    r"by the way|btw|as (?:i|we) (?:said|mentioned)|to be clear|in case it(?: i)?s? ?(?:matters|helps)|a bit about "
    r"me|about me)\b(?: that| to)?\s*[:,，：]?\s*"
    r"|^\W*(?:请|你要|帮我)?(?:记住|记一下|记下|记好|牢记|别忘了|注意|备注|顺便说一下|顺便一提|说明一下|补充一下|"
    r"另外)(?:一下)?\s*[:,，：]?\s*",
    re.IGNORECASE,
)
_WORD_RE = re.compile(r"[^\W_]+(?:[+#]+)?", re.UNICODE)
_CJK_RE = re.compile(r"[぀-ヿ㐀-鿿가-힯]")
_EMPTY_WORDS = word_set(
    "the a an of to in on at for and or is are was were be user users user's s i my me we our us they it that "
    "this with uses use using has have had prefers prefer likes like lives live works work name named called "
    "wants want as by from their his her its project "
)
_THIN_RE = re.compile(
    r"^\W*(?:i|we|he|she|they|you)(?:'m| am| are|'re)?\W*(?:\w+\W*)?(?:it|this|that|these|those|so|too|one|them|"
    r"here|there)?\W*$|^\W*(?:我|我们)(?:很|也|不|都|就)?(?:喜欢|用|是|在|有|想|要|知道)(?:这个|那个|它|的)?\W*$",
    re.IGNORECASE,
)


def words(text: str) -> set[str]:
    """The words of `text` that say something, lower case; CJK runs as overlapping pairs of characters."""
    found: set[str] = set()
    for word in _WORD_RE.findall(text.casefold()):
        if _CJK_RE.search(word):
            for run in re.findall(r"[぀-ヿ㐀-鿿가-힯]+|[^぀-ヿ㐀-鿿가-힯]+", word):
                if _CJK_RE.match(run):
                    found.update(run[i : i + 2] for i in range(max(len(run) - 1, 1)))
                else:
                    found.add(run)
        elif word not in _EMPTY_WORDS:
            found.add(word)
    return found


def strip_lead(sentence: str) -> tuple[str, bool]:
    """`sentence` without a greeting and a leading "remember that" or the like; True where it asked to be remembered.

    Leads may follow each other: "另外，请记住：…".
    """
    greeted = cues.strip_greeting(sentence)
    sentence = greeted if len(greeted) > 3 and cues.is_about_us(greeted) else sentence
    explicit = False
    for _ in range(MAX_LEADS):
        match = _EXPLICIT_RE.match(sentence)
        if match is None or len(sentence) - match.end() <= 3:
            break
        sentence, explicit = sentence[match.end() :], True
    return sentence, explicit


def find_support(proposal: Proposal, source_text: str) -> tuple[str, float]:
    """The sentence of `source_text` that says most of the proposal, and the share of its words found there (0 to 1)."""
    fields = {"preference": proposal.value, "relation": proposal.object, "fact": ""}
    wanted = words(fields[proposal.kind]) or words(proposal.content)
    best, share = "", 0.0
    for sentence in sentences(source_text[:MAX_SOURCE]):
        overlap = _overlap(wanted, words(sentence))
        if overlap > share:
            best, share = sentence, overlap
    return best, share


def _overlap(wanted: Set[str], have: Set[str]) -> float:
    return len(wanted & have) / len(wanted) if wanted else 0.0


class Judge:
    """Judges proposals. Holds only the scanner for secrets, whose patterns are loaded at the first use or by `warm`."""

    def __init__(self, scanner: SecretScanner | None = None) -> None:
        self._scanner = scanner or SecretScanner()

    def warm(self) -> None:
        """Load what is loaded lazily, off the request path."""
        self._scanner.warm()

    def judge(self, proposal: Proposal, *, source_text: str, source_role: str) -> Verdict:
        """Whether to keep, drop or quarantine `proposal`, drawn from a message of `source_role` whose text is
        `source_text`.

        `api` as the role is a person's own entry (REST, `/save`): only secrets and attacks are looked for.
        """
        if source_role not in TRUSTED_ROLES:
            return Verdict("drop", f"from {source_role or 'nobody'}")
        content = proposal.content.strip()
        if has_block(content):
            return Verdict("drop", "our own block")
        whole = " ".join(dict.fromkeys(filter(None, (content, proposal.value, proposal.object, *proposal.aliases))))
        if source_role != "api" and (len(content) > MAX_CHARS or len(whole) > MAX_WHOLE):
            return Verdict("drop", "too long")  # before the patterns, which take a while over a long run of one letter
        support, share = (content, 1.0) if source_role == "api" else self._support(proposal, source_text)
        if kind := self._scanner.find(whole) or (self._scanner.find(support) if share >= SUPPORT else None):
            return Verdict("drop", f"secret: {kind}")
        if verdict := _attack(whole, support if share >= SUPPORT else ""):
            return verdict
        if source_role == "api":
            return KEEP
        if share == 0.0 and _same_script(content, source_text):
            return Verdict("drop", "not in the source")
        return _form(proposal, content, support if share >= SUPPORT and support != content else "")

    def _support(self, proposal: Proposal, source_text: str) -> tuple[str, float]:
        if proposal.content == source_text:
            return source_text.strip(), 1.0
        text = strip_blocks(source_text)
        if whole := next((s for s in sentences(text[:MAX_SOURCE]) if proposal.content in s), ""):
            return whole, 1.0
        return find_support(proposal, text)


def _same_script(content: str, source: str) -> bool:
    return bool(_CJK_RE.search(content)) == bool(_CJK_RE.search(source[:MAX_SOURCE]))


def _attack(content: str, support: str) -> Verdict | None:
    for text in filter(None, (content, support)):
        if directives.is_injection(text):
            return Verdict("quarantine", "instruction to the assistant")
        if directives.is_exfiltration(text):
            return Verdict("quarantine", "sends data to an address")
    if directives.has_url(content):
        return Verdict("drop", "one-off task") if directives.is_task(content) else Verdict("quarantine", "URL")
    return None


def _form(proposal: Proposal, content: str, support: str) -> Verdict:
    """The rules about how it is said, on the proposal itself and then on its source."""
    body, explicit = strip_lead(content)
    size = sum(2 if _CJK_RE.match(c) else 1 for c in body if c.isalnum())
    if size < MIN_CHARS or _THIN_RE.match(body):
        return Verdict("drop", "too short")
    if is_noise(content):
        return Verdict("drop", "not prose")
    if reason := _unfit(body):
        return Verdict("drop", reason)
    if support and (reason := _unfit_source(support, proposal)):
        return Verdict("drop", reason)
    about = explicit or cues.is_about_us(body) or directives.is_standing(body) or directives.is_decision(body)
    if not about and proposal.kind == "fact" and not (support and cues.is_about_us(support)):
        return Verdict("drop", "not about the user or the project")
    if proposal.kind == "fact" and not (explicit or _is_rule(body) or is_lasting(body, language_of(body))):
        return Verdict("drop", "passing state")
    return KEEP


def _is_rule(sentence: str) -> bool:
    """A decision, or a standing request in one of its clauses."""
    if directives.is_decision(sentence):
        return True
    return any(
        directives.is_standing(part) and directives.is_directive(part) for part in (sentence, *clauses(sentence))
    )


def _unfit(sentence: str) -> str:
    """Why a sentence, standing for itself, is not to be remembered, or ""."""
    standing = _is_rule(sentence)
    if cues.is_question(sentence):
        return "question"
    if cues.is_hypothetical(sentence):
        return "hypothetical"
    if cues.is_about_request(sentence):
        return "one-off task"
    if directives.is_task(sentence):
        return "one-off task"
    if cues.is_greeting(sentence):
        return "courtesy"
    if not standing and cues.is_feedback(sentence):
        return "about the reply"
    if cues.is_speculation(sentence):
        return "speculation"
    if cues.is_undecided(sentence):
        return "undecided"
    if not standing and cues.is_hearsay(sentence):
        return "hearsay"
    if not standing and _is_passing(sentence):
        return "passing state"
    return ""


def _is_passing(sentence: str) -> bool:
    """Whether the statement a sentence opens with is of now: its first clause about us, or a later one with no
    subject of its own.
    """
    if not cues.is_passing(sentence):
        return False
    opened = False
    for clause in clauses(sentence):
        about = cues.is_about_us(clause)
        if cues.is_passing(clause) and not (opened and about):
            return True
        opened = opened or about
    return not opened


def _unfit_source(sentence: str, proposal: Proposal) -> str:
    """Why the sentence a proposal was drawn from disqualifies it. Doubt reaches over the whole sentence, time
    and tasks over a clause.
    """
    if cues.is_hypothetical(sentence):
        return "hypothetical"
    wanted = words(proposal.value or proposal.object or proposal.content)
    clause = ", ".join(part for part in clauses(sentence) if wanted & words(part)) or sentence
    if cues.is_speculation(clause) or (cues.is_speculation(sentence) and not cues.is_about_us(clause)):
        return "speculation"
    if cues.is_hearsay(sentence) and not cues.is_about_us(clause):
        return "hearsay"
    for test, reason in (
        (cues.is_hearsay, "hearsay"),
        (cues.is_question, "question"),
        (directives.is_task, "one-off task"),
        (cues.is_undecided, "undecided"),
        (cues.is_passing, "passing state"),
    ):
        if test(clause):
            return reason
    return ""
