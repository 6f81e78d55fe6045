"""What brings a request into its window without any model: skeletons, eviction of the oldest rounds, cut texts.

The last resort of compaction, and of whoever finds the request over its hard limit after that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.conversation import Cut, Level
from gateway.counting import Counting
from gateway.cutting import Place, lay, oldest_out
from gateway.forms import Forms, spill_id
from gateway.message import Messages
from gateway.metrics import Metrics
from gateway.prompts import EVICTED_LABEL, evicted_message
from gateway.proposal import Proposal
from gateway.rounds import recent_start
from gateway.settings import Settings
from gateway.store.protocol import Store
from gateway.tasks import Tasks
from gateway.transcript import written
from gateway.turn import Turn

COMPACT = "compact"
"""The action under which a cut is told of, whoever made it."""
LEAST_ROOM = 0.10
"""Of the window: where all that can go is gone and less room than this is left, the next turns would rewrite everything
each, and the agent would see nothing but its last step."""
CUT_MARGIN = 0.9
"""Characters are cut, tokens are meant: a little more goes than the share alone would take."""
LEAST_LEFT = 0.05
"""Share of a text that is left at least."""


@dataclass(frozen=True, slots=True)
class Forcing:
    """Makes turns fit. Nothing here awaits anything."""

    settings: Settings
    forms: Forms
    counting: Counting
    messages: Messages
    store: Store
    tasks: Tasks
    metrics: Metrics

    def force(self, turn: Turn) -> None:
        """What needs no model: skeletons, then eviction of the oldest rounds, then the newest results themselves."""
        target, facts = turn.limits.low, [item.original.facts for item in turn.items]
        proposal = turn.proposal or Proposal(turn, self.forms, self.counting)
        turn.proposal = None
        recent = recent_start(facts, self.settings.microcompact.keep_rounds)
        old = [index for index in turn.standing() if index < recent]
        enough = proposal.add(old, Level.SKELETON, target)
        proposal.commit()
        if enough:
            return
        place = oldest_out(turn, facts, target)
        if place is not None:
            self._evict(turn, place)
        for level in (Level.SNIPPED, Level.SKELETON):
            if turn.count() <= turn.limits.hard:
                break
            proposal.add(turn.standing(), level, turn.limits.hard)
            proposal.commit()
        self._make_room(turn)
        self._cut_texts(turn)

    def cut(self, turn: Turn, place: Place, cut: Cut, how: str, least: int) -> bool:
        """Make a cut on the turn and have it kept, where it wins `least` tokens; whether it did."""
        before, old = turn.count(), (turn.cut, turn.cut_at, turn.summary, dict(turn.mids))
        lay(turn, self.messages, place.at, cut)
        if turn.summary is not None:
            self.counting.recount(turn, [turn.summary])
        if before - turn.count() < least:
            turn.cut, turn.cut_at, turn.summary, turn.mids = old
            turn.changed()
            return False
        self._remember(turn, place, cut, how)
        return True

    def _remember(self, turn: Turn, place: Place, cut: Cut, how: str) -> None:
        turn.rewrite(place.before)
        item = turn.items[place.at]
        turn.records[item.chain] = replace(turn.record(item), cut=cut)
        turn.actions[COMPACT] = how
        turn.proposal, turn.over, turn.compacted = None, False, True
        self.metrics.compactions.labels(how).inc()

    def _make_room(self, turn: Turn) -> None:
        """Cut the largest of the users' texts where it is what leaves no room for earlier rounds."""
        if turn.count() <= turn.limits.hard - int(LEAST_ROOM * turn.limits.window):
            return
        texts = [index for index in self._texts(turn) if turn.items[index].original.facts.role == "user"]
        if texts and turn.count() - turn.tokens_of(turn.items[texts[0]].sent) * turn.ratio <= turn.limits.low:
            self._cut_text(turn, texts[0], turn.count() - turn.limits.low)

    def _cut_texts(self, turn: Turn) -> None:
        """The very last resort, where what has to stay word for word is larger than the window itself.

        The largest texts lose their middles, which go to the spill: a cut request is of more use than a refused one.
        Where that is not enough, all go down to the least that is left of a text: so that a request which can't fit
        goes out in the same bytes when it comes again.
        """
        texts = self._texts(turn)
        for to_the_least in (False, True):
            for index in texts:
                if turn.count() <= turn.limits.hard:
                    return
                over = turn.count() if to_the_least else turn.count() - turn.limits.soft
                self._cut_text(turn, index, over)

    @staticmethod
    def _texts(turn: Turn) -> list[int]:
        """What may be cut, the largest first: all but instructions."""
        texts = [i for i in turn.standing() if not turn.items[i].original.facts.is_instruction]
        return sorted(texts, key=lambda i: -turn.tokens_of(turn.items[i].sent))

    def _cut_text(self, turn: Turn, index: int, over: int) -> None:
        """Cut `over` calibrated tokens out of one text; always out of the whole, so that cuts don't pile up."""
        item = turn.items[index]
        whole = item.whole if item.shortened and item.level is Level.WHOLE and item.whole is not None else item.sent
        if item.shortened and whole is item.sent:
            return
        size = turn.tokens_of(whole) * turn.ratio
        share = max(LEAST_LEFT, (turn.tokens_of(item.sent) * turn.ratio - over) / size * CUT_MARGIN)
        made, gone = self.forms.shortened(whole, share)
        if made is whole:
            return
        short = self.forms.with_text(whole, made.text)  # as it will be made again from the record
        self.counting.recount(turn, [short, item.sent])
        if turn.tokens_of(short) >= turn.tokens_of(item.sent):
            return
        turn.put(index, short, whole=item.whole or item.sent, shortened=True)
        if index < _newest(turn):
            turn.rewrite(i for i in turn.standing() if i < index)
        turn.records[item.chain] = replace(turn.record(item), text=made.text, shortened=True)
        turn.act("cut", 1)
        turn.spilled = True
        for name, text in gone:
            self.tasks.spawn("spill", self.store.put_spill(turn.caller.tenant, name, text))

    def _evict(self, turn: Turn, place: Place) -> None:
        gone = [
            turn.items[index]
            for index in turn.standing()
            if index < place.at and index not in (*place.before, *place.after)
        ]
        text = "\n\n".join(written(item.original) for item in gone)
        name = spill_id(text) if self.settings.spill.enabled else ""
        tokens = int(sum(turn.tokens_of(item.sent) for item in gone) * turn.ratio)
        line = evicted_message(len(gone), tokens, self.forms.where(name) if name else "")
        summary = turn.cut.summary.split(f"\n\n{EVICTED_LABEL}")[0] if turn.cut and turn.cut.summarised else ""
        text_left = f"{summary}\n\n{line}" if summary else line
        cut = Cut(text_left, place.before, place.after, summarised=bool(summary))
        # Not where the line that says what went is longer than what would go.
        if self.cut(turn, place, cut, "evicted", least=1) and name:
            turn.spilled = True
            self.tasks.spawn("spill", self.store.put_spill(turn.caller.tenant, name, text))


def _newest(turn: Turn) -> int:
    """Index of the first item after the last of the assistant's: from there on the upstream has seen nothing."""
    replies: Sequence[int] = [i for i, item in enumerate(turn.items) if item.original.facts.role == "assistant"]
    return max(replies, default=-1) + 1
