"""What the gateway decided about a conversation, so that it decides once and sends the same bytes ever after.

A client sends the whole history each turn. Every message is named by its *chain*: the hash of all messages up to and
including it, so that a decision holds for exactly the history it was made for: an edited or forked conversation shares
what lies before the fork and nothing after it. Decisions are kept in memory and, through the store, for other replicas
and the next start.
"""

from __future__ import annotations

import asyncio
import enum
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from gateway.body import decode, encode
from gateway.store.protocol import Decision, Store
from gateway.tasks import Tasks

CONVERSATIONS_KEPT = 5_000
"""Conversations whose decisions stay in memory; the others are read from the store again."""
KIND = "message"


class Level(enum.IntEnum):
    """How far a message has been shrunk; it never goes back."""

    WHOLE = 0
    SNIPPED = 1
    SKELETON = 2


@dataclass(frozen=True, slots=True)
class Cut:
    """Everything before the message it is kept under is replaced: by `kept` messages and a summary.

    `before` and `after` are indices into the client's `messages` of those that stay word for word, before the summary
    (instructions, the task) and after it (the newest user message).
    """

    summary: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    summarised: bool = True
    """False where messages were evicted and the line only says what went."""


@dataclass(frozen=True, slots=True)
class Pin:
    """Memory injected at a user message: `block` for the system message, or on its own before that message (`mid`)."""

    block: str
    ids: tuple[str, ...] = ()
    mid: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """All that was decided about one message."""

    level: Level = Level.WHOLE
    text: str | None = None
    """What the content of a tool message was replaced by at first sight, where that depends on the messages before."""
    cut: Cut | None = None
    """A compaction: this message is the first that follows it."""
    pin: Pin | None = None

    def to_bytes(self) -> bytes:
        """JSON, for the store."""
        out: dict[str, object] = {"level": int(self.level)}
        if self.text is not None:
            out["text"] = self.text
        if self.cut is not None:
            out["cut"] = [self.cut.summary, self.cut.before, self.cut.after, self.cut.summarised]
        if self.pin is not None:
            out["pin"] = [self.pin.block, self.pin.ids, self.pin.mid]
        return encode(out)

    @classmethod
    def from_bytes(cls, raw: bytes) -> Record:
        """The record written by `to_bytes`."""
        data = decode(raw)
        cut, pin = data.get("cut"), data.get("pin")
        return cls(
            Level(data["level"]),
            data.get("text"),
            Cut(cut[0], tuple(cut[1]), tuple(cut[2]), cut[3]) if cut else None,
            Pin(pin[0], tuple(pin[1]), pin[2]) if pin else None,
        )


EMPTY = Record()


@dataclass(slots=True)
class Conversation:
    """One tenant's session. Owned by the event loop; no lock is needed between two awaits."""

    tenant: str
    session: str
    records: dict[bytes, Record] = field(default_factory=dict)
    last_seen: float = 0.0
    """Wall clock of the request before this one, seconds; 0 for the first."""
    compacted_at: float = 0.0
    failed_at: float = 0.0
    """Monotonic time of the last summary that failed: no new one is tried for a while."""
    flights: dict[bytes, asyncio.Future[str | None]] = field(default_factory=dict)
    """Summaries being written, by the chain of the message they end before."""
    ready: dict[bytes, str] = field(default_factory=dict)
    """Summaries written ahead of need, by the same."""
    user_turns: int = 0
    extracted_turns: int = 0
    """User turns when a model last read it for facts."""
    scribed: int = 0
    """Messages of the conversation that the scribe has read."""

    def record(self, chain: bytes) -> Record:
        """What was decided about the message."""
        return self.records.get(chain, EMPTY)


class Conversations:
    """The conversations at hand, the newest used kept in memory, all of them in the store."""

    def __init__(self, store: Store, tasks: Tasks, limit: int = CONVERSATIONS_KEPT) -> None:
        self._store = store
        self._tasks = tasks
        self._limit = limit
        self._kept: OrderedDict[tuple[str, str], Conversation] = OrderedDict()
        self._loading: dict[tuple[str, str], asyncio.Task[Conversation]] = {}

    async def get(self, tenant: str, session: str, *, fresh: bool = False) -> Conversation:
        """The conversation; `fresh` says that it can't have any decisions yet, which saves the look into the store."""
        key = (tenant, session)
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            return found
        if fresh:
            return self._keep(Conversation(tenant, session))
        task = self._loading.get(key)
        if task is None:
            task = self._loading[key] = asyncio.create_task(self._load(tenant, session))
            task.add_done_callback(lambda _: self._loading.pop(key, None))
        return await asyncio.shield(task)

    def decide(self, conversation: Conversation, changes: Mapping[bytes, Record]) -> None:
        """Keep decisions: at once in memory, soon in the store."""
        if not changes:
            return
        conversation.records.update(changes)
        now = time.time()
        rows = [Decision(chain, KIND, record.to_bytes(), now) for chain, record in changes.items()]
        self._tasks.spawn("decisions", self._store.save_decisions(conversation.tenant, conversation.session, rows))

    def amend(self, conversation: Conversation, chain: bytes, **changes: object) -> None:
        """Change some fields of one record and keep it."""
        self.decide(conversation, {chain: replace(conversation.record(chain), **changes)})  # type: ignore[arg-type]

    def forget(self, tenant: str, sessions: Iterable[str] | None = None) -> None:
        """Drop what is in memory for a tenant, or for some of its sessions."""
        wanted = None if sessions is None else set(sessions)
        for key in [key for key in self._kept if key[0] == tenant and (wanted is None or key[1] in wanted)]:
            del self._kept[key]

    async def _load(self, tenant: str, session: str) -> Conversation:
        conversation = Conversation(tenant, session)
        for decision in await self._store.load_decisions(tenant, session):
            if decision.kind == KIND:
                conversation.records[decision.chain] = Record.from_bytes(decision.payload)
                conversation.last_seen = max(conversation.last_seen, decision.created)
        return self._keep(conversation)

    def _keep(self, conversation: Conversation) -> Conversation:
        self._kept[conversation.tenant, conversation.session] = conversation
        while len(self._kept) > self._limit:
            self._kept.popitem(last=False)
        return conversation
