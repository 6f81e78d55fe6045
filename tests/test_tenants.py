"""Tenants come from the credential; nothing a body or a header says opens another's memory."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import Forbidden, RateLimited, Unauthorized
from gateway.settings import AuthKey
from gateway.tenants import Gatekeeper, credential, digest

Headers = list[tuple[bytes, bytes]]


def bearer(key: str) -> Headers:
    """As OpenAI's clients send it."""
    return [(b"authorization", f"Bearer {key}".encode("latin-1"))]


def key(secret: str, **fields: object) -> AuthKey:
    """One entry of `auth.keys`."""
    return AuthKey.model_validate({"key": secret, **fields})


parts = st.lists(st.text(max_size=8), max_size=4)


@given(parts, parts)
def test_a_digest_tells_apart_what_concatenation_does_not(one: list[str], other: list[str]) -> None:
    assert (digest(*one) == digest(*other)) == (one == other)


names = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=12)


@given(names, names, st.text(max_size=8), st.text(max_size=8))
def test_tenants_differ_where_key_or_user_does(one: str, other: str, mine: str, theirs: str) -> None:
    keeper = Gatekeeper([])
    first, second = keeper.admit(bearer(one), mine), keeper.admit(bearer(other), theirs)
    assert (first.tenant == second.tenant) == ((one, mine) == (other, theirs))
    assert (first.key_hash == second.key_hash) == (one == other)
    assert one not in (first.tenant, first.key_hash) or len(one) < 3


def test_no_user_name_reaches_another_users_memory_or_a_named_tenant() -> None:
    keeper = Gatekeeper([key("sk-a", tenant="acme"), key("sk-b", tenant="acme"), key("sk-c"), key("sk-d", tenant="x")])
    users = ["", "acme", "name:acme", "u", "u\0", "acme\0u", "tenant", "x"]
    tenants = {
        (secret, user): keeper.admit(bearer(secret), user).tenant
        for secret, user in itertools.product(["sk-a", "sk-c", "sk-d"], users)
    }
    assert len(set(tenants.values())) == len(tenants)
    # Two keys of one tenant share its memory, by design.
    assert keeper.admit(bearer("sk-a"), "u").tenant == keeper.admit(bearer("sk-b"), "u").tenant
    assert keeper.admit(bearer("sk-a"), "u").key_hash != keeper.admit(bearer("sk-b"), "u").key_hash


@pytest.mark.parametrize(
    "wrong", ["", "sk-", "sk-secre", "sk-secret2", "SK-SECRET", "sk-secret*", "%", "sk-secret\xff"]
)
def test_anything_but_the_key_is_refused(wrong: str) -> None:
    keeper = Gatekeeper([key("sk-secret")])
    with pytest.raises(Unauthorized):
        keeper.admit(bearer(wrong), "")
    with pytest.raises(Unauthorized):
        keeper.admit(bearer(wrong), "sk-secret")
    with pytest.raises(Unauthorized):
        keeper.admit([], "")
    assert keeper.admit(bearer("sk-secret"), "").key is not None


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([(b"authorization", b"Bearer sk-1")], "sk-1"),
        ([(b"authorization", b"bearer   sk-1 ")], "sk-1"),
        ([(b"api-key", b"sk-2")], "sk-2"),
        ([(b"x-api-key", b"sk-3"), (b"x-other", b"no")], "sk-3"),
        ([(b"x-api-key", b"sk-3"), (b"authorization", b"Bearer sk-1")], "sk-1"),
        ([(b"x-other", b"sk-9")], ""),
        ([(b"authorization", b"Bearer ")], ""),
        ([(b"authorization", b"Bearer")], ""),
        ([(b"authorization", b"Bearer "), (b"x-api-key", b"sk-3")], "sk-3"),
        ([(b"authorization", b"Bearerish")], "Bearerish"),
        ([], ""),
    ],
)
def test_the_credential_is_found_where_clients_put_it(headers: Headers, expected: str) -> None:
    assert credential(headers) == expected


def test_a_key_is_held_to_its_models() -> None:
    keeper = Gatekeeper([key("sk-a", models=["gpt-4o*", "o3"])])
    caller = keeper.admit(bearer("sk-a"), "")
    for model in ("gpt-4o", "gpt-4o-mini", "o3"):
        keeper.allow(caller, model)
    for model in ("gpt-4", "o3-mini", "", "GPT-4o", "x/gpt-4o"):
        with pytest.raises(Forbidden):
            keeper.allow(caller, model)


def test_a_key_is_held_to_its_rate_and_let_in_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("gateway.tenants.time.monotonic", lambda: now)
    keeper = Gatekeeper([key("sk-a", rpm=3), key("sk-b", rpm=3)])
    one, other = keeper.admit(bearer("sk-a"), "u"), keeper.admit(bearer("sk-a"), "v")
    for caller in (one, other, one):  # users behind one key share its rate
        keeper.allow(caller, "m")
        now += 10
    with pytest.raises(RateLimited) as refused:
        keeper.allow(one, "m")
    assert int(refused.value.headers["retry-after"]) == 30  # the first call was 30 of 60 seconds ago
    keeper.allow(keeper.admit(bearer("sk-b"), ""), "m")
    now += 30
    keeper.allow(one, "m")
    with pytest.raises(RateLimited):
        keeper.allow(one, "m")


def test_a_key_is_held_to_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.tenants.time.strftime", lambda *_: "2026-11")
    keeper = Gatekeeper([key("sk-a", budget_usd=1.0)])
    caller = keeper.admit(bearer("sk-a"), "")
    keeper.spent(caller, "2026-11", 0.99)
    keeper.allow(caller, "m")
    keeper.spent(caller, "2026-10", 5.0)
    keeper.allow(caller, "m")
    keeper.spent(caller, "2026-11", 1.0)
    with pytest.raises(RateLimited) as refused:
        keeper.allow(caller, "m")
    assert refused.value.code == "insufficient_quota"


def test_an_open_gateway_limits_nobody() -> None:
    keeper = Gatekeeper([])
    assert keeper.open
    caller = keeper.admit([], "")
    for _ in range(1_000):
        keeper.allow(caller, "anything")
