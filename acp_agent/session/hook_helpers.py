"""Asks models and MCP servers on behalf of a session's hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from acp_agent.agent.resources import TurnResources
from acp_agent.agent.side_requests import ask_side_request
from acp_agent.content import JsonObject
from acp_agent.errors import AuthRequiredError, ConfigError, InvalidInputError, ToolError
from acp_agent.models.base import ModelInfo, ModelRequest, UserSide, UserText
from acp_agent.session.core import SessionCore

if TYPE_CHECKING:  # only for sessions with servers
    from acp_agent.extensions.definitions.types import RunSettings
    from acp_agent.session.mcp.servers import McpServers

_MAX_ANSWER_TOKENS = 1_000  # tokens
_READS = ("read", "grep", "glob", "list")  # the tools of an agent that verifies
_VERIFIER_REQUESTS = 50


class Verifier(Protocol):
    """Makes agents that check something for a hook."""

    async def verify(self, agent: str, prompt: str, task: str, uses: RunSettings) -> str:
        """Return the agent's last answer. Raises ToolError."""


class SessionHelpers:
    """Asks models and MCP servers for hooks. The cost counts for the turn.

    Args:
        delegation: makes agents for the turn.
    """

    def __init__(
        self,
        core: SessionCore,
        turn: TurnResources,
        servers: Callable[[], McpServers | None],
        delegation: Callable[[], Verifier],
    ) -> None:
        self._core = core
        self._turn = turn
        self._servers = servers
        self._delegation = delegation

    async def ask_model(self, system: str, prompt: str, model: str) -> str:
        """Return the answer of a model; the small model if `model` is "" or cannot be used.

        Raises:
            BudgetSpentError: the request would exceed a budget.
            ModelError: the model failed, refused, or returned nothing.
            StoreError: the journal could not be read or written.
        """
        chosen = self._model(model)
        request = ModelRequest(
            model=replace(chosen, max_output=min(chosen.max_output, _MAX_ANSWER_TOKENS)),
            system=system,
            messages=(UserSide((UserText(self._core.clean(prompt)),)),),
            thought_level=next(iter(chosen.thought_levels), None),
        )
        return self._core.clean(await ask_side_request(self._turn, request))

    async def verify(self, system: str, prompt: str, model: str) -> str:
        """Return the answer of an agent that only reads files; "" is the small model.

        Raises:
            ToolError: the agent cannot be run, or failed.
            StoreError: the journal could not be read or written.
        """
        from acp_agent.extensions.definitions.types import RunSettings  # noqa: PLC0415 - rarely used
        from acp_agent.hooks.session_hooks import VERIFIER  # noqa: PLC0415 - likewise

        uses = RunSettings(
            model=self._model(model).ref, tools=_READS, max_requests=_VERIFIER_REQUESTS
        )
        answer = await self._delegation().verify(VERIFIER, system, self._core.clean(prompt), uses)
        return self._core.clean(answer)

    def _model(self, name: str) -> ModelInfo:
        if name:
            models = self._core.services.models
            try:
                model = models.resolve(name)
                models.require(model)
            except (AuthRequiredError, ConfigError, InvalidInputError):
                pass  # a shared hook may name a model that this user does not have
            else:
                return model
        return self._turn.models.small

    async def call_tool(self, server: str, tool: str, arguments: JsonObject) -> str:
        """Call a tool of an MCP server and return the text of its result.

        The user is not asked, because the hook's author decided on the call. Rules that refuse the
        call apply.

        Raises:
            ToolError: there is no such server or tool, a rule refuses the call, or it failed.
        """
        servers = self._servers()
        if servers is not None:
            await servers.ready()
        available = () if servers is None else servers.servers
        connected = next(
            (
                candidate
                for candidate in available
                if server in {candidate.label, candidate.config.name}
            ),
            None,
        )
        if servers is None or connected is None or connected.offer is None:
            raise ToolError(f"the MCP server {server!r} is not connected")

        from acp_agent.extensions.mcp.config import identity  # noqa: PLC0415 - only when called
        from acp_agent.permissions.access import McpAccess, Refuse  # noqa: PLC0415 - likewise
        from acp_agent.tools.mcp.results import tool_outcome  # noqa: PLC0415 - likewise
        from acp_agent.tools.mcp_tool import call_server, definition  # noqa: PLC0415 - likewise

        remote = next((offered for offered in connected.offer.tools if offered.name == tool), None)
        if remote is None or not connected.config.options.offers(tool):
            raise ToolError(f"the MCP server {server!r} has no tool {tool!r}")
        access = McpAccess(
            server=connected.config.name,
            tool=tool,
            identity=identity(connected.config),
            definition=definition(remote),
            read_only=False,
        )
        verdict = self._turn.tools.gate.judge(access, mode="full", project=str(self._core.cwd))
        if isinstance(verdict, Refuse):
            raise ToolError(f"the tool {tool!r} is refused: {verdict.why}")
        result = await call_server(
            connected,
            lambda: connected.client.call_tool(remote, arguments, _no_progress),
            seconds=self._core.services.config.limits.mcp_call_timeout,
        )
        outcome = tool_outcome(result)
        text = servers.clean(outcome.text)
        if outcome.failed:
            raise ToolError(f"the tool {tool!r} failed: {text[:500]}")
        return "" if text == "[nothing]" else text


async def _no_progress(progress: float, total: float | None, message: str | None) -> None:
    """Ignore progress: a hook has no tool call that could show it."""
