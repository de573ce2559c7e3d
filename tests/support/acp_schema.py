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
    if unstable:
        _add_newer(schema["$defs"], version)
    return schema


def _add_newer(defs: dict[str, Any], version: str) -> None:
    """Add what was announced on November 20, 2026, and is not in the package yet.

    Sources: "Subagent sessions are stabilized", "Plan operations are stabilized", and the Rust
    package agent-client-protocol 5.5.1 (SessionReference, PlanMarkdown).
    """
    meta = defs["PlanRemoved"]["properties"]["_meta"]
    defs["SessionReference"] = {
        "type": "object",
        "properties": {"sessionId": {"$ref": "#/$defs/SessionId"}, "_meta": meta},
        "required": ["sessionId"],
    }
    content = defs["ToolCallContent"]
    variants = content.get("anyOf") or content["oneOf"]
    terminal = next(each for each in variants if _tag(each) == "terminal")
    session = json.loads(json.dumps(terminal).replace("/Terminal", "/SessionReference"))
    session["properties"]["type"]["const"] = "session"
    variants.insert(variants.index(terminal) + 1, session)
    for other in variants:
        if "not" in other:
            known = {"properties": {"type": {"const": "session"}}, "required": ["type"]}
            other["not"]["anyOf"].append(known)
    path = {"type": "string"} if version == "v1" else {"$ref": "#/$defs/AbsolutePath"}
    defs["PlanMarkdown"]["properties"]["path"] = {"anyOf": [path, {"type": "null"}]}


def _tag(variant: dict[str, Any]) -> str | None:
    tag: str | None = variant.get("properties", {}).get("type", {}).get("const")
    return tag
