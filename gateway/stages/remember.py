"""Repeats what earlier turns decided, so that an old message goes out with the bytes it had last time."""

from __future__ import annotations

from gateway.conversation import Level
from gateway.forms import Forms
from gateway.levels import at_level
from gateway.turn import Turn


class Remember:
    """Puts every message back to the level, or the text, that it was given before."""

    name = "remember"
    bypass = "compaction"

    def __init__(self, forms: Forms) -> None:
        self._forms = forms

    def skips(self, turn: Turn) -> bool:
        """Whether there is nothing to do."""
        return not turn.conversation.records or turn.settled >= len(turn.items)

    async def run(self, turn: Turn) -> None:
        """Apply the conversation's records."""
        for index in turn.fresh():
            item = turn.items[index]
            record = turn.conversation.record(item.chain)
            if record.level is not Level.WHOLE:
                made = at_level(self._forms, turn, index, record.level)
                if record.text is not None:  # cut as the last resort, after it was shrunk
                    made = self._forms.with_text(made, record.text)
                turn.put(index, made, record.level, item.sent, shortened=record.text is not None)
            elif record.text is not None:
                made = self._forms.with_text(item.sent, record.text)
                turn.put(index, made, whole=item.sent, shortened=record.shortened)
