"""How the demo looks: a line for each request, a progress bar under them on a terminal, a table at the end."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from gateway.demo.drive import Turn
from gateway.demo.report import Bill, Report, actions_words, change, percent
from gateway.demo.script import Session

PLAIN_WIDTH = 140
"""Columns where the output is a file or a CI log."""
NEWEST_WIDTH = 30
STAGES = ("fold", "repeat", "spill", "snip", "microcompact", "compact", "memory")
LEGEND = (
    "tokens: as the agent sent it (red: over the window) → as the model got it; cached: by the model's prompt cache",
    "fold, repeat: loses nothing · spill: a huge result cut, kept aside whole · snip, microcompact: old results cut",
    "compact: a summary in place of old messages (new, made ahead, or reused) · memory: recalled into the instructions",
)


class Screen:
    """Prints the run; on anything but a terminal, plain lines and no bar."""

    def __init__(self, requests: int, *, show: bool = True) -> None:
        console = Console(highlight=False, quiet=not show)
        self.watched = show and console.is_terminal
        """Whether somebody looks on, or the output goes to a file."""
        if not self.watched:
            console = Console(highlight=False, quiet=not show, width=PLAIN_WIDTH)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not self.watched,
        )
        self._task = self._progress.add_task("starting the gateway", total=requests)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._progress.stop()

    def ready(self, url: str, window: int) -> None:
        """The gateway answers."""
        self._print(
            Text.assemble(
                ("Breakwater", "bold"),
                f" at {url}, in front of a model with a window of {window:,} tokens; both on this machine",
            )
        )
        for line in LEGEND:
            self._print(Text(line, "dim"))

    def session(self, session: Session) -> None:
        """A conversation begins."""
        self._progress.update(self._task, description=session.name)
        self._print(Text())
        self._print(
            Text.assemble((f"{session.name}: ", "bold cyan"), (session.title, "cyan"), f" (user {session.user})")
        )
        self._print(
            Text(f"    {'what it brings':{NEWEST_WIDTH}} {'tokens':>8} → {'sent':<7} change  cached  stages", "dim")
        )

    def turn(self, turn: Turn) -> None:
        """A request was answered, or was not."""
        self._progress.advance(self._task)
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f"{turn.number:3d} ", "dim")
        newest = Text(turn.newest.replace("\n", " "))
        newest.truncate(NEWEST_WIDTH, overflow="ellipsis", pad=True)
        line.append_text(newest)
        line.append(f" {turn.before:7,d}", "red" if turn.direct_refused else "")
        line.append(" → ", "dim")
        line.append(f"{turn.after:6,d} ", "bold")
        line.append(f"{change(turn.before, turn.after):>6} ", "green" if turn.after < turn.before else "yellow")
        line.append(f"{percent(turn.cached, turn.after):>7}  ", "dim")
        line.append(actions_words(turn.actions, STAGES), "magenta" if "compact" in turn.actions else "")
        self._print(line)
        for memory in turn.remembered:
            self._print(Text.assemble(("    remembered: ", "green"), memory))
        for memory in turn.kept:
            self._print(Text.assemble(("    kept: ", "green"), memory))
        if turn.error:
            self._print(Text(f"    {turn.error}", "bold red"))

    def finish(self, report: Report) -> None:
        """The table, and what it stands on."""
        if report.direct is not None and report.gateway is not None:
            self._print(Text())
            self._print(_bills(report, report.direct, report.gateway))
        for problem in report.problems:
            self._print(Text(problem, "bold red"))
        count = "tiktoken's o200k_base" if report.exact else "estimate (tiktoken's rank file is missing)"
        self._print(
            Text(
                f"Both sides were measured in this run ({report.seconds:.1f} s) by the scripted upstream, by {count}. "
                "Billed: in fresh prompt tokens; a cached one counts 0.1, a written one 8. The direct bill takes what "
                "was refused as if the window had been large enough; the other has the summaries in it.",
                "dim",
            )
        )

    def _print(self, what: Text | Table) -> None:
        self._progress.console.print(what, no_wrap=isinstance(what, Text) and what.no_wrap, overflow="ellipsis")


def _bills(report: Report, direct: Bill, gateway: Bill) -> Table:
    table = Table(title=f"{len(report.turns)} requests of {report.users} users", title_justify="left")
    table.add_column("")
    for head in ("direct", "through the gateway", "change"):
        table.add_column(head, justify="right")

    def row(name: str, left: float, right: float) -> None:
        table.add_row(name, f"{left:,.0f}", f"{right:,.0f}", change(left, right))

    row("prompt tokens", direct.prompt, gateway.prompt)
    table.add_row("of them cached", percent(direct.cached, direct.prompt), percent(gateway.cached, gateway.prompt))
    row("written tokens", direct.completion, gateway.completion)
    table.add_row(
        "billed", f"{direct.price:,.0f}", f"{gateway.price:,.0f}", change(direct.price, gateway.price), style="bold"
    )
    row("largest request", direct.largest, gateway.largest)
    refused = f"{direct.refused:,}", f"{gateway.refused:,}"
    table.add_row("refused: over the window", *refused, style="" if gateway.refused == 0 else "bold red")
    table.add_row("summaries asked for", "", f"{gateway.side_calls:,}")
    words = ", ".join(f"{count} {how}" for how, count in report.compactions.items())
    table.add_row("compactions", "", words or "none")
    words = ", ".join(f"{count} {what}" for what, count in report.memories.items())
    table.add_row("memories", "", words or "none")
    return table
