"""Plots of the tokens of each turn, a file per conversation and window, a line per strategy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.replay.conversations import TRACE
from bench.replay.runner import Outcome


def draw(outcomes: Sequence[Outcome], windows: Sequence[int], folder: Path) -> list[Path]:
    """Write the plots of every conversation that is not a single trace; gives the files. Needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    names = dict.fromkeys(outcome.conversation for outcome in outcomes if outcome.kind != TRACE)
    for name in names:
        for window in windows:
            figure, axes = plt.subplots(figsize=(9, 5))
            for outcome in outcomes:
                if outcome.conversation == name and outcome.window in (None, window) and outcome.bill.turns:
                    axes.plot(outcome.bill.sizes, label=outcome.strategy, linewidth=1.2)
            axes.axhline(window, color="black", linestyle="--", linewidth=0.8, label="window")
            axes.set(title=f"{name}, window of {window:,} tokens", xlabel="turn", ylabel="tokens sent")
            axes.set_ylim(0, window * 3)  # what overflows by far would flatten the rest
            axes.legend(fontsize="small")
            path = folder / f"{name}-{window // 1000}k.png"
            figure.savefig(path, dpi=110, bbox_inches="tight")
            plt.close(figure)
            written.append(path)
    return written
