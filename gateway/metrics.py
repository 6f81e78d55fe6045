"""Every metric, named in one place. Labels are bounded: no users, no sessions, unknown models as `other`."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
FAST_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2)
TOKENS = (100, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The registry of one gateway process; with `multiprocess`, any worker answers for all of them."""

    def __init__(self, *, multiprocess: bool = False) -> None:
        self._multiprocess = multiprocess
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "gateway_requests_total",
            "Chat requests answered.",
            ["route", "model", "status", "stream"],
            registry=registry,
        )
        self.passthrough = Counter(
            "gateway_passthrough_total", "Requests passed through untouched.", ["route", "status"], registry=registry
        )
        self.tokens_before = Counter(
            "gateway_tokens_before_total",
            "Prompt tokens as the clients sent them.",
            ["route", "model"],
            registry=registry,
        )
        self.tokens_after = Counter(
            "gateway_tokens_after_total", "Prompt tokens sent upstream.", ["route", "model"], registry=registry
        )
        self.usage = Counter(
            "gateway_usage_tokens_total",
            "Tokens by the upstream's own usage; kind is prompt, cached or completion.",
            ["route", "model", "kind"],
            registry=registry,
        )
        self.actions = Counter(
            "gateway_stage_actions_total", "Messages a stage acted on.", ["stage", "action"], registry=registry
        )
        self.stage_failures = Counter(
            "gateway_stage_failures_total", "Stages that failed and were skipped.", ["stage"], registry=registry
        )
        self.stage_seconds = Histogram(
            "gateway_pipeline_seconds", "Time spent in all stages.", buckets=FAST_SECONDS, registry=registry
        )
        self.request_tokens = Histogram(
            "gateway_request_tokens", "Prompt tokens sent upstream, a request.", buckets=TOKENS, registry=registry
        )
        self.upstream_seconds = Histogram(
            "gateway_upstream_first_byte_seconds",
            "Until the reply's first byte.",
            ["route"],
            buckets=SECONDS,
            registry=registry,
        )
        self.compactions = Counter(
            "gateway_compactions_total",
            "Deep compactions; how is now, ahead, reused, reactive, evicted or failed.",
            ["how"],
            registry=registry,
        )
        self.summary_tokens = Counter(
            "gateway_summary_tokens_total",
            "The summariser's own spend; kind is prompt, cached or completion.",
            ["kind"],
            registry=registry,
        )
        self.overflows = Counter(
            "gateway_overflows_total",
            "Requests that the upstream found too long.",
            ["route", "where"],
            registry=registry,
        )
        self.disconnects = Counter(
            "gateway_client_disconnects_total",
            "Clients that hung up; phase is waiting or streaming.",
            ["phase"],
            registry=registry,
        )
        self.fallbacks = Counter(
            "gateway_fallbacks_total", "Requests sent to a fallback.", ["route"], registry=registry
        )
        self.memories = Counter(
            "gateway_memories_total",
            "Memories by what became of them: kept, merged, superseded, dropped, quarantined, recalled, failed.",
            ["outcome"],
            registry=registry,
        )
        self.recalls_late = Counter(
            "gateway_recalls_late_total", "Recalls that took too long and were left out.", registry=registry
        )
        self.dropped_tasks = Counter(
            "gateway_dropped_tasks_total", "Background work skipped.", ["task"], registry=registry
        )
        self.calibration = Gauge(
            "gateway_calibration_ratio",
            "True tokens for each estimated one.",
            ["route", "model"],
            registry=registry,
            multiprocess_mode="mostrecent",
        )
        self.in_flight = Gauge(
            "gateway_requests_in_flight",
            "Chat requests being answered.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self.refusals = Counter(
            "gateway_refusals_total", "Requests the gateway itself refused.", ["status", "code"], registry=registry
        )

    def render(self) -> bytes:
        """The exposition text, over all workers where there are several."""
        if self._multiprocess:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
            return generate_latest(registry)
        return generate_latest(self.registry)
