"""Secrets of known shapes are found; prose about secrets is not one.

Sample values are the vendors' documented examples, or made up.
"""

from __future__ import annotations

import pytest

from gateway.memory.secrets import SecretScanner

SCANNER = SecretScanner()


@pytest.mark.parametrize(
    "line",
    [
        "AKIAIOSFODNN7EXAMPLE",  # AWS documentation
        "token ghp_16C7e42F292c6912E7710c838347Ae178B4a",  # GitHub's announcement of the format
        "sk-proj-abcDEF123456ghiJKL7890mnoPQR",
        "Authorization: Bearer abcdefghijklmnop.qrstuv",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
        "-----BEGIN RSA PRIVATE KEY-----",
        "postgres://bob:hunter2@db.internal:5432/app",
        "redis://:p4ss@cache:6379/0",
        "Server=db;User=sa;Password=Abc123;",
        "my password is hunter2!",
        "密码是 Qwer1234",
        "我的验证码：839201",
        "card 4111 1111 1111 1111.",  # the industry's test number
        "5555-5555-5555-4444",
        "身份证 11010519491231002X",  # the example in GB 11643-1999
        "SSN 078-05-1120",  # the historical example number
        "la contraseña es Gato2024",
    ],
)
def test_found(line: str) -> None:
    assert SCANNER.find(line) is not None


@pytest.mark.parametrize(
    "line",
    [
        "I use Python 3.12 and PostgreSQL 15.",
        "Passwords are stored hashed with bcrypt.",
        "Our API keys are rotated monthly.",
        "The token is required for every call.",
        "数据库密码统一放在 Vault 里管理。",
        "Commit 3f2a9c1d7e6b5a4c3d2e1f0a9b8c7d6e5f4a3b2c broke it.",
        "The order number is 1234567890123.",
        "Our docs live in packages/core/src/components/AuthenticationProvider.tsx",
        "I was born on 14 July 1990.",
        "call 555-0100",
        "uuid 123e4567-e89b-12d3-a456-426614174000 is the tenant",
        "",
    ],
)
def test_not_found(line: str) -> None:
    assert SCANNER.find(line) is None


def test_the_token_of_an_npm_file_is_found() -> None:
    """`.npmrc`, as npm's documentation writes it."""
    assert SCANNER.find("//registry.npmjs.org/:_authToken=npm_" + "a" * 8 + "B" * 28) is not None
    assert SCANNER.find("//registry.npmjs.org/:_authToken=00000000-0000-0000-0000-000000000000") is not None
