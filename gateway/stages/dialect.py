"""The last touch: what this upstream's chat template can't take is put into a form that it can."""

from __future__ import annotations

from gateway.body import encode
from gateway.dialect import adapted
from gateway.message import Messages
from gateway.turn import Turn


class Dialect:
    """`developer_to_system` and `strict_roles` of the upstream, and its own name for the model."""

    name = "dialect"
    bypass = ""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages

    def skips(self, turn: Turn) -> bool:
        """Whether the upstream takes the turn as it is."""
        upstream = turn.route.upstream
        as_it_is = not (upstream.developer_to_system or upstream.strict_roles) and turn.dialect is None
        return as_it_is and turn.route.model == turn.model

    async def run(self, turn: Turn) -> None:
        """Rewrite the outgoing messages where the upstream asks for it."""
        if turn.route.model != turn.model:
            turn.changes["model"] = encode(turn.route.model)
        out = turn.outgoing()
        said = adapted(self._messages, turn.route.upstream, out)
        turn.dialect = None if said is out else said
