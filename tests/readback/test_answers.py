"""What a model is told: ranges and searches by hand, bounds by property, and words for everything that goes wrong."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import Unavailable
from gateway.readback.answers import Answers, shown
from gateway.readback.tool import ANSWER_CHARS
from gateway.store.open import open_store

TEXT = "".join(f"line {number}\n" for number in range(1, 1001))
ID = "ab" * 16


class Shelf:
    """A store of one output; `broken` fails, `late` has nothing for so many reads."""

    def __init__(self, *, broken: bool = False, late: int = 0) -> None:
        self.broken = broken
        self.late = late

    async def get_spill(self, tenant: str, id: str) -> str | None:
        if self.broken:
            raise Unavailable("the store can't be read")
        self.late -= 1
        return TEXT if (tenant, id) == ("me", ID) and self.late < 0 else None


def ask(arguments: object, *, tenant: str = "me", room: int = ANSWER_CHARS, **shelf: Any) -> str:
    """One answer."""
    return asyncio.run(Answers(Shelf(**shelf)).answer(tenant, arguments, room))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lines", "first", "last"),
    [
        ("5-7", 5, 7),
        ("5", 5, 5),
        ("999-", 999, 1000),
        ("998-2000", 998, 1000),
        (5, 5, 5),
        ([5, 7], 5, 7),
        ("5:7", 5, 7),
        ("5..7", 5, 7),
        ("lines 5 to 7", 5, 7),
        ("L5-L7", 5, 7),
        ("0-2", 1, 2),
    ],
)
def test_ranges_as_models_write_them(lines: object, first: int, last: int) -> None:
    told = ask(orjson.dumps({"id": ID, "lines": lines}).decode())
    wanted = "".join(f"line {number}\n" for number in range(first, last + 1))
    assert told == f"[lines {first:,}-{last:,} of 1,000]\n{wanted}"


def test_from_the_beginning_it_says_how_to_go_on() -> None:
    told = ask({"id": ID})
    head, *body, end = told.split("\n")
    last = len(body)
    assert body == [f"line {number}" for number in range(1, last + 1)]
    assert head == f"[lines 1-{last} of 1,000]"
    assert end == f'[cut here for length; lines="{last + 1}-1000" goes on]'
    assert ANSWER_CHARS - 10 < sum(len(line) + 1 for line in body) <= ANSWER_CHARS
    assert ask({"id": ID, "lines": f"{last + 1}-1000"}).split("\n")[1] == f"line {last + 1}"


def test_searches() -> None:
    assert ask({"id": ID, "grep": r"^line 5\d$"}).split("\n") == [
        "[10 of 1,000 lines match]",
        *(f"{number}:line {number}" for number in range(50, 60)),
    ]
    assert ask({"id": ID, "grep": "7$", "lines": "1-20"}) == "[2 of 1,000 lines match]\n7:line 7\n17:line 17"
    assert ask({"id": ID, "grep": "nowhere"}) == "[none of 1,000 lines match]"
    assert ask({"id": ID, "grep": "line 9("}) == "[none of 1,000 lines contain the text]"
    many = ask({"id": ID, "grep": "line"})
    shown_lines = many.count(":line")
    assert f"[{1000 - shown_lines:,} more;" in many


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"id": "ab', "no JSON object"),
        ("[1]", "give the id"),
        ("", "give the id"),
        (None, "give the id"),
        ('{"id": 7}', "give the id"),
        ({"id": ID, "lines": "the middle"}, "lines must be"),
        ({"id": ID, "lines": "9-5"}, "lines must be"),
        ({"id": ID, "lines": "5000"}, "no lines from 5,000 on"),
        ({"id": "../../etc/passwd"}, "no output with the id"),
        ({"id": "cd" * 16}, "no output with the id"),
    ],
)
def test_mistakes_are_told_in_words(arguments: object, told: str) -> None:
    assert told in ask(arguments)


def test_a_store_that_fails_or_is_late() -> None:
    assert "can't be read now" in ask({"id": ID}, broken=True)
    assert ask({"id": ID, "lines": "3"}, late=2) == "[lines 3-3 of 1,000]\nline 3\n"
    assert "no output with the id" in ask({"id": ID}, tenant="you")
    assert "no room left" in ask({"id": ID}, room=100)


async def _stored(directory: Path) -> tuple[str, str]:
    store = await open_store(directory, None)
    try:
        await store.put_spill("me", ID, TEXT)
        answers = Answers(store)
        return await answers.answer("me", {"id": ID, "lines": "3"}), await answers.answer("you", {"id": ID})
    finally:
        await store.close()


def test_the_real_store_keeps_tenants_apart(tmp_path: Path) -> None:
    mine, yours = asyncio.run(_stored(tmp_path))
    assert mine == "[lines 3-3 of 1,000]\nline 3\n"
    assert "no output with the id" in yours


@settings(max_examples=150)
@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=60), max_size=40).map("\n".join),
    st.integers(400, 900),
    st.sampled_from([None, "e", "."]),
)
def test_answers_are_bounded_and_quote_the_text(text: str, room: int, grep: str | None) -> None:
    told = shown(text, None, grep, room)
    assert len(told) <= room + 200
    body = told.split("\n")[1:]
    if grep is None:
        kept = [line for line in body if not re.match(r"\[(cut here|line )", line)]
        assert "\n".join(kept).rstrip("\n") in text
    else:
        for line in body[:-1]:
            number, _, rest = line.partition(":")
            assert text.split("\n")[int(number) - 1].startswith(rest.removesuffix("…"))
