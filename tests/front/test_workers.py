"""`--workers 2`: one address, two processes, one store, metrics of both."""

from __future__ import annotations

import time
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.support.builders import user
from tests.support.chat import auth, chat_body, eventually, fresh_key
from tests.support.gateway_process import GatewayProcess, default_config
from tests.support.raw_http import fetch
from tests.support.upstream import Upstream

REQUESTS = 40
SEEN_ELSEWHERE_S = 1.5
"""What one process wrote is seen by the others within a second."""
CHAT = "/v1/chat/completions"


def test_both_workers_count_and_remember(upstream: Upstream, tmp_path: Path) -> None:
    config = default_config(upstream.url, tmp_path / "data")
    with GatewayProcess(config, tmp_path / "home", arguments=["--workers", "2"]) as gateway:
        key = fresh_key()
        assert (
            fetch(gateway.port, "POST", CHAT, chat_body([user("I prefer tabs for indentation.")]), auth(key)).status
            == 200
        )
        kept = "/v1/memory/preferences"
        assert eventually(lambda: b"tabs" in fetch(gateway.port, "GET", kept, b"", auth(key)).body)
        time.sleep(SEEN_ELSEWHERE_S)
        found = 0
        for number in range(REQUESTS):
            body = chat_body([user(f"Which indentation do I prefer? ({number})")])
            assert fetch(gateway.port, "POST", CHAT, body, auth(key)).status == 200
            found += b"tabs for indentation" in upstream.calls[-1].body.split(b"Which", 1)[0]
        text = fetch(gateway.port, "GET", "/metrics").body.decode()
        assert gateway.stop() == 0
    samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
    assert sum(s.value for s in samples if s.name == "gateway_requests_total") == REQUESTS + 1
    assert found == REQUESTS
