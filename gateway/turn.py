"""One request on its way through the stages: the single typed object that they read and change."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gateway.body import ChatBody
from gateway.conversation import Conversation, Cut, Level, Pin, Record
from gateway.limits import Limits
from gateway.message import Message
from gateway.tenants import Caller
from gateway.upstream.routes import Route

if TYPE_CHECKING:
    from gateway.memory.service import Recalled
    from gateway.proposal import Proposal


@dataclass(slots=True)
class Item:
    """One of the client's messages, and the form in which it is sent. Shared between turns: never changed in place."""

    chain: bytes
    """Hash of the conversation up to and including this message."""
    original: Message
    sent: Message
    level: Level = Level.WHOLE
    whole: Message | None = None
    """Its folded, budgeted form, before a pointer or a level took its place; None where none did."""
    own: bool = False
    """Not the client's: a call that the gateway answered, or its result (`readback/`)."""
    client: Message | None = None
    """The client's message, where calls that the gateway answered have been put back into `original`."""
    spilled: bool = False
    """Over its budget at first sight: its whole text is in the spill."""
    shortened: bool = False
    """Cut as the last resort, in the form that is sent."""

    @property
    def deed(self) -> str | None:
        """What was done to it, in one word: the stage whose doing shows in what is sent; None where nothing was."""
        if self.level is not Level.WHOLE:
            return "snip" if self.level is Level.SNIPPED else "microcompact"
        if self.sent is self.original:
            return None
        if self.shortened:
            return "cut"
        if self.whole is not None:
            return "repeat"
        return "spill" if self.spilled else "fold"


DEEDS = ("fold", "spill", "repeat", "cut", "snip", "microcompact")
"""In the order of their stages."""


@dataclass(slots=True)
class Turn:
    """What one chat request carries from stage to stage. Token counts are calibrated to the model at hand."""

    request_id: str
    caller: Caller
    headers: list[tuple[bytes, bytes]]
    """The client's request headers that go upstream."""
    body: ChatBody
    model: str
    stream: bool
    route: Route
    session: str
    project: str
    bypass: frozenset[str]
    """Of `all`, `memory`, `compaction`."""
    conversation: Conversation
    items: list[Item]
    limits: Limits
    settled: int = 0
    """Items before this index stand as an earlier turn left them; only the others are new to the stages."""
    pins_known: int = 0
    """Items before this index have had their pins looked at."""
    derived_session: str = ""
    """The session's name by the conversation's first messages, whatever a header says."""
    before_tokens: int = 0
    """Uncalibrated tokens of the client's messages."""
    fixed_tokens: int = 0
    """Tools, schemas and what else is not a message, uncalibrated."""
    ratio: float = 1.0
    """True tokens for each estimated one, by calibration."""
    encoding: str = ""
    """Set once this turn is counted with tiktoken."""
    family: str = "openai"
    cut: Cut | None = None
    cut_at: int = 0
    """Index of the first message after the cut."""
    summary: Message | None = None
    """The message that stands for what the cut took out."""
    block: str = ""
    """Memory for the system message."""
    mids: dict[int, Message] = field(default_factory=dict)
    """System messages with memory, by the index of the user message they stand before."""
    system: Message | None = None
    """The first system message with the block in it, or a new one."""
    dialect: list[Message] | None = None
    """What goes out instead, where the upstream's chat template needs another form."""
    changes: dict[str, bytes | None] = field(default_factory=dict)
    """Top-level fields to set (raw JSON) or take out (None)."""
    records: dict[bytes, Record] = field(default_factory=dict)
    """Decisions made on this turn, kept once it is over."""
    answered: asyncio.Event | None = None
    """Set once the turn has been answered, or given up; None where nobody waits for that."""
    over: bool = False
    """Past the soft limit, and nothing so far has brought it down."""
    cold: bool = False
    """Idle for so long that the upstream's cache has gone: old bytes are free to change."""
    stable: int | None = None
    """Calibrated tokens before the first message that was rewritten on this turn; None where none was."""
    rewritten: bool = False
    """Messages that were sent whole before have been shrunk or cut away on this turn."""
    compacted: bool = False
    """A new cut was made on this turn: the upstream's cache is lost from the system message on."""
    proposal: Proposal | None = None
    """What snip and microcompact would do, where that is not enough by itself."""
    sum: int | None = None
    """Uncalibrated tokens of all that is sent, the fixed part apart; None where it has to be counted."""
    recall: asyncio.Task[Recalled] | None = None
    """Under way since the turn began, where this turn asks for memories."""
    recall_by: float = 0.0
    """Loop time at which the request goes on without them."""
    pinned: Pin | None = None
    """What an earlier turn put into the system message."""
    idle_s: float = 0.0
    """Since this conversation's last request; 0 for its first."""
    tokens_before: int = 0
    tokens_after: int = 0
    actions: dict[str, int | str] = field(default_factory=dict)
    """Stage to what holds of this request by its doing, for the `X-Gateway-Actions` header."""
    news: dict[str, int] = field(default_factory=dict)
    """Stage to the messages that it changed on this very turn, for the metric."""
    deeds: dict[str, int] | None = None
    """How many of the settled items were changed, by stage; None where that has to be counted."""
    spilled: bool = False
    """A text was put into the spill on this turn."""
    offered: bool = False
    """The model may read spilled texts back by a tool that the gateway answers."""
    rounds: int = 0
    """Requests upstream, beside the first, after such answers."""
    failures: list[str] = field(default_factory=list)
    """Stages that failed and were skipped."""

    def record(self, item: Item) -> Record:
        """What was decided about the item, on this turn or before."""
        found = self.records.get(item.chain)
        return found if found is not None else self.conversation.record(item.chain)

    def tally(self) -> None:
        """Work out what holds of the messages as they are sent; what no message shows (memory, a cut) stays."""
        counts = dict(self.deeds) if self.deeds is not None and not self.rewritten else None
        indices = self.standing() if counts is None else self.fresh()
        counts = counts or {}
        for index in indices:
            deed = self.items[index].deed
            if deed is not None:
                counts[deed] = counts.get(deed, 0) + 1
        others = {stage: what for stage, what in self.actions.items() if stage not in DEEDS}
        self.actions = {**{deed: counts[deed] for deed in DEEDS if counts.get(deed)}, **others}
        self.deeds = counts

    def new_actions(self) -> dict[str, int | str]:
        """What was done on this very turn: `actions` without what earlier turns had settled."""
        done = {stage: what for stage, what in self.actions.items() if isinstance(what, str) and what != "reused"}
        return {**self.news, **done}

    def frozen(self) -> Turn:
        """A copy that stays as the turn is now, for work in the background."""
        return replace(
            self,
            items=[replace(item) for item in self.items],
            mids=dict(self.mids),
            records=dict(self.records),
            recall=None,
            proposal=None,
        )

    def put(
        self,
        index: int,
        sent: Message,
        level: Level | None = None,
        whole: Message | None = None,
        *,
        spilled: bool = False,
        shortened: bool = False,
    ) -> None:
        """Send the item in another form; `whole` stays what it was where none is given."""
        item = self.items[index]
        if index < self.settled:
            self.deeds = None
        if self.sum is not None:
            self.sum += self.tokens_of(sent) - self.tokens_of(item.sent) if self._stands(index) else 0
        self.items[index] = Item(
            item.chain,
            item.original,
            sent,
            item.level if level is None else level,
            item.whole if whole is None else whole,
            item.own,
            item.client,
            item.spilled or spilled,
            shortened,
        )

    def rewrite(self, indices: Iterable[int]) -> None:
        """Note that old messages go out changed on this turn, and that only these items' tokens stand before them."""
        kept = sum(self.tokens_of(self.items[index].sent) for index in indices)
        stable = self.calibrated(kept)
        self.stable = stable if self.stable is None else min(self.stable, stable)
        self.rewritten = True

    def changed(self) -> None:
        """To be called when what is sent has changed otherwise than by `put`: the sum is counted anew."""
        self.sum = None

    def fresh(self) -> Sequence[int]:
        """Indices of the items that are sent and that no earlier turn settled."""
        if not self.settled:
            return self.standing()
        return range(max(self.settled, self.cut_at), len(self.items))

    def has_new_results(self) -> bool:
        """Whether any item that no earlier turn settled is a tool's result."""
        return any(self.items[index].original.facts.is_tool for index in self.fresh())

    def act(self, stage: str, count: int) -> None:
        """Count what a stage did to how many messages."""
        if not count:
            return
        self.news[stage] = self.news.get(stage, 0) + count
        if stage not in DEEDS:  # the others are counted by what is sent in the end
            before = self.actions.get(stage, 0)
            self.actions[stage] = count + before if isinstance(before, int) else count

    def standing(self) -> Sequence[int]:
        """Indices of the items that are sent, in order, the summary apart."""
        if self.cut is None:
            return range(len(self.items))
        return [*self.cut.before, *self.cut.after, *range(self.cut_at, len(self.items))]

    def outgoing(self, upto: int | None = None) -> list[Message]:
        """The messages as they go upstream; with `upto`, those for the items before that index only."""
        end = len(self.items) if upto is None else upto
        if self.cut is None and not self.mids and self.system is None:
            return [item.sent for item in self.items[:end]]
        out: list[Message] = []
        if self.cut is not None and self.summary is not None:
            out += [self.items[index].sent for index in self.cut.before]
            out.append(self.summary)
            out += [self.items[index].sent for index in self.cut.after]
        for index in range(self.cut_at if self.cut is not None else 0, end):
            if index in self.mids:
                out.append(self.mids[index])
            out.append(self.items[index].sent)
        if self.system is not None:
            if self.items[0].original.facts.is_instruction:
                out[0] = self.system
            else:
                out.insert(0, self.system)
        return out

    def count(self, messages: list[Message] | None = None) -> int:
        """Calibrated tokens of `messages` (of all that is sent now, where None) and of the fixed part."""
        if messages is not None:
            total = sum(map(self.tokens_of, messages))
        else:
            if self.sum is None:
                self.sum = sum(map(self.tokens_of, self.outgoing()))
            total = self.sum
        return self.calibrated(total)

    def calibrated(self, tokens: int) -> int:
        """Tokens of messages, with the fixed part, by the calibrated count."""
        return int((self.fixed_tokens + tokens) * self.ratio + 0.5)

    def _stands(self, index: int) -> bool:
        if self.system is not None and index == 0 and self.items[0].original.facts.is_instruction:
            return False
        return self.cut is None or index >= self.cut_at or index in self.cut.before or index in self.cut.after

    def tokens_of(self, message: Message) -> int:
        """Uncalibrated tokens of one message, exact where it has been counted exactly."""
        facts = message.facts
        if self.encoding:
            return facts.precise.get((self.encoding, self.family), facts.tokens)
        if facts.has_image and self.family != "openai":
            return facts.precise.get(("fast", self.family), facts.tokens)
        return facts.tokens
