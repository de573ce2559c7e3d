"""The protocol's own JSON Schemas, from the pinned npm package that publishes them."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from tests.support.npm_packages import node_modules


@cache
def load(version: str = "v1", *, unstable: bool = False) -> dict[str, Any]:
    """The schema of a protocol version. Skips the test where Node.js is missing.

    `unstable` adds what the protocol does not promise to keep; it contains all that is stable.
    """
    package = node_modules() / "@agentclientprotocol" / "sdk"
    name = "schema.unstable.json" if unstable else "schema.json"
    schema: dict[str, Any] = json.loads((package / "schema" / version / name).read_text())
    return schema
