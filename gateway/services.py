"""What is built once at the start and shared by all requests; passed in, never looked up."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.conversation import Conversations
from gateway.counting import Counting
from gateway.forms import Forms
from gateway.limits import LimitsBook
from gateway.memory.service import MemoryService
from gateway.message import Messages, Recent
from gateway.metrics import Metrics
from gateway.prefixes import Prefixes
from gateway.settings import Settings
from gateway.store.protocol import Store
from gateway.summarise import Summariser
from gateway.tasks import Tasks
from gateway.tenants import Gatekeeper
from gateway.upstream.pool import Upstreams
from gateway.upstream.routes import Router


@dataclass(slots=True)
class Services:
    """The gateway's parts."""

    settings: Settings
    store: Store
    tasks: Tasks
    metrics: Metrics
    gatekeeper: Gatekeeper
    router: Router
    upstreams: Upstreams
    messages: Messages
    counting: Counting
    limits: LimitsBook
    forms: Forms
    conversations: Conversations
    prefixes: Prefixes
    spilled: Recent[tuple[str, str], bool]
    """Texts known to be in the spill, by tenant and id."""
    summariser: Summariser
    memory: MemoryService
