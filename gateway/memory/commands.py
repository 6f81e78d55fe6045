"""Slash commands in a user message, where `slash_commands` is on: the smallest interface to memory, from any
chat window.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_COMMAND_RE = re.compile(r"/(memory|save|clear)(?:[ \t　]+(.*))?", re.DOTALL)

CommandName = Literal["memory", "save", "clear"]


@dataclass(frozen=True, slots=True)
class Command:
    """`/memory [query]`, `/save <fact>` or `/clear`; `argument` is "" where none was given."""

    name: CommandName
    argument: str = ""


def parse_command(text: str) -> Command | None:
    """The command that the whole of `text` is, else None.

    Exact: lower case, at the very start (white space around is ignored). `/save` needs a fact, `/clear` takes none,
    so that a sentence that merely begins with the word is left to the model. `/memory` and `/clear` are one line; a
    saved fact may be several.
    """
    match = _COMMAND_RE.fullmatch(text.strip())
    if match is None:
        return None
    argument = (match.group(2) or "").strip()
    match match.group(1):
        case "memory" if "\n" not in argument:
            return Command("memory", argument)
        case "save" if argument:
            return Command("save", argument)
        case "clear" if not argument:
            return Command("clear")
    return None
