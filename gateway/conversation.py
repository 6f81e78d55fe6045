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
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import structlog

from gateway.account import Account
from gateway.body import decode, encode
from gateway.errors import GatewayError
from gateway.store.protocol import Decision, Store
from gateway.tasks import Tasks

log = structlog.get_logger(__name__)

CONVERSATIONS_KEPT = 5_000
"""Conversations whose decisions stay in memory; the others are read from the store again."""
GATHER_S = 0.005
"""How long decisions wait for others to be written with: less than any model takes to answer."""
KEPT_BYTES = 48 * 1024 * 1024
"""Of these decisions, over all conversations."""
CONVERSATION_WEIGHT = 3_000
"""Bytes that a conversation without decisions costs, measured: the object, its account, tips and maps."""
RECORD_WEIGHT = 500
"""Bytes that a record costs beside its texts: key, record, and its place in the map."""
KIND = "message"
TIPS_KEPT = 8
"""Of a conversation's newest requests: so many sub-agents may share a session before the store is asked again."""
LOAD_S = 2.0
"""How long a request waits for its conversation's decisions; after that it goes on without them."""
LOAD_AGAIN_S = 30.0
"""After a store failed, it is not asked for this conversation again for so long."""


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
class Reading:
    """What the model read back of spilled outputs between a message and its next reply that the client saw.

    The client knows nothing of it, so on later turns it is put back from here. JSON texts are kept as they were sent.
    """

    rounds: tuple[str, ...]
    """JSON of the messages of the rounds that the gateway answered alone, in order: calls, results, calls …"""
    said: str
    """What the model said in these rounds and the client got, before the reply's own text."""
    text: str
    """Digest of all the text that the client got, by which the reply is known again."""
    calls: tuple[str, ...] = ()
    """Ids of the client's own calls in the reply."""
    beside: tuple[tuple[int, str, str], ...] = ()
    """Calls of the gateway's in the same reply: place among all its calls, JSON of the call, JSON of its result."""


@dataclass(frozen=True, slots=True)
class Record:
    """All that was decided about one message."""

    level: Level = Level.WHOLE
    text: str | None = None
    """What the content was replaced by, where that depends on more than the message: on those before, on the room."""
    cut: Cut | None = None
    """A compaction: this message is the first that follows it."""
    pin: Pin | None = None
    spilled: bool = False
    """On this turn the conversation first held a result whose whole text is in the spill."""
    readings: tuple[Reading, ...] = ()
    """Made after this message: one for each reply that the client got to it."""
    shortened: bool = False
    """`text` is a cut made as the last resort, and no pointer to what stands before."""

    @property
    def weight(self) -> int:
        """Bytes that it takes in memory, about."""
        texts = len(self.text or "") + (len(self.cut.summary) if self.cut is not None else 0)
        texts += len(self.pin.block) if self.pin is not None else 0
        texts += sum(sum(map(len, reading.rounds)) + len(reading.said) for reading in self.readings)
        return RECORD_WEIGHT + texts

    def to_bytes(self) -> bytes:
        """JSON, for the store."""
        out: dict[str, object] = {"level": int(self.level)}
        if self.text is not None:
            out["text"] = self.text
        if self.cut is not None:
            out["cut"] = [self.cut.summary, self.cut.before, self.cut.after, self.cut.summarised]
        if self.pin is not None:
            out["pin"] = [self.pin.block, self.pin.ids, self.pin.mid]
        if self.spilled:
            out["spilled"] = True
        if self.shortened:
            out["shortened"] = True
        if self.readings:
            out["readings"] = [[r.rounds, r.said, r.text, r.calls, r.beside] for r in self.readings]
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
            data.get("spilled", False),
            tuple(
                Reading(
                    tuple(rounds), said, text, tuple(calls), tuple((at, call, result) for at, call, result in beside)
                )
                for rounds, said, text, calls, beside in data.get("readings", ())
            ),
            data.get("shortened", False),
        )


EMPTY = Record()
NO_MEMORY = Record(pin=Pin(""))
"""A recall that found nothing: kept in memory alone, since asking again costs little."""


def _with_pin(record: Record, pin: Pin | None) -> Record:
    """A pin, once made, stays: another request with the same history may have begun before it was there."""
    return record if pin is None or record.pin is not None else replace(record, pin=pin)


@dataclass(slots=True)
class Conversation:
    """One tenant's session. Owned by the event loop; no lock is needed between two awaits."""

    tenant: str
    session: str
    records: dict[bytes, Record] = field(default_factory=dict)
    last_seen: float = 0.0
    """Wall clock of the request before this one, seconds; 0 for the first."""
    account: Account = field(default_factory=Account)
    failed_at: float = 0.0
    """Monotonic time of the last summary that failed: no new one is tried for a while."""
    flights: dict[bytes, asyncio.Future[str | None]] = field(default_factory=dict)
    """Summaries being written, by the chain of the message they end before."""
    ready: dict[bytes, str] = field(default_factory=dict)
    """Summaries written ahead of need, by the same."""
    user_turns: int = 0
    touched_at: float = 0.0
    """Wall clock at which the store was last told that the session is alive."""
    extracted_turns: int = 0
    """User turns when a model last read it for facts."""
    scribed: int = 0
    """Messages of the conversation that the scribe has read."""
    tips: deque[bytes] = field(default_factory=lambda: deque(maxlen=TIPS_KEPT))
    """Chains of the last messages of the newest requests that came to this process."""
    failed_load_at: float | None = None
    """Monotonic time at which the store could not be read; None where all it had is here."""

    version: int = 0
    """Grows with every decision."""
    weight: int = CONVERSATION_WEIGHT
    """Bytes that it takes in memory, about."""

    def record(self, chain: bytes) -> Record:
        """What was decided about the message."""
        return self.records.get(chain, EMPTY)

    def take(self, chain: bytes, record: Record) -> int:
        """Keep a record; the bytes by which that makes the conversation heavier."""
        old = self.records.get(chain)
        heavier = record.weight - (old.weight if old is not None else 0)
        self.records[chain] = record
        self.weight += heavier
        return heavier

    def missed(self, chains: Sequence[bytes], replies: Sequence[int]) -> bool:
        """Whether turns of this history went elsewhere: to another replica, or to this one before its last start.

        Args:
            chains: of the request's messages.
            replies: indices of its assistant messages. More than one since the newest turn seen here: one was missed.
        """
        if self.failed_load_at is not None:
            return time.monotonic() - self.failed_load_at > LOAD_AGAIN_S
        if not replies:
            return False
        known = set(self.tips)
        newest = next((index for index in range(len(chains) - 1, -1, -1) if chains[index] in known), -1)
        return sum(1 for index in replies if index > newest) > 1


class Conversations:
    """The conversations at hand, the newest used kept in memory, all of them in the store."""

    def __init__(self, store: Store, tasks: Tasks, limit: int = CONVERSATIONS_KEPT) -> None:
        self._store = store
        self._tasks = tasks
        self._limit = limit
        self._kept: OrderedDict[tuple[str, str], Conversation] = OrderedDict()
        self._weight = 0
        self._loading: dict[tuple[str, str], asyncio.Task[Conversation]] = {}
        self._due: dict[tuple[str, str], list[Decision]] = {}
        """Decisions on their way to the store, by tenant and session."""
        self._saving = False

    async def get(self, tenant: str, session: str, chains: Sequence[bytes], replies: Sequence[int]) -> Conversation:
        """The conversation, with all that was decided about this history, here or elsewhere.

        Args:
            chains: of the request's messages.
            replies: indices of its assistant messages; without any there can't be decisions yet.
        """
        found = self._kept.get((tenant, session))
        if found is None:
            found = await self._loaded(tenant, session) if replies else self._keep(Conversation(tenant, session))
        else:
            self._kept.move_to_end((tenant, session))
            if found.missed(chains, replies):
                await self.refresh(found)
        found.tips.append(chains[-1])
        return found

    async def refresh(self, conversation: Conversation) -> None:
        """Read what the store has of it once more. A store that can't answer, or not soon, is done without."""
        try:
            async with asyncio.timeout(LOAD_S):
                rows = await self._store.load_decisions(conversation.tenant, conversation.session)
        except (GatewayError, TimeoutError) as error:
            conversation.failed_load_at = time.monotonic()
            log.warning("decisions could not be read, going on without", error=type(error).__name__)
            return
        conversation.failed_load_at = None
        for row in rows:
            if row.kind != KIND:
                continue
            record, here = Record.from_bytes(row.payload), conversation.records.get(row.chain)
            if here != record and (here is None or record.level >= here.level):
                self._grown(conversation, conversation.take(row.chain, record))
                conversation.version += 1
            conversation.last_seen = max(conversation.last_seen, row.created)

    def decide(self, conversation: Conversation, changes: Mapping[bytes, Record]) -> None:
        """Keep decisions: at once in memory, soon in the store."""
        if not changes:
            return
        changes = {chain: _with_pin(record, conversation.record(chain).pin) for chain, record in changes.items()}
        self._grown(conversation, sum(conversation.take(chain, record) for chain, record in changes.items()))
        conversation.version += 1
        now = time.time()
        rows = [
            Decision(chain, KIND, record.to_bytes(), now) for chain, record in changes.items() if record != NO_MEMORY
        ]
        if not rows:
            return
        self._due.setdefault((conversation.tenant, conversation.session), []).extend(rows)
        if not self._saving:
            self._saving = self._tasks.spawn("decisions", self._save()) is not None

    def amend(self, conversation: Conversation, chain: bytes, **changes: object) -> None:
        """Change some fields of one record and keep it."""
        self.decide(conversation, {chain: replace(conversation.record(chain), **changes)})  # type: ignore[arg-type]

    def holds(self, conversation: Conversation) -> bool:
        """Whether it is the one in memory, and not one that has been forgotten since."""
        return self._kept.get((conversation.tenant, conversation.session)) is conversation

    def forget(self, tenant: str, sessions: Iterable[str] | None = None) -> None:
        """Drop what is in memory for a tenant, or for some of its sessions."""
        wanted = None if sessions is None else set(sessions)
        for key in [key for key in self._kept if key[0] == tenant and (wanted is None or key[1] in wanted)]:
            self._weight -= self._kept.pop(key).weight
        for key in [key for key in self._due if key[0] == tenant and (wanted is None or key[1] in wanted)]:
            del self._due[key]

    async def _save(self) -> None:
        """Write what is due, together with what other requests decide within a moment: one commit for all of them."""
        await asyncio.sleep(GATHER_S)
        due, self._due, self._saving = self._due, {}, False
        await self._store.save_decisions(due)

    async def _loaded(self, tenant: str, session: str) -> Conversation:
        """Read from the store, once for all the requests that want it."""
        key = (tenant, session)
        task = self._loading.get(key)
        if task is None:
            task = self._loading[key] = asyncio.create_task(self._load(tenant, session))
            task.add_done_callback(lambda _: self._loading.pop(key, None))
        return await asyncio.shield(task)

    async def _load(self, tenant: str, session: str) -> Conversation:
        conversation = Conversation(tenant, session)
        await self.refresh(conversation)
        return self._keep(conversation)

    def _keep(self, conversation: Conversation) -> Conversation:
        key = (conversation.tenant, conversation.session)
        old = self._kept.pop(key, None)
        self._kept[key] = conversation
        self._weight += conversation.weight - (old.weight if old is not None else 0)
        self._trim()
        return conversation

    def _grown(self, conversation: Conversation, by: int) -> None:
        if self.holds(conversation):
            self._weight += by
            self._trim()

    def _trim(self) -> None:
        """Forget the conversations longest unused; the newest stays, however heavy."""
        while len(self._kept) > self._limit or (self._weight > KEPT_BYTES and len(self._kept) > 1):
            _, gone = self._kept.popitem(last=False)
            self._weight -= gone.weight
