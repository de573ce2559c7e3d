"""What the answer to `initialize` promises: which methods work, by the capability that says so.

Sources: Agent Client Protocol v1 and v2, Initialization, and the descriptions in the schemas, their
unstable parts included.
"""

from __future__ import annotations

from tests.support.framing import Json
from tests.support.oracle_rules import offered
from tests.support.wire_client import WireClient
from tests.support.wire_schema import WireSchema

NOT_FOUND = -32601

# What every agent of a version answers.
_BASELINE: dict[int, frozenset[str]] = {
    1: frozenset(("initialize", "session/new", "session/prompt")),
    2: frozenset(
        (
            "initialize", "session/new", "session/list", "session/resume", "session/close",
            "session/prompt", "tool_call/cancel", "terminal/cancel",
        )
    ),
}  # fmt: skip
# What goes with at least one way to log in.
_LOGIN: dict[int, frozenset[str]] = {
    1: frozenset(("authenticate",)),
    2: frozenset(("auth/login", "auth/logout")),
}
# What goes with state that the answer to `session/new` shows.
_STATE: dict[int, dict[str, frozenset[str]]] = {
    1: {
        "modes": frozenset(("session/set_mode",)),
        "configOptions": frozenset(("session/set_config_option",)),
    },
    2: {"configOptions": frozenset(("session/set_config_option",))},
}
_PROVIDERS = frozenset(("providers/list", "providers/set", "providers/disable"))
_ARCHIVE = frozenset(("session/archive", "session/unarchive"))
# What goes with a capability.
_CAPABILITIES: dict[int, dict[tuple[str, ...], frozenset[str]]] = {
    1: {
        ("loadSession",): frozenset(("session/load",)),
        ("sessionCapabilities", "list"): frozenset(("session/list",)),
        ("sessionCapabilities", "delete"): frozenset(("session/delete",)),
        ("sessionCapabilities", "resume"): frozenset(("session/resume",)),
        ("sessionCapabilities", "close"): frozenset(("session/close",)),
        ("sessionCapabilities", "fork"): frozenset(("session/fork",)),
        ("sessionCapabilities", "archive"): _ARCHIVE,
        ("sessionCapabilities", "status"): frozenset(("session/status",)),
        ("sessionCapabilities", "title"): frozenset(("session/set_title",)),
        ("auth", "logout"): frozenset(("logout",)),
        ("auth", "status"): frozenset(("auth/status",)),
        ("providers",): _PROVIDERS,
    },
    2: {
        ("session", "delete"): frozenset(("session/delete",)),
        ("session", "fork"): frozenset(("session/fork",)),
        ("session", "archive"): _ARCHIVE,
        ("session", "status"): frozenset(("session/status",)),
        ("session", "title"): frozenset(("session/set_title",)),
        ("auth", "status"): frozenset(("auth/status",)),
        ("providers",): _PROVIDERS,
    },
}
CAPABILITIES_OF = {1: "agentCapabilities", 2: "capabilities"}


def promised(version: int, result: Json, new_session: Json) -> set[str]:
    """The requests that work, by the results of `initialize` and `session/new`."""
    methods = set(_BASELINE[version])
    if result.get("authMethods"):
        methods |= _LOGIN[version]
    for field, with_it in _STATE[version].items():
        methods |= with_it if new_session.get(field) else set()
    for path, with_it in _CAPABILITIES[version].items():
        if offered(result[CAPABILITIES_OF[version]], *path):
            methods |= with_it
    return methods


def requests_of(schema: WireSchema) -> set[str]:
    """The requests that a schema has an agent answer."""
    return {one for one in schema.methods("agent") if schema.knows(one, "agent", "Request")}


async def served(client: WireClient, methods: set[str]) -> set[str]:
    """Those of `methods` that are known, sent without a single parameter.

    `initialize` is left out, for it began the connection.
    """
    known = {"initialize"} & methods
    for method in sorted(methods - known):
        answer = await client.answer(client.post(method, {}))
        if answer.get("error", {}).get("code") != NOT_FOUND:
            known.add(method)
    return known
