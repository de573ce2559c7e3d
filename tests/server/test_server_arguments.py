"""A call's arguments, as a client is shown them."""

from __future__ import annotations

import json

import pytest

from acp_agent.server.conversion import MAX_DEPTH, raw_input


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize(
    "arguments",
    [
        '{"path": "a.py", "limit": 200}',
        json.dumps({"text": "{[" * MAX_DEPTH}),
        json.dumps({"rows": [[] for _ in range(2 * MAX_DEPTH)]}),
        nested(MAX_DEPTH),
    ],
)
def test_arguments_are_values_however_many_brackets_are_in_them(arguments: str) -> None:
    assert raw_input(arguments) == json.loads(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        '{"path": "a.py"',
        nested(MAX_DEPTH + 1),
        json.dumps({"deep": json.loads(nested(MAX_DEPTH))}),
    ],
)
def test_arguments_that_a_client_might_not_read_are_shown_as_they_are(arguments: str) -> None:
    assert raw_input(arguments) == {"arguments": arguments}
