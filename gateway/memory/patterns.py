"""Regular expressions compiled at their first use: memory's long ones would cost every start a third of a second."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property


class Pattern:
    """As `re.compile(pattern, flags)`, later."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.pattern = pattern
        self.flags = flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The real one."""
        return re.compile(self.pattern, self.flags)

    def search(self, text: str) -> re.Match[str] | None:
        """As `re.Pattern.search`."""
        return self.compiled.search(text)

    def match(self, text: str) -> re.Match[str] | None:
        """As `re.Pattern.match`."""
        return self.compiled.match(text)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """As `re.Pattern.fullmatch`."""
        return self.compiled.fullmatch(text)

    def findall(self, text: str) -> list[str]:
        """As `re.Pattern.findall`, for a pattern without groups."""
        return self.compiled.findall(text)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """As `re.Pattern.finditer`."""
        return self.compiled.finditer(text)

    def sub(self, replacement: str | Callable[[re.Match[str]], str], text: str, count: int = 0) -> str:
        """As `re.Pattern.sub`."""
        return self.compiled.sub(replacement, text, count)
