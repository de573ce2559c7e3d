"""What `initialize` agrees on, as plain JSON values.

It is answered before anything heavy is imported, so this module imports nothing. The answer is the
same whichever way the request came in.
"""

from __future__ import annotations

import sys
from typing import Any

from acp_agent import __version__

SUPPORTED_VERSIONS = (1,)

AGENT_CAPABILITIES: dict[str, Any] = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
    "mcpCapabilities": {"http": False, "sse": False},
    "sessionCapabilities": {
        "list": {},
        "delete": {},
        "additionalDirectories": {},
        "resume": {},
        "close": {},
    },
    "auth": {"logout": {}},
}

CONFIGURED: dict[str, Any] = {
    "id": "configured",
    "name": "Use what is configured",
    "description": (
        "Looks again for a key in the environment, the configuration and the keyring, and for a "
        "model server on this computer"
    ),
}
DEMO: dict[str, Any] = {
    "id": "demo",
    "name": "Try the demo",
    "description": "An offline model that answers a few plain requests; needs no key",
}


def version_for(asked: int) -> int | None:
    """The highest version that we speak at or below the one asked for; None below all."""
    return max((version for version in SUPPORTED_VERSIONS if version <= asked), default=None)


def client_flag(params: dict[str, Any], *path: str) -> bool:
    """Whether the client advertises a capability: true, or an object, at the end of `path`."""
    value: Any = params.get("clientCapabilities")
    for key in path:
        if not isinstance(value, dict):
            return False
        value = value.get(key)
    return value is True or isinstance(value, dict)


def auth_methods(params: dict[str, Any]) -> list[dict[str, Any]]:
    """The ways to get a usable model, as this client can offer them."""
    methods = [CONFIGURED, DEMO]
    by_meta = client_flag(params, "_meta", "terminal-auth")
    if by_meta or client_flag(params, "auth", "terminal"):
        login: dict[str, Any] = {
            "id": "login",
            "name": "Log in",
            "description": "Asks for a provider and its key in a terminal",
            "type": "terminal",
            "args": ["--login"],
            "env": {},
        }
        if by_meta:
            login["_meta"] = {
                "terminal-auth": {
                    "label": "acp-agent login",
                    "command": sys.executable,
                    "args": ["-m", "acp_agent", "login"],
                    "env": {},
                }
            }
        methods.append(login)
    return methods


def initialize_result(params: dict[str, Any], version: int) -> dict[str, Any]:
    """The result of `initialize` (Agent Client Protocol v1, InitializeResponse)."""
    return {
        "protocolVersion": version,
        "agentCapabilities": AGENT_CAPABILITIES,
        "agentInfo": {"name": "acp-agent", "title": "acp-agent", "version": __version__},
        "authMethods": auth_methods(params),
    }
