"""What is said on a wire, step by step, for tests of the oracle."""

from __future__ import annotations

import json
from typing import Any

from tests.support.oracle import Oracle

Step = tuple[str, Any]  # who speaks, and the message, as an object or as bytes

END: Step = ("end", None)  # nothing more is said
OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Refuse", "kind": "reject_once"},
]


def client(**message: Any) -> Step:
    return ("client", {"jsonrpc": "2.0"} | message)


def agent(**message: Any) -> Step:
    return ("agent", {"jsonrpc": "2.0"} | message)


def update(sort: str, session: str = "s", **fields: Any) -> Step:
    params = {"sessionId": session, "update": {"sessionUpdate": sort} | fields}
    return agent(method="session/update", params=params)


def elicitation(mode: str, **params: Any) -> Step:
    whole = {"sessionId": "s", "mode": mode, "message": "?"} | params
    return agent(id="e", method="elicitation/create", params=whole)


def play(steps: list[Step], oracle: Oracle | None = None) -> Oracle:
    """Let an oracle see the steps; a new one, where none is given."""
    oracle = oracle or Oracle()
    for side, message in steps:
        data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
        if side == "client":
            oracle.sent(data)
        elif side == "agent":
            oracle.received(data)
        else:
            oracle.finished()
    return oracle
