"""The declaration: where it may stand, and that the client's own tools keep their bytes."""

from __future__ import annotations

import orjson
import pytest

from gateway.body import ChatBody
from gateway.forms import TOOL_NAME
from gateway.readback.tool import DEFINITION, client_tools, offerable, tools_with


def body(fields: str) -> ChatBody:
    """A request with these fields, as written."""
    return ChatBody.parse(b'{"messages":[{"role":"user","content":""}]' + fields.encode() + b"}")


RUN = '{"type":"function","function":{"name":"run"}}'


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ("", True),
        (f',"tools":[{RUN}]', True),
        (f',"tools":[{RUN}],"tool_choice":"auto"', True),
        (f',"tools":[{RUN}],"tool_choice":"required"', True),
        (',"tools":[]', True),
        (',"tools":null,"n":1', True),
        (',"n":2', False),
        (f',"tools":[{RUN}],"tool_choice":"none"', False),
        (f',"tools":[{RUN}],"tool_choice":{RUN}', False),
        (f',"tools":[{RUN}],"tool_choice":{{"type":"allowed_tools"}}', False),
        (',"tool_choice":"auto"', False),
        (f',"tools":[{RUN.replace("run", TOOL_NAME)}]', False),
        (f',"tools":[{{"type":"custom","custom":{{"name":"{TOOL_NAME}"}}}}]', False),
        (',"functions":[]', False),
        (',"tools":"many"', False),
    ],
)
def test_where_it_may_stand(fields: str, wanted: bool) -> None:
    assert offerable(body(fields)) is wanted


@pytest.mark.parametrize("written", [f"[{RUN}]", f"[ {RUN} ,\n {RUN}\n]", "[]", "null", '[{"a": 1.0e5}]'])
def test_the_clients_tools_keep_their_bytes(written: str) -> None:
    made = tools_with(body(f',"tools": {written} ,"seed":1'))
    assert orjson.loads(made) == [*(orjson.loads(written) or []), DEFINITION]
    assert made.startswith(written.rstrip("]").encode()) or written in ("[]", "null")


def test_names() -> None:
    assert client_tools(body(f',"tools":[{RUN},{{"type":"custom","custom":{{"name":"c"}}}},7]')) == {"run", "c", ""}
    assert client_tools(body("")) == frozenset()
