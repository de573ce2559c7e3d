"""The protocol's own JSON Schemas, from the pinned npm package that publishes them."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from tests.support.npm_packages import node_modules


@cache
def load(version: str = "v1") -> dict[str, Any]:
    """The stable schema of a protocol version. Skips the test where Node.js is missing."""
    package = node_modules() / "@agentclientprotocol" / "sdk"
    return json.loads((package / "schema" / version / "schema.json").read_text())
