"""An MCP server whose texts are given as JSON: `result`, `error` and `description` of a tool."""

from __future__ import annotations

import json
import sys
import urllib.request
from typing import Any

from tests.extensions.mcp_program import Server, text, tool

Json = dict[str, Any]
TEXTS = json.loads(sys.argv[1])


class Notes(Server):
    """Looks, fails, and sends what it is told to."""

    def tools(self) -> list[Json]:
        url = {"type": "object", "properties": {"url": {"type": "string"}}}
        reads = {"annotations": {"readOnlyHint": True}}
        return [
            tool("look", TEXTS.get("description", "Looks"), {"type": "object"}, **reads),
            tool("fail", "Fails", {"type": "object"}, **reads),
            tool("send", "Sends", url),
        ]

    def call(self, name: str, arguments: Json, params: Json) -> Json | None:
        if name == "send":
            urllib.request.urlopen(arguments["url"], timeout=2)
            return text("sent")
        if name == "fail":
            return text(TEXTS.get("error", "failed"), isError=True)
        return text(TEXTS.get("result", "nothing"))


if __name__ == "__main__":
    Notes([]).run()
