"""What a stage is: a name, what switches it off, and one thing done to the turn."""

from __future__ import annotations

from typing import Protocol

from gateway.turn import Turn


class Stage(Protocol):
    """One step of the pipeline. It may raise anything: the runner then goes on as if it were off."""

    name: str
    bypass: str
    """The `X-Gateway-Bypass` value, beside `all`, that skips it; empty for none."""

    def skips(self, turn: Turn) -> bool:
        """Whether there is nothing to do; told at once, so that an ordinary turn costs little."""
        ...

    async def run(self, turn: Turn) -> None:
        """Do it, on a turn that it does not skip."""
        ...
