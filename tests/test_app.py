"""What is built at the start takes over what was kept before."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gateway.app import build
from gateway.errors import RateLimited
from gateway.settings import Settings

SECRET = "sk-budget"
HEADERS = [(b"authorization", f"Bearer {SECRET}".encode())]


async def test_a_budget_that_is_used_up_stays_so_over_a_restart(tmp_path: Path) -> None:
    key = {"key": SECRET, "budget_usd": 1.0}
    settings = Settings.model_validate({"data_dir": str(tmp_path), "auth": {"keys": [key]}})
    first = await build(settings)
    caller = first.gatekeeper.admit(HEADERS, "")
    first.gatekeeper.allow(caller, "gpt-4o")
    await first.store.add_spend(caller.key_hash, time.strftime("%Y-%m", time.gmtime()), 1.25)
    await first.upstreams.close()
    await first.store.close()
    second = await build(settings)
    with pytest.raises(RateLimited):
        second.gatekeeper.allow(second.gatekeeper.admit(HEADERS, "somebody"), "gpt-4o")
    await second.upstreams.close()
    await second.store.close()


async def test_the_spill_may_hold_what_the_settings_say(tmp_path: Path) -> None:
    settings = Settings.model_validate({"data_dir": str(tmp_path), "spill": {"max_mb": 3}})
    services = await build(settings)
    assert services.store.limits.max_spill_bytes == 3 * 1024 * 1024
    await services.upstreams.close()
    await services.store.close()
