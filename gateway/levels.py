"""The message at a level of shrinking, given the calls around it."""

from __future__ import annotations

from gateway.conversation import Level
from gateway.forms import Forms
from gateway.message import Message, functions_called
from gateway.turn import Turn


def call_of(turn: Turn, index: int) -> tuple[str, str]:
    """Name and arguments of the call that `turn.items[index]`, a tool's result, answers; empty where it has none."""
    wanted = turn.items[index].original.facts.reply_to
    for before in range(index - 1, -1, -1):
        message = turn.items[before].original
        if not message.facts.is_tool:
            return _calls(message).get(wanted, ("", ""))
    return "", ""


def calls_by_result(turn: Turn) -> dict[int, tuple[int, str, str]]:
    """For each tool result's index: the index of the assistant message that called, the name and the arguments."""
    found: dict[int, tuple[int, str, str]] = {}
    caller, calls = -1, dict[str, tuple[str, str]]()
    for index, item in enumerate(turn.items):
        facts = item.original.facts
        if not facts.is_tool:
            caller, calls = index, _calls(item.original) if item.original.calls_something else {}
        elif facts.reply_to in calls:
            found[index] = (caller, *calls[facts.reply_to])
    return found


def _calls(message: Message) -> dict[str, tuple[str, str]]:
    calls: dict[str, tuple[str, str]] = {}
    for name, function in functions_called(message.data):
        arguments = function.get("arguments")
        calls[name] = (str(function.get("name") or ""), arguments if isinstance(arguments, str) else "")
    return calls


def at_level(forms: Forms, turn: Turn, index: int, level: Level) -> Message:
    """The form of an item at a level; what a level has no form for stays as it is sent now.

    Made from the item's whole form and never from a shorter one, so that it comes out the same on a later turn, when
    only the level is known.
    """
    item = turn.items[index]
    facts, whole = item.original.facts, item.whole or item.sent
    if facts.is_tool:
        if level is Level.SKELETON:
            return forms.skeleton_of_result(whole, *call_of(turn, index))
        if level is Level.SNIPPED:
            return forms.snipped(whole)
    elif whole.calls_something and level is Level.SKELETON:
        return forms.skeleton_of_call(whole)
    return item.sent
