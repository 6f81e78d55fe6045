"""The bill: what a list of requests costs where the provider caches prompts by prefix.

Pure functions of counted requests, so that the very same rule bills the gateway, its peers, the baselines and no
gateway at all. The rule: of an agent's request the longest common prefix, in tokens, with the agent's request before is
cached and costs a tenth; the rest costs 1. A side call (a summary, an extraction) is cached up to its longest common
prefix with the last agent's request or the side call before, whichever is longer, and its output costs 4 a token.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bench.replay.counting import Counted

CACHED_PRICE = 0.1  # of the price of a fresh input token: what OpenAI and Anthropic bill for cache reads
OUTPUT_PRICE = 4.0  # a summary's output against its input: the usual ratio of price lists


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it reached the upstream. `output` is the reply's tokens; only a side call's are billed."""

    messages: Sequence[Counted]
    side: bool = False
    output: int = 0


@dataclass(slots=True)
class Bill:
    """What a conversation cost. Token counts are billed tokens; `largest` and `sizes` are in rendered tokens."""

    turns: int = 0
    tokens: int = 0
    cached: int = 0
    side_calls: int = 0
    side_tokens: int = 0
    side_cached: int = 0
    side_output: int = 0
    stable: int = 0
    compactions: int = 0
    per_turn: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    @property
    def cost(self) -> float:
        """Cost in fresh input tokens, with a prompt cache."""
        cached = self.cached + self.side_cached
        fresh = self.tokens + self.side_tokens - cached
        return fresh + CACHED_PRICE * cached + OUTPUT_PRICE * self.side_output

    @property
    def cost_uncached(self) -> float:
        """Cost in input tokens where nothing is ever cached."""
        return self.tokens + self.side_tokens + OUTPUT_PRICE * self.side_output

    @property
    def cached_share(self) -> float:
        """Share of the agent's tokens that were cached, 0 to 1."""
        return self.cached / self.tokens if self.tokens else 0.0

    @property
    def stable_share(self) -> float:
        """Share of the turns after the first whose request begins with the whole of the one before, 0 to 1."""
        return self.stable / (self.turns - 1) if self.turns > 1 else 1.0

    @property
    def largest(self) -> int:
        """Rendered tokens of the largest request of the agent."""
        return max(self.sizes, default=0)

    def over(self, window: int) -> int:
        """Turns whose request does not fit a window of that many tokens."""
        return sum(size > window for size in self.sizes)


def common_prefix(a: Sequence[Counted], b: Sequence[Counted]) -> int:
    """Billed tokens of the longest common prefix of two requests; the first message that differs counts in part."""
    total = 0
    for left, right in zip(a, b, strict=False):
        if left.digest == right.digest:
            total += left.billed
            continue
        n = min(left.billed, right.billed)
        differs = (left.ids[:n] != right.ids[:n]).nonzero()[0]
        return total + (int(differs[0]) if len(differs) else n)
    return total


def extends(new: Sequence[Counted], old: Sequence[Counted]) -> bool:
    """Whether `new` begins with every message of `old`, unchanged."""
    return len(new) >= len(old) and all(a.digest == b.digest for a, b in zip(new, old, strict=False))


def bill(requests: Iterable[Request]) -> Bill:
    """Bill one conversation's requests, in the order they reached the upstream."""
    total = Bill()
    agent: Sequence[Counted] = ()
    side: Sequence[Counted] = ()
    for request in requests:
        tokens = sum(message.billed for message in request.messages)
        if request.side:
            total.side_calls += 1
            total.side_tokens += tokens
            total.side_cached += max(common_prefix(request.messages, agent), common_prefix(request.messages, side))
            total.side_output += request.output
            side = request.messages
            continue
        _add_turn(total, request.messages, tokens, agent)
        agent = request.messages
    return total


def _add_turn(total: Bill, messages: Sequence[Counted], tokens: int, before: Sequence[Counted]) -> None:
    total.cached += common_prefix(messages, before)
    if total.turns:
        if extends(messages, before):
            total.stable += 1
        elif tokens < total.per_turn[-1]:
            # History only grows on the agent's side, so a smaller request means that some of it was rewritten.
            total.compactions += 1
    total.turns += 1
    total.tokens += tokens
    total.per_turn.append(tokens)
    total.sizes.append(sum(message.rendered for message in messages))


def add_up(bills: Iterable[Bill]) -> Bill:
    """The total of several conversations. Stable turns are counted against the turns after each first one."""
    total = Bill()
    for one in bills:
        for name in ("turns", "tokens", "cached", "side_calls", "side_tokens", "side_cached", "side_output", "stable"):
            setattr(total, name, getattr(total, name) + getattr(one, name))
        total.compactions += one.compactions
        total.sizes += one.sizes
        total.per_turn += one.per_turn
    return total


def geometric_mean(values: Sequence[float]) -> float:
    """Geometric mean of positive ratios; NaN of nothing."""
    if not values:
        return math.nan
    return math.exp(sum(math.log(value) for value in values) / len(values))
