"""The shapes of the memory API: what a query, a body and an answer hold. The API document is built from these.

Queries come as text, so their numbers and switches are read from digits and `true`/`false` only; bodies are strict.
Unknown names are refused in both: a misspelt filter must not list everything. Models are built at their first use: all
of them at the start would take a tenth of a second.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from gateway.memory.entries import EntryType, Trust
from gateway.memory.transfer import EntryLine

PAGE_MOST = 500
CONTENT_MOST = 4_000
"""Characters of one memory written by hand: what the scanner for secrets looks at in one go."""
NAME_MOST = 256
"""As `gateway.intake.NAME_CHARS`."""
GREP_MOST = 300
NEEDED = "x-needed"
"""Marks a query parameter that is described as required, though a header may stand for it."""


def _digits(value: object) -> object:
    if isinstance(value, str):
        if not (value.isascii() and value.removeprefix("-").isdigit()):
            raise ValueError("expected a whole number")
        return int(value)
    return value


def _switch(value: object) -> object:
    if isinstance(value, str):
        if value not in ("true", "false"):
            raise ValueError("expected true or false")
        return value == "true"
    return value


DIGITS = BeforeValidator(_digits)
Switch = Annotated[bool, BeforeValidator(_switch)]
NamedText = Annotated[str, Field(max_length=NAME_MOST)]
Content = Annotated[str, Field(min_length=1, max_length=CONTENT_MOST, pattern=r"\S")]
Metadata = Annotated[dict[NamedText, Annotated[str, Field(max_length=1000)]], Field(max_length=32)]
Aliases = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=32)]
Cursor = Annotated[str, Field(pattern=r"^[0-9]{1,18}$", description="`next_cursor` of the page before.")]


class Query(BaseModel):
    """Query parameters."""

    model_config = ConfigDict(extra="forbid", defer_build=True)


class PageQuery(Query):
    """A page of a listing."""

    limit: Annotated[int, Field(ge=1, le=PAGE_MOST), DIGITS] = 50
    cursor: Cursor | None = None


class EntriesQuery(PageQuery):
    """Which entries to list."""

    project: NamedText = ""
    session: NamedText = ""
    history: Annotated[Switch, Field(description="Superseded entries too.")] = False


class FactsQuery(EntriesQuery):
    """Which facts to list: long-term memory, or the notes of sessions and projects."""

    scope: Literal["long", "session", "project"] = "long"
    type: EntryType | None = None


class SearchQuery(Query):
    """A search. `scope`: every kind of memory where left out."""

    q: Annotated[str, Field(min_length=1, max_length=CONTENT_MOST)]
    limit: Annotated[int, Field(ge=1, le=100), DIGITS] = 10
    project: NamedText = ""
    session: NamedText = ""
    scope: Literal["long", "session", "project"] | None = None


class SpillQuery(Query):
    """Which part of a kept output to read."""

    lines: (
        Annotated[
            str,
            Field(
                pattern=r"^[1-9][0-9]{0,8}(-([1-9][0-9]{0,8})?)?$",
                description="`a-b`, `a-` or `a`: counted from 1, both ends included. Past the end there is nothing.",
            ),
        ]
        | None
    ) = None
    grep: (
        Annotated[
            str,
            Field(
                min_length=1,
                max_length=GREP_MOST,
                description="Only lines that match this regular expression, each as `number:line`. What is no regular "
                "expression, or takes too long as one, is looked for as it stands.",
            ),
        ]
        | None
    ) = None


class EraseQuery(Query):
    """`confirm=true`, or the header `X-Confirm-Erase: true`."""

    confirm: Annotated[Switch, Field(description="Must be true.", json_schema_extra={"enum": [True], NEEDED: True})] = (
        False
    )


class ImportQuery(Query):
    """What to do where some lines are bad."""

    partial: Annotated[Switch, Field(description="Of JSON lines, write the good ones where others are bad.")] = False


class Body(BaseModel):
    """A JSON request body."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


class NewFact(Body):
    """Something to remember, as a sentence. Project and session default to the request's headers."""

    content: Content
    project: NamedText | None = None
    session: NamedText | None = None


class FactChange(Body):
    """What to change of a fact; at least one field."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    content: Content = ""
    project: NamedText = ""
    aliases: Aliases = []
    metadata: Metadata = {}

    @model_validator(mode="after")
    def _something(self) -> FactChange:
        if not self.model_fields_set:
            raise ValueError("give at least one field to change")
        return self


class NewValue(Body):
    """A preference's value. The project defaults to the request's header."""

    value: Annotated[str, Field(min_length=1, max_length=2000, pattern=r"\S")]
    project: NamedText | None = None


class ImportBody(Body):
    """Memories to bring in; the same objects may come one a line (`application/x-ndjson`), as the export gives them."""

    entries: list[EntryLine]


class StepBody(Body):
    """One step of a plan."""

    text: Annotated[str, Field(min_length=1, max_length=1000)]
    status: Literal["pending", "in_progress", "done"] = "pending"


class WorkingBody(Body):
    """The state of a task: what it is, its plan, named values, and notes, the newest last."""

    task: Annotated[str, Field(max_length=4000)] = ""
    steps: Annotated[list[StepBody | Annotated[str, Field(min_length=1, max_length=1000)]], Field(max_length=100)] = []
    variables: Annotated[dict[NamedText, Annotated[str, Field(max_length=4000)]], Field(max_length=100)] = {}
    notes: Annotated[list[Annotated[str, Field(max_length=1000)]], Field(max_length=50)] = []


class View(BaseModel):
    """Part of an answer; described by the API document, never checked on its way out."""

    model_config = ConfigDict(defer_build=True)


class Entry(View):
    """A memory. Times are seconds since the epoch."""

    object: Literal["memory.entry"]
    id: str
    content: str
    type: EntryType
    scope: Literal["long", "session", "project"]
    timestamp: Annotated[float, Field(description="When it was said.")]
    token_count: int
    project: str
    session: str
    source_role: Annotated[str, Field(description="`user`, `assistant`, or `api`; never a tool.")]
    language: str
    message_hash: Annotated[str, Field(description="Digest of the message it was read from.")]
    trust: Trust
    key: Annotated[str, Field(description="A newer entry of the same key supersedes this one.")]
    value: str
    aliases: list[str]
    valid_from: float
    valid_to: Annotated[float | None, Field(description="Set once it was superseded.")]
    superseded_by: str
    metadata: dict[str, str]


class EntryList(View):
    """A page of memories; where filters leave few, it may be short of its limit though more follow."""

    object: Literal["list"]
    data: list[Entry]
    next_cursor: str | None


class Change(View):
    """What became of what was written. `entry` may be null where the like of it was there already."""

    object: Literal["memory.change"]
    outcome: Literal["kept", "merged", "superseded", "quarantined"]
    superseded: int
    entry: Entry | None


class Deleted(View):
    """What is gone."""

    object: Literal["memory.deleted"]
    id: str
    deleted: bool


class Found(View):
    """A search's hit; scores compare within one answer only."""

    score: float
    entry: Entry


class FoundList(View):
    """Hits, best first."""

    object: Literal["list"]
    data: list[Found]


class SessionView(View):
    """A conversation."""

    object: Literal["memory.session"]
    id: str
    project: str
    title: str
    turns: int
    created: float
    updated: float
    finished: float | None


class SessionList(View):
    """Sessions, newest activity first."""

    object: Literal["list"]
    data: list[SessionView]
    next_cursor: str | None


class Finished(View):
    """A session's end. `finished` is false where it had ended before."""

    object: Literal["memory.session.finished"]
    id: str
    finished: bool


class Working(View):
    """The state of a session's task."""

    object: Literal["memory.working"]
    session: str
    task: str
    steps: list[StepBody]
    variables: dict[str, str]
    notes: list[str]


class SpillView(View):
    """A whole output that was cut before it was sent."""

    object: Literal["memory.spill"]
    id: str
    chars: int
    stored_bytes: int
    created: float


class SpillList(View):
    """Kept outputs, the newest first."""

    object: Literal["list"]
    data: list[SpillView]


class LineProblem(View):
    """A line that can't be imported, counted from 1."""

    line: int
    message: str


class Imported(View):
    """What an import did."""

    object: Literal["memory.import"]
    added: int
    existing: int
    history: int
    quarantined: int
    sessions: int
    errors: list[LineProblem]


class Erased(View):
    """All that was kept is gone."""

    object: Literal["memory.erased"]
    entries: int


class Stats(View):
    """How much is kept. `by_type` is null for very large memories."""

    object: Literal["memory.stats"]
    entries: int
    by_type: dict[str, int] | None
    history: int | None
    quarantined: int | None
    sessions: int
    spill: dict[str, int]
    limits: dict[str, int]


class ErrorBody(View):
    """OpenAI's error object; `lines` in a refused import only."""

    message: str
    type: str
    param: str | None
    code: str | None
    lines: list[LineProblem] | None = None


class Error(View):
    """OpenAI's error shape."""

    error: ErrorBody


Document = dict[str, Any]
"""An OpenAPI document or a part of one."""
