"""What the memory API offers: one table, read by the router and by the API document alike."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel

from gateway.api import models
from gateway.api.facts import Facts
from gateway.api.operation import LINES_TYPE, TEXT_TYPE, Operation
from gateway.api.sessions import Sessions
from gateway.api.spill import Spill
from gateway.api.whole import Whole

Answers = Mapping[int, type[BaseModel] | str]

ENTRY: Answers = {200: models.Entry}
ENTRIES: Answers = {200: models.EntryList}
WRITTEN: Answers = {200: models.Change, 201: models.Change, 202: models.Change, 403: models.Error}
DELETED: Answers = {200: models.Deleted}


def operations(facts: Facts, sessions: Sessions, spill: Spill, whole: Whole, max_body: int) -> list[Operation]:
    """Every operation. `max_body`: bytes that an import may have."""
    return [
        *_facts(facts),
        *_preferences(facts),
        *_sessions(sessions),
        Operation("GET", "/spill", spill.list, "List kept tool outputs", {200: models.SpillList}),
        Operation("GET", "/spill/{id}", spill.get, "Read a kept tool output", {200: TEXT_TYPE}, models.SpillQuery),
        Operation("GET", "/export", whole.export, "Export everything", {200: LINES_TYPE}),
        Operation(
            "POST",
            "/import",
            whole.bring_in,
            "Import what was exported",
            {200: models.Imported, 429: models.Error},
            models.ImportQuery,
            models.ImportBody,
            raw_body=True,
            largest=max_body,
        ),
        Operation("GET", "/stats", whole.stats, "Count what is kept", {200: models.Stats}),
        Operation("DELETE", "", whole.erase, "Erase everything", {200: models.Erased}, models.EraseQuery),
    ]


def _facts(facts: Facts) -> list[Operation]:
    return [
        Operation("GET", "/facts", facts.list, "List memories", ENTRIES, models.FactsQuery),
        Operation("POST", "/facts", facts.add, "Remember a sentence", WRITTEN, body=models.NewFact),
        Operation("GET", "/facts/{id}", facts.get, "Read a memory", ENTRY),
        Operation(
            "PATCH",
            "/facts/{id}",
            facts.change,
            "Correct a memory",
            {**ENTRY, 403: models.Error},
            body=models.FactChange,
        ),
        Operation("DELETE", "/facts/{id}", facts.delete, "Forget a memory", DELETED),
        Operation("GET", "/search", facts.search, "Search memories", {200: models.FoundList}, models.SearchQuery),
        Operation("GET", "/quarantine", facts.quarantine, "List what is held back", ENTRIES, models.PageQuery),
        Operation("POST", "/quarantine/{id}/approve", facts.approve, "Take out of quarantine", ENTRY),
        Operation("DELETE", "/quarantine/{id}", facts.reject, "Delete from quarantine", DELETED),
    ]


def _preferences(facts: Facts) -> list[Operation]:
    return [
        Operation("GET", "/preferences", facts.preferences, "List preferences", ENTRIES, models.EntriesQuery),
        Operation("GET", "/preferences/{key}", facts.preference, "Read a preference", ENTRY),
        Operation("PUT", "/preferences/{key}", facts.set_preference, "Set a preference", WRITTEN, body=models.NewValue),
        Operation("DELETE", "/preferences/{key}", facts.delete_preference, "Forget a preference", DELETED),
    ]


def _sessions(sessions: Sessions) -> list[Operation]:
    state: Answers = {200: models.Working}
    named: list[Operation] = []
    for path, by_header in (("/working", True), ("/working/{session}", False)):
        named += [
            Operation("GET", path, sessions.working, "Read the working state", state, session_header=by_header),
            Operation(
                "PUT",
                path,
                sessions.set_working,
                "Replace the working state",
                state,
                body=models.WorkingBody,
                session_header=by_header,
            ),
            Operation(
                "DELETE", path, sessions.delete_working, "Drop the working state", DELETED, session_header=by_header
            ),
        ]
    return [
        *named,
        Operation("GET", "/sessions", sessions.list, "List sessions", {200: models.SessionList}, models.PageQuery),
        Operation("GET", "/sessions/{session}", sessions.get, "Read a session", {200: models.SessionView}),
        Operation(
            "GET", "/sessions/{session}/notes", sessions.notes, "List a session's notes", ENTRIES, models.PageQuery
        ),
        Operation("POST", "/sessions/{session}/finish", sessions.finish, "End a session", {200: models.Finished}),
    ]
