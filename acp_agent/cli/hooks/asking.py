"""Query models for `acp-agent hooks test`, as a session does for hooks with a prompt."""

from __future__ import annotations

from contextlib import aclosing

from msgspec.structs import replace

from acp_agent.cli.user_config import UserConfig
from acp_agent.content import JsonObject
from acp_agent.errors import AcpAgentError, ModelError, ToolError
from acp_agent.models.base import Failed, ModelInfo, ModelRequest, TextDelta, UserSide, UserText
from acp_agent.models.registry import Models
from acp_agent.models.retries import RetryPolicy, stream_with_retries
from acp_agent.models.roles import small_model

_MAX_ANSWER_TOKENS = 1_000  # tokens


class CommandHelpers:
    """Serves hooks without a session: with models, but without MCP servers."""

    def __init__(self, setup: UserConfig) -> None:
        self._setup = setup

    async def ask_model(self, system: str, prompt: str, model: str) -> str:
        """Return the answer of a model; "" and unknown names stand for the small model.

        Raises:
            AcpAgentError: there is no model, or it failed.
        """
        setup = self._setup
        models = Models(setup.config, setup.secrets, setup.environ)
        try:
            info = await self._model(models, model)
            request = ModelRequest(
                model=replace(info, max_output=min(info.max_output, _MAX_ANSWER_TOKENS)),
                system=system,
                messages=(UserSide((UserText(prompt),)),),
                thought_level=next(iter(info.thought_levels), None),
            )
            return await _answer(models, request)
        finally:
            await models.aclose()

    async def verify(self, system: str, prompt: str, model: str) -> str:
        """Raise ToolError, because tools are only available in sessions."""
        del system, prompt, model
        raise ToolError("hooks of the type agent run in sessions only")

    async def _model(self, models: Models, name: str) -> ModelInfo:
        if name:
            try:
                info = models.resolve(name)
                models.require(info)
            except AcpAgentError:
                pass  # a shared hook may name a model that this user does not have
            else:
                return info
        flag = self._setup.environ.get("ACP_AGENT_MODEL") or None
        main = await models.choose(flag, None)
        return small_model(models, self._setup.config, main)

    async def call_tool(self, server: str, tool: str, arguments: JsonObject) -> str:
        """Raise ToolError, because MCP servers are only connected in sessions."""
        del tool, arguments
        raise ToolError(f"the MCP server {server!r} is only available in sessions")


async def _answer(models: Models, request: ModelRequest) -> str:
    pieces: list[str] = []
    driver, policy = models.driver(request.model), RetryPolicy(retries=1)
    async with aclosing(stream_with_retries(driver, request, policy)) as stream:
        async for batch in stream:
            for item in batch:
                if isinstance(item, Failed):
                    raise ModelError(
                        item.message, provider=request.model.provider, status=item.status
                    )
                if isinstance(item, TextDelta):
                    pieces.append(item.text)
    return "".join(pieces)
