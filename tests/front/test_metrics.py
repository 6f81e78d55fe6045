"""The metrics endpoint: it parses, its labels are few, and they name no caller."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.support.builders import user
from tests.support.chat import CHAT, auth, fresh_key, send_chat
from tests.support.gateway_process import GatewayProcess
from tests.support.raw_http import fetch
from tests.support.upstream import Upstream


def samples(gateway: GatewayProcess) -> list[Sample]:
    """Every sample there is now."""
    reply = fetch(gateway.port, "GET", "/metrics", b"", [])
    assert reply.status == 200
    assert (reply.header("content-type") or "").startswith("text/plain")
    families = text_string_to_metric_families(reply.body.decode())
    return [sample for family in families for sample in family.samples]


def label_values(found: list[Sample], name: str | None = None) -> Iterator[str]:
    """The values of one label, or of all."""
    for sample in found:
        yield from (value for key, value in sample.labels.items() if name in (None, key))


def test_labels_stay_few_whatever_callers_send(upstream: Upstream, gateway: GatewayProcess) -> None:
    key = fresh_key()

    def send_junk(start: int) -> None:
        for number in range(start, start + 20):
            body = orjson.dumps({"model": f"junk-{number}", "messages": [user("x")], "user": f"person-{number}"})
            headers = auth(key, ("X-Session-Id", f"session-{number}"), ("X-Memory-Project", f"project-{number}"))
            assert fetch(gateway.port, "POST", CHAT, body, headers).status == 200
            fetch(gateway.port, "GET", f"/v1/junk-path-{number}", b"", auth(key))
            fetch(gateway.port, f"JUNK{number}", "/v1/models", b"", auth(key))

    send_junk(0)
    first = samples(gateway)
    assert "other" in set(label_values(first, "model"))
    send_junk(20)
    second = samples(gateway)
    assert len(second) == len(first)
    text = " ".join(label_values(second))
    for word in ("junk", "JUNK", "person-", "session-", "project-", key):
        assert word not in text


def test_requests_are_counted(upstream: Upstream, gateway: GatewayProcess) -> None:
    def total() -> float:
        return sum(sample.value for sample in samples(gateway) if sample.name.endswith(("_total", "_count")))

    before = total()
    send_chat(gateway.port, [user("count me")])
    assert total() > before


def test_an_unhappy_request_is_counted_too(upstream: Upstream, gateway: GatewayProcess) -> None:
    before = {(sample.name, *sample.labels.items()): sample.value for sample in samples(gateway)}
    fetch(gateway.port, "POST", CHAT, b"{", auth(fresh_key()))
    after = {(sample.name, *sample.labels.items()): sample.value for sample in samples(gateway)}
    risen = [key for key, value in after.items() if value > before.get(key, 0) and "400" in str(key)]
    assert risen
