"""What a model is told when it reads a spilled output back: bounded, numbered, and with the way to go on.

Whatever goes wrong is told to the model in words: a read that fails must never fail the client's request.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Final

import structlog

from gateway.body import as_object, decode
from gateway.errors import BadRequest, GatewayError
from gateway.readback.tool import ANSWER_CHARS
from gateway.spill_text import SPILL_ID, Selected, select
from gateway.store.protocol import Store

log = structlog.get_logger(__name__)

LEAST_CHARS: Final = 400
"""In less room than this an answer says nothing."""
READ_S: Final = 5.0
"""The longest a read may take, a search's own deadline included."""
STILL_WRITING_S: Final = (0.05, 0.2, 0.5)
"""An output is put into the spill in the background: a model that answers at once may be faster."""
GREP_MOST: Final = 1_000
"""Characters of a pattern."""
_RANGE: Final = re.compile(r"(?:lines?\s*|L)?(\d{1,9})\s*(?:(-|–|—|:|,|\.\.+|to)\s*L?(\d{1,9})?)?", re.IGNORECASE)
_NO_ROOM: Final = "[There is no room left in the context to read more. Go on with what you have.]"
_NO_ID: Final = 'Error: give the id that stands where the output was cut, as {"id": "…"}.'
_NO_RANGE: Final = 'Error: lines must be a range such as "120-180", counted from 1.'


class Answers:
    """Answers calls of the tool out of the spill store. Never raises."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def answer(self, tenant: str, arguments: object, room: int = ANSWER_CHARS) -> str:
        """The text of one call's result.

        Args:
            arguments: as the model gave them: JSON text, whole or broken, or an object.
            room: characters that the answer may have.
        """
        if room < LEAST_CHARS:
            return _NO_ROOM
        asked = _asked(arguments)
        if isinstance(asked, str):
            return asked
        name, lines, grep = asked
        try:
            async with asyncio.timeout(READ_S):
                text = await self._read(tenant, name)
                if text is None:
                    return f"Error: no output with the id {name[:64]} is kept; old ones are dropped after a while."
                return await asyncio.to_thread(shown, text, lines, grep, min(room, ANSWER_CHARS))
        except BadRequest:
            return _NO_RANGE
        except (GatewayError, TimeoutError) as error:
            log.warning("spilled output could not be read", error=type(error).__name__)
            return "Error: the output can't be read now. Go on with what you have, or try again later."

    async def _read(self, tenant: str, name: str) -> str | None:
        if not SPILL_ID.fullmatch(name):
            return None
        text = await self._store.get_spill(tenant, name)
        for pause in STILL_WRITING_S:
            if text is not None:
                break
            await asyncio.sleep(pause)
            text = await self._store.get_spill(tenant, name)
        return text


def shown(text: str, lines: str | None, grep: str | None, room: int) -> str:
    """The part of `text` that was asked for, in at most about `room` characters, under a line that says what it is.

    Raises:
        BadRequest: the range ends before it begins.
    """
    found = select(text, lines, grep)
    return _matches(found, room) if grep is not None else _lines(found, lines, room)


def _matches(found: Selected, room: int) -> str:
    total = found.shown + found.left_out
    how = "contain the text" if found.how == "literal" else "match"
    head = f"[{total:,} of {found.lines:,} lines {how}]" if total else f"[none of {found.lines:,} lines {how}]"
    kept, count = _whole_lines(found.text, room)
    if count == total:
        return f"{head}\n{kept}".rstrip("\n")
    rest = f'[{total - count:,} more; give a narrower grep, or lines="a-b" around one]'
    return f"{head}\n{kept.rstrip()}\n{rest}"


def _lines(found: Selected, lines: str | None, room: int) -> str:
    first = int(lines.partition("-")[0]) if lines else 1
    if not found.shown:
        return f"[no lines from {first:,} on: the output has {found.lines:,}]"
    kept, count = _whole_lines(found.text, room)
    last = first + count - 1
    head = f"[lines {first:,}-{last:,} of {found.lines:,}]"
    if count == found.shown and len(kept) == len(found.text):
        return f"{head}\n{kept}"
    if len(kept) < len(found.text.split("\n", 1)[0]):
        end = f"[line {first:,} goes on; grep finds a part of it]"
    else:
        end = f'[cut here for length; lines="{last + 1}-{first + found.shown - 1}" goes on]'
    return f"{head}\n{kept.rstrip()}\n{end}"


def _whole_lines(text: str, room: int) -> tuple[str, int]:
    """As many whole lines as fit, and how many; the beginning of the first where not even that fits."""
    if len(text) > room:
        end = text.rfind("\n", 0, room)
        text = text[: end + 1] if end >= 0 else text[:room]
    return text, text.count("\n") + (not text.endswith("\n") and bool(text))


def _asked(arguments: object) -> tuple[str, str | None, str | None] | str:
    """Id, range and pattern; or what is wrong with them."""
    if isinstance(arguments, str):
        try:
            arguments = decode(arguments.encode("utf-8", "surrogatepass")) if arguments.strip() else {}
        except (ValueError, RecursionError):
            return 'Error: the arguments are no JSON object. Call again with {"id": "…"}, and lines or grep.'
    given = as_object(arguments)
    name = given.get("id")
    if not isinstance(name, str) or not name.strip():
        return _NO_ID
    lines = _range(given.get("lines"))
    if lines == "":
        return _NO_RANGE
    grep = given.get("grep")
    grep = grep if isinstance(grep, str) or not grep else json.dumps(grep)
    return name.strip(), lines, grep[:GREP_MOST] if grep else None


def _range(value: object) -> str | None:
    """As `select` takes it; None where nothing was asked for, empty where it can't be understood."""
    if value is None or value in ("", "null", []):
        return None
    if isinstance(value, list):
        value = "-".join(map(str, value[:2]))
    match = _RANGE.fullmatch(str(value).strip()) if isinstance(value, str | int) else None
    if match is None:
        return ""
    first, last = max(1, int(match[1])), match[3]
    if last is not None:
        return f"{first}-{max(1, int(last))}"
    return f"{first}-" if match[2] else str(first)
