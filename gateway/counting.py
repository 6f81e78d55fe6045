"""Tokens of a turn: the fast estimate always, tiktoken where it matters, both calibrated on the upstream's usage."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

import xxhash

from gateway.body import decode
from gateway.message import Message, Recent
from gateway.store.protocol import CalibrationRow as StoredRow
from gateway.store.protocol import Store
from gateway.tasks import Tasks
from gateway.tokens import fast
from gateway.tokens.calibration import MAX_RATIO, MIN_RATIO, Calibration, CalibrationRow
from gateway.tokens.precise import Precise
from gateway.turn import Turn

INLINE_CHARS = 16_000
"""Text up to this is counted by tiktoken on the event loop: 1–2 ms at 10 MB/s; more goes to a thread."""
STAND_IN = "o200k_base"
"""The encoding that stands in for models with no public tokenizer; calibration closes the rest."""
SAVE_EVERY_S = 10.0
"""Between two writes of the calibration to the store."""
FIXED_FIELDS = ("tools", "functions", "response_format")
FAMILIES = (("claude", "anthropic"), ("gemini", "gemini"), ("qwen", "qwen"), ("glm", "qwen"))
"""Model name's part to the family whose rule counts its images."""


def family_of(model: str) -> str:
    """Whose rules count images and overhead."""
    name = model.lower()
    return next((family for part, family in FAMILIES if part in name), "openai")


@dataclass(slots=True)
class Counting:
    """Counts turns; owns the calibration."""

    precise: Precise
    calibration: Calibration
    store: Store
    tasks: Tasks
    _saved_at: float = float("-inf")
    _fixed: Recent[tuple[bytes, str], int] = field(default_factory=lambda: Recent(1_000))

    def begin(self, turn: Turn) -> None:
        """Set up the fast count of a turn: family, fixed part, ratio."""
        turn.family = family_of(turn.model)
        key = (_fixed_key(turn), "")
        fixed = self._fixed.get(key)
        if fixed is None:
            fixed = fast.request_overhead_tokens(_fixed_fields(turn))
            self._fixed.put(key, fixed)
        turn.fixed_tokens = fixed
        turn.ratio = self.calibration.ratio(turn.route.name, turn.model)
        if turn.family != "openai":
            for item in turn.items:
                self._by_family(item.original, turn.family)

    def recount_fixed(self, turn: Turn) -> None:
        """To be called when a stage has changed a field that belongs to the fixed part."""
        exact = self._fixed.get((_fixed_key(turn), turn.encoding)) if turn.encoding else None
        turn.fixed_tokens = exact or fast.request_overhead_tokens(_fixed_fields(turn))

    async def settle(self, turn: Turn) -> None:
        """Count the turn with tiktoken from here on. Where its ranks are not loaded, the fast count stays."""
        if turn.encoding:
            return
        known = self.precise.encoding_name(turn.model, turn.route.settings.encoding)
        name = known or STAND_IN
        if not self.precise.ready(name):
            self.tasks.spawn("load tiktoken", asyncio.to_thread(self.precise.load, name))
            return
        messages = turn.outgoing()
        await self.exact(messages, name, turn.family)
        key = (_fixed_key(turn), name)
        exact = self._fixed.get(key)
        if exact is None:
            exact = await asyncio.to_thread(self.precise.request_overhead_tokens, _fixed_fields(turn), name)
            exact = turn.fixed_tokens if exact is None else exact
            self._fixed.put(key, exact)
        estimate = turn.count()
        turn.fixed_tokens = exact
        turn.encoding = name
        turn.changed()
        turn.ratio = self._exact_ratio(turn, estimate, known is None)

    def _exact_ratio(self, turn: Turn, estimate: int, foreign: bool) -> float:
        """What an exact count is multiplied by.

        Of a model whose tokenizer is not public it says little by itself: until replies have been compared with it, it
        is brought to `estimate`, the calibrated fast count, where that has been compared with some.
        """
        route, key = turn.route.name, _exact_key(turn.model)
        if foreign and not self.calibration.knows(route, key) and self.calibration.knows(route, turn.model):
            turn.ratio = 1.0
            return min(max(estimate / max(1, turn.count()), MIN_RATIO), MAX_RATIO)
        return self.calibration.ratio(route, key)

    async def exact(self, messages: list[Message], name: str, family: str) -> None:
        """Fill in the exact counts of messages that have none."""
        missing = [message for message in messages if (name, family) not in message.facts.precise]
        if not missing:
            return
        if sum(len(message.raw) for message in missing) <= INLINE_CHARS:
            self._exact(missing, name, family)
        else:
            await asyncio.to_thread(self._exact, missing, name, family)

    def recount(self, turn: Turn, messages: list[Message]) -> None:
        """Exact counts for a few messages a stage just made, where the turn is counted exactly."""
        if turn.encoding:
            self._exact(
                [m for m in messages if (turn.encoding, turn.family) not in m.facts.precise], turn.encoding, turn.family
            )

    def observe(self, turn: Turn, prompt_tokens: int) -> None:
        """Learn from the upstream's own count of what was sent."""
        estimated = turn.tokens_after / turn.ratio if turn.ratio else 0
        if estimated <= 0 or prompt_tokens <= 0:
            return
        key = _exact_key(turn.model) if turn.encoding else turn.model
        self.calibration.observe(turn.route.name, key, int(estimated), prompt_tokens)
        now = time.monotonic()
        if now - self._saved_at > SAVE_EVERY_S:
            self._saved_at = now
            self.tasks.spawn("calibration", self.save())

    async def save(self) -> None:
        """Write the calibration to the store."""
        rows = [StoredRow(row.route, row.model, row.ratio, float(row.observations)) for row in self.calibration.rows()]
        await self.store.save_calibration(rows)

    async def load(self) -> None:
        """Read it back."""
        rows = await self.store.load_calibration()
        self.calibration.load([CalibrationRow(row.route, row.model, row.ratio, int(row.weight)) for row in rows])

    def _exact(self, messages: list[Message], name: str, family: str) -> None:
        for message in messages:
            count = self.precise.message_tokens(message.data, name, family)
            if count is not None:
                message.facts.precise[name, family] = count

    @staticmethod
    def _by_family(message: Message, family: str) -> None:
        facts = message.facts
        if facts.has_image and ("fast", family) not in facts.precise:
            facts.precise["fast", family] = fast.message_tokens(message.data, family)


def _exact_key(model: str) -> str:
    """The exact and the fast count err differently, so each has its own calibration."""
    return f"{model}#exact"


def _fixed_key(turn: Turn) -> bytes:
    fields = [_written(turn, name) for name in FIXED_FIELDS]
    return xxhash.xxh3_128_digest(b"\0".join(fields)) if any(fields) else b""


def _fixed_fields(turn: Turn) -> dict[str, object]:
    values = {name: _value(turn, name) for name in FIXED_FIELDS}
    return {name: value for name, value in values.items() if value is not None}


def _written(turn: Turn, name: str) -> bytes:
    """A top-level field as it goes upstream."""
    return turn.changes.get(name) or turn.body.raw_field(name)


def _value(turn: Turn, name: str) -> object:
    changed = turn.changes.get(name)
    return turn.body.get(name) if changed is None else decode(changed)
