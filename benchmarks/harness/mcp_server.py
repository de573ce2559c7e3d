"""An MCP server with one tool: writes its arguments to a file, which shows that it was called."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def _answer(method: str, params: dict[str, Any], name: str, folder: Path) -> dict[str, Any]:
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "corpus", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [{"name": name, "inputSchema": {"type": "object", "properties": {}}}]}
    if method == "tools/call":
        (folder / "mcp.json").write_text(json.dumps(params["arguments"], sort_keys=True))
        return {"content": [{"type": "text", "text": f"the server's {name} was called"}]}
    return {}


def main(name: str, folder: str) -> None:
    """Serve until stdin closes."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            result = _answer(message["method"], message.get("params") or {}, name, Path(folder))
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
