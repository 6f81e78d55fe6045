"""The little of a database connection that the store's operations use, so that one set of SQL serves both databases.

Operations are plain synchronous functions of a `Db`; the stores run them on threads of their own, inside a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

Row = Sequence[Any]
T = TypeVar("T")

MAX_PARAMETERS = 500
"""Values in one `IN (…)`: under SQLite's oldest limit of 999."""


class Db(Protocol):
    """One connection. SQL is written with `?` placeholders."""

    def rows(self, sql: str, params: Sequence[object] = ()) -> list[Row]:
        """Run and fetch everything."""
        ...

    def run(self, sql: str, params: Sequence[object] = ()) -> int:
        """Run; the number of rows changed."""
        ...

    def joined(self, left: str, right: str) -> str:
        """SQL for the concatenation of two byte columns."""
        ...

    def many(self, sql: str, params: Iterable[Sequence[object]]) -> None:
        """Run once per item."""
        ...


Operation = Callable[[Db], T]


def one(db: Db, sql: str, params: Sequence[object] = ()) -> Row | None:
    """The first row, or None."""
    found = db.rows(sql, params)
    return found[0] if found else None


def marks(count: int) -> str:
    """`?,?,?`"""
    return ",".join("?" * count)


def batches(values: Sequence[T], size: int = MAX_PARAMETERS) -> list[Sequence[T]]:
    """Slices that fit one statement."""
    return [values[i : i + size] for i in range(0, len(values), size)]
