"""The result of `initialize`, and the first line of a connection, which is answered at once.

An editor waits for `initialize`, so it is answered with nothing imported but `os` and `json`. The
connection handles any other first line, and gives the same result. No configuration is read here,
so the names of the methods are in the language of the locale.
"""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from acp_agent import __version__
from acp_agent.platform.posix import self_command

SUPPORTED_VERSIONS = (1, 2)

# Our extensions (docs/extensions.md). Other agents advertise steering in the `_meta` of the result,
# not in the capabilities; we do both.
STEERING: dict[str, Any] = {"steering": {"supported": True}}
EXTENSIONS: dict[str, Any] = {
    "methods": [
        "_acp-agent/session/export",
        "_acp-agent/checkpoints/list",
        "_acp-agent/checkpoints/restore",
        "_acp-agent/resources/list",
    ],
    "fork": ["before", "through"],
    "tellsStopReasons": True,
}

# Version 1, `agentCapabilities`.
AGENT_CAPABILITIES: dict[str, Any] = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": True, "acp": True},
    "sessionCapabilities": {
        "list": {},
        "delete": {},
        "additionalDirectories": {},
        "resume": {},
        "close": {},
        # Unstable from here on.
        "systemPrompt": {"mode": {"override": {}}},
        "fork": {},
        "archive": {},
        "status": {},
        "title": {},
    },
    "auth": {"logout": {}, "status": {}},
    "providers": {},
    "_meta": {"acp-agent": {**EXTENSIONS, "whileRunning": ["steer", "queue"]}, **STEERING},
}

# Version 2, `capabilities`: the methods that version 2 requires are not named.
CAPABILITIES: dict[str, Any] = {
    "session": {
        "prompt": {"image": {}, "embeddedContext": {}},
        "mcp": {"stdio": {}, "http": {}, "acp": {}},
        "delete": {},
        "additionalDirectories": {},
        # Unstable from here on.
        "systemPrompt": {"mode": {"override": {}}},
        "fork": {},
        "archive": {},
        "status": {},
        "title": {},
    },
    "auth": {"status": {}},
    "providers": {},
    "_meta": {"acp-agent": EXTENSIONS},
}

_LANGUAGE = ("ACP_AGENT_LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")

CONFIGURED: dict[str, Any] = {
    "id": "configured",
    "name": "Use the existing configuration",
    "description": (
        "Looks again for a key in the environment, the configuration and the keyring, and for a "
        "model server on this computer"
    ),
}
DEMO: dict[str, Any] = {
    "id": "demo",
    "name": "Try the demo",
    "description": "An offline script that answers a few simple requests; needs no key",
}
LOGIN_PAGE: dict[str, Any] = {
    "id": "login-page",
    "name": "Log in with a key in the browser",
    "description": (
        "Opens a page on this computer that asks for a provider and its key; the key does not "
        "pass through the editor"
    ),
}
FIRST_LINE_LIMIT = 65_536


def version_for(params: dict[str, Any]) -> int | None:
    """Return the highest supported version up to the client's; None if there is none.

    A client of a later version is answered in the version whose shape its parameters have.
    """
    requested: int = params["protocolVersion"]
    version = max(
        (supported for supported in SUPPORTED_VERSIONS if supported <= requested), default=None
    )
    if version == 2 and requested > 2 and not ("info" in params or "capabilities" in params):
        return 1
    return version


def client_flag(params: dict[str, Any], *path: str) -> bool:
    """Return whether the client advertises a capability: true or an object at `path`."""
    value: Any = params
    for key in path:
        if not isinstance(value, dict):
            return False
        value = value.get(key)
    return value is True or isinstance(value, dict)


def auth_methods(
    params: dict[str, Any], version: int, *, local: bool = True
) -> list[dict[str, Any]]:
    """Return the authentication methods that this client can offer.

    Clients show them in this order and suggest the first: the user has no usable model yet, and
    most probably no configured key.

    Only a browser on this computer can open the login page (`local`). Over ssh the browser probably
    runs elsewhere, so the page is not the first method there.
    """
    capabilities = "clientCapabilities" if version == 1 else "capabilities"
    methods: list[dict[str, Any]] = []
    over_ssh = bool(os.environ.get("SSH_CONNECTION"))
    page = [LOGIN_PAGE] if local and client_flag(params, capabilities, "elicitation", "url") else []
    if not over_ssh:
        methods += page
    by_meta = client_flag(params, capabilities, "_meta", "terminal-auth")
    if by_meta or client_flag(params, capabilities, "auth", "terminal"):
        login: dict[str, Any] = {
            "id": "login",
            "name": "Log in",
            "description": "Asks for a provider and its key in a terminal",
            "type": "terminal",
            "args": ["--login"],
            "env": {},
        }
        if by_meta:
            program, *arguments = self_command("login")
            login["_meta"] = {
                "terminal-auth": {
                    "label": "acp-agent login",
                    "command": program,
                    "args": arguments,
                    "env": {},
                }
            }
        methods.append(login)
    if over_ssh:
        methods += page
    methods = _translate_methods([*methods, CONFIGURED, DEMO])
    return methods if version == 1 else [_auth_method(method) for method in methods]


def _translate_methods(methods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Translate the methods. For English nothing is imported."""
    if not any(os.environ.get(name, "").lower().startswith("zh") for name in _LANGUAGE):
        return methods
    from acp_agent.config.localization import (  # noqa: PLC0415 - only where needed
        choose_language,
        translator_for,
    )

    translate = translator_for(choose_language(os.environ.get("ACP_AGENT_LANGUAGE"), os.environ))
    return [
        {
            **method,
            "name": translate(method["name"]),
            "description": translate(method["description"]),
        }
        for method in methods
    ]


def _auth_method(method: dict[str, Any]) -> dict[str, Any]:
    """Return a method in the shape of version 2."""
    changed = {"methodId": method["id"], "type": method.get("type", "agent"), **method}
    del changed["id"]
    if "env" in changed:
        changed["env"] = [{"name": key, "value": value} for key, value in method["env"].items()]
    return changed


def initialize_result(
    params: dict[str, Any], version: int, *, local: bool = True
) -> dict[str, Any]:
    """Return the result of `initialize` (v1 and v2, InitializeResponse)."""
    info = {"name": "acp-agent", "title": "acp-agent", "version": __version__}
    methods = auth_methods(params, version, local=local)
    if version == 1:
        return {
            "protocolVersion": 1,
            "agentCapabilities": AGENT_CAPABILITIES,
            "agentInfo": info,
            "authMethods": methods,
            "_meta": STEERING,
        }
    return {
        "protocolVersion": version,
        "info": info,
        "capabilities": CAPABILITIES,
        "authMethods": methods,
    }


class Opening(NamedTuple):
    """The result of reading the first line.

    `unread` are the bytes left for the connection, `params` those of the answered `initialize`
    (None: the connection handles the line), `ended` says that the input ended.
    """

    unread: bytes
    params: dict[str, Any] | None
    ended: bool


def answer_first_line(input_fd: int, output_fd: int) -> Opening:
    """Read the first line and answer it if it is a plain `initialize`."""
    buffer = b""
    while b"\n" not in buffer and len(buffer) < FIRST_LINE_LIMIT:
        piece = _read(input_fd)
        if not piece:
            return Opening(buffer, None, ended=True)
        buffer += piece
    line, _, unread = buffer.partition(b"\n")
    params, answer = _answer(line)
    if params is None:
        return Opening(buffer, None, ended=False)
    _write(output_fd, answer)
    return Opening(unread, params, ended=False)


def _answer(line: bytes) -> tuple[dict[str, Any] | None, bytes]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None, b""
    if (
        not isinstance(message, dict)
        or message.get("jsonrpc") != "2.0"
        or message.get("method") != "initialize"
        or "result" in message
        or "error" in message
        or type(message.get("id")) not in {int, str}
    ):
        return None, b""
    params = message.get("params")
    if not isinstance(params, dict) or type(params.get("protocolVersion")) is not int:
        return None, b""
    if not 0 <= params["protocolVersion"] <= 65_535:
        return None, b""
    version = version_for(params)
    if version is None or (version == 2 and not _is_named(params.get("info"))):
        return None, b""
    result = initialize_result(params, version)
    response = {"jsonrpc": "2.0", "id": message["id"], "result": result}
    return params, json.dumps(response, separators=(",", ":")).encode() + b"\n"


def _is_named(info: object) -> bool:
    """Return whether the client names itself, as version 2 requires."""
    return (
        isinstance(info, dict)
        and isinstance(info.get("name"), str)
        and isinstance(info.get("version"), str)
    )


def _read(input_fd: int) -> bytes:
    """Return the next bytes; empty at the end or after a reset."""
    while True:
        try:
            return os.read(input_fd, FIRST_LINE_LIMIT)
        except BlockingIOError:  # another process made the shared file non-blocking
            from protocol.transports.stdio import wait_readable  # noqa: PLC0415 - rare

            wait_readable(input_fd)
        except OSError:
            return b""


def _write(output_fd: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(output_fd, data) :]
        except BlockingIOError:  # as for reading
            from protocol.transports.stdio import wait_writable  # noqa: PLC0415 - rare

            wait_writable(output_fd)
        except OSError:
            return  # nobody reads; the connection detects it
