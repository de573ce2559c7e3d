"""What an oracle asks of a protocol version, and the rules that all versions share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from tests.support.framing import Json, ViolationError, require
from tests.support.wire_schema import WireSchema

Capabilities = Json  # as they came; `offered` looks into them


class Asked(NamedTuple):
    """A request: its id as JSON text, its method and its params."""

    id: str
    method: str
    params: Json


class Rules(ABC):
    """The rules of one version on one connection.

    An oracle feeds it every message in the order in which a client sees them, after framing and
    JSON-RPC were found in order. `asks`, `tells`, `answers` are what the client does; the others
    are what the agent does, and raise `ViolationError` where no conforming agent would do that.
    """

    version: int
    client_capabilities: str  # where the params of initialize have them
    agent_capabilities: str  # where its result has them

    def __init__(self, schema: WireSchema | None) -> None:
        self.schema = schema
        self.client: Capabilities = {}
        self.agent: Capabilities = {}
        self.cut_short = False  # the client leaves, so that work is stopped without being asked
        self._acp_servers: set[str] = set()
        self._addresses: set[str] = set()  # ids of URL elicitations that are open
        self._login: Json | None = None  # the state of the login as it was told last

    # --- what the client does

    @abstractmethod
    def asks(self, request: Asked) -> None:
        """The client sent a request."""

    @abstractmethod
    def tells(self, method: str, params: Json) -> None:
        """The client sent a notification."""

    @abstractmethod
    def answers(self, request: Asked, message: Json) -> None:
        """The client answered a request of the agent's."""

    def leaves(self) -> None:
        """The client ends the connection."""
        self.cut_short = True

    # --- what the agent does

    @abstractmethod
    def answered(self, request: Asked, message: Json) -> None:
        """The agent answered a request; the result, if there is one, has the schema's shape."""

    @abstractmethod
    def asked(self, request: Asked) -> None:
        """The agent sent a request that has the schema's shape."""

    @abstractmethod
    def told(self, method: str, params: Json) -> None:
        """The agent sent a notification that has the schema's shape."""

    @abstractmethod
    def finished(self) -> None:
        """The connection ended in order."""

    # --- what all versions share

    def initialized(self, params: Json, result: Json) -> None:
        """`initialize` was answered with this version, for the first time or again."""
        client = params.get(self.client_capabilities)
        agent = result.get(self.agent_capabilities)
        self.client = client if isinstance(client, dict) else {}
        self.agent = agent if isinstance(agent, dict) else {}
        kinds = [method.get("type", "agent") for method in result.get("authMethods") or ()]
        by_meta = offered(self.client, "_meta", "terminal-auth")
        terminal = by_meta or offered(self.client, "auth", "terminal")
        require(terminal or "terminal" not in kinds, "I4: terminal login not offered")
        require("agent" in kinds, "I4: no login method of type agent")

    def validate(self, method: str, side: str, kind: str, instance: object) -> None:
        """Hold params or a result to the schema. Methods with an underscore are nobody's."""
        if self.schema is None or method.startswith("_"):
            return
        if not self.schema.knows(method, side, kind):
            raise ViolationError(f"{method} is no {kind.lower()} of version {self.version}")
        problem = self.schema.problem(method, side, kind, instance)
        require(problem is None, f"schema: {method}: {problem}")

    def is_notification(self, method: str) -> bool:
        """Whether a client only notifies of this; sent as a request it has no result of its own."""
        schema = self.schema
        return schema is not None and (
            schema.knows(method, "agent", "Notification")
            and not schema.knows(method, "agent", "Request")
        )

    def declared(self, params: Json) -> None:
        """Keep which MCP servers the client provides over the connection itself."""
        servers = params.get("mcpServers")
        for server in servers if isinstance(servers, list) else ():
            if isinstance(server, dict) and server.get("type") == "acp":
                self._acp_servers.add(str(server.get("serverId")))

    def check_shared(self, method: str, params: Json) -> None:
        """The rules of the requests and notifications that every version has."""
        if method == "elicitation/create":
            mode = params.get("mode", "form")
            require(offered(self.client, "elicitation", mode), f"I6: {method} {mode} not offered")
            if mode == "url":
                self._addresses.add(params["elicitationId"])
        if method == "elicitation/complete":
            known = params["elicitationId"] in self._addresses
            require(known, "P12: an elicitation is completed that is not open")
            self._addresses.discard(params["elicitationId"])
        if method == "mcp/message":
            require(params["serverId"] in self._acp_servers, "I6: an MCP server nobody declared")
        if method == "auth/status_update":
            require(offered(self.agent, "auth", "status"), "I3: auth.status is not advertised")
            require(params != self._login, "I4: the state of the login is told and did not change")
            self._login = params

    def check_login(self, method: str, result: Json) -> None:
        """Keep the state of the login that was asked for."""
        if method == "auth/status":
            self._login = result

    def check_listed(self, result: Json, *archive: str) -> None:
        """Where sessions can be archived (`archive` leads to the capability), each says so."""
        if offered(self.agent, *archive):
            told = all(isinstance(one.get("archived"), bool) for one in result["sessions"])
            require(told, "S5: a listed session does not say whether it is archived")

    def check_options(self, options: Any, *, boolean: bool) -> None:
        """No option of a kind that the client does not know."""
        for option in options or ():
            known = boolean or option.get("type") != "boolean"
            require(known, "I6: boolean options were not offered")


def offered(capabilities: Capabilities, *path: str) -> bool:
    """Whether there is a capability, true or an object, at the end of `path`."""
    value: Any = capabilities
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value is True or isinstance(value, dict)


def participants(message: Json) -> list[str]:
    """The sessions that a message between sessions names."""
    sides = (message.get("senderSessionId"), message.get("recipientSessionId"))
    return [side for side in sides if side is not None]


def check_choices(options: list[Json]) -> None:
    """What the buttons of a permission have to be."""
    ids = [option["optionId"] for option in options]
    require(len(set(ids)) == len(ids) > 0, "P6: options are missing or not distinct")
    require(all(option["name"].strip() for option in options), "P6: an option without a name")
    require(options[0]["kind"] == "allow_once", "P6: allow_once is not first")
