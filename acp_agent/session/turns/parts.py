"""The resources of a turn (`acp_agent.agent.resources`), based on the core of its session.

Imported when the first prompt runs.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from acp_agent.agent.context_size import next_request_tokens
from acp_agent.agent.resources import Journal, Limits, Models, PermissionRequest, Tools
from acp_agent.agent.token_count import request_tokens, text_tokens
from acp_agent.agent.tool_calls import OpenCalls
from acp_agent.config.localization import Translator
from acp_agent.config.types import BudgetConfig
from acp_agent.content import CallContent
from acp_agent.events import NoticeShown, Usage
from acp_agent.ids import CallId
from acp_agent.models.base import (
    CallDelta,
    Driver,
    ModelInfo,
    ModelRequest,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
    ThoughtLevel,
)
from acp_agent.models.roles import ProviderSearch, provider_search, small_model, vision_model
from acp_agent.permissions.access import (
    Access,
    Ask,
    CommandAccess,
    Decision,
    Gate,
    McpAccess,
    Mode,
    may_write,
)
from acp_agent.session.core import SessionCore
from acp_agent.session.extensions import Definitions, Extensions
from acp_agent.session.services import ConcurrencyLimit, PendingAnswer, Services
from acp_agent.session.turns.budget import SessionBudget
from acp_agent.session.turns.edit_checks import SessionEditChecks
from acp_agent.session.turns.plan import RunOptions
from acp_agent.session.turns.toolset import AddedTools, CachedChange, WorkspaceTools
from acp_agent.tools.base import Answer, AnyTool, Question
from acp_agent.tools.toolset import Toolset
from acp_agent.workspace.workspace import Workspace

if TYPE_CHECKING:  # first needed when a call may write
    from acp_agent.session.history.checkpoints import Checkpoints

_CHECKPOINTS = "acp_agent.session.history.checkpoints"
CALLS_WAIT = "Calls are waiting: the limit of concurrent calls in all sessions is reached."
TURN_WAITS = "This turn is waiting: the limit of concurrent turns in all sessions is reached."


class SessionModels:
    """The models of a turn (`acp_agent.agent.resources.Models`).

    Args:
        options: the run options of a skill or agent; None: the user's settings.
    """

    def __init__(
        self,
        core: SessionCore,
        options: RunOptions | None,
        driver: Callable[[ModelInfo], Awaitable[Driver]],
    ) -> None:
        self._core = core
        self._options = options
        self._driver = driver

    @property
    def current(self) -> ModelInfo:
        """The current model."""
        return self._core.settings.model if self._options is None else self._options.model

    @property
    def thought_level(self) -> ThoughtLevel | None:
        """The current thought level."""
        chosen = self._core.settings if self._options is None else self._options
        return chosen.thought_level

    @property
    def small(self) -> ModelInfo:
        """The model for side requests."""
        services = self._core.services
        return small_model(services.models, services.config, self.current)

    @property
    def vision(self) -> ModelInfo | None:
        """The model that describes images for models that cannot see them."""
        services = self._core.services
        return vision_model(services.models, services.config)

    def web_search(self, model: ModelInfo) -> ProviderSearch | None:
        """Return the web search of a model's provider; None if it has none."""
        services = self._core.services
        return provider_search(services.models, services.config, model)

    def fallbacks(self, model: ModelInfo) -> Sequence[ModelInfo]:
        """Return the models to use if a model is not available."""
        return self._core.services.models.fallbacks(model)

    async def driver(self, model: ModelInfo) -> Driver:
        """Return the driver of a model."""
        return await self._driver(model)


class SessionUser:
    """The user of a session (`acp_agent.agent.resources.User`).

    Args:
        take_compaction_request: returns and clears the request for compaction, if there is one.
    """

    can_reply = True

    def __init__(
        self, core: SessionCore, take_compaction_request: Callable[[], str | None]
    ) -> None:
        self._core = core
        self.take_compaction_request = take_compaction_request

    @property
    def translate(self) -> Translator:
        """The translator of this program's texts into the user's language."""
        return self._core.translate

    @property
    def mode(self) -> Mode:
        """The current permission mode."""
        return self._core.settings.mode

    async def ask_permission(self, request: PermissionRequest, ask: Ask) -> Decision:
        """Ask the user for permission for a tool call."""
        return await self._core.client.ask_permission(self._core.id, request, ask)

    async def ask_question(self, call: CallId, question: Question) -> Answer | None:
        """Ask the user a question."""
        return await self._core.client.ask_question(self._core.id, call, question)


class TurnBudget:
    """The budget of a turn (`acp_agent.agent.resources.Budget`)."""

    def __init__(
        self,
        core: SessionCore,
        budget: SessionBudget,
        journal: Journal,
        models: Models,
        tools: Tools,
    ) -> None:
        self.exhausted = False
        self._core = core
        self._budget = budget
        self._journal = journal
        self._models = models
        self._tools = tools
        self._pending: PendingAnswer | None = None  # the answer for which budget is reserved

    @property
    def _limited(self) -> bool:
        """Return whether there is any budget."""
        core = self._core
        ever_set = bool(core.state.budget) or core.services.config.budget != BudgetConfig()
        return ever_set and bool(self._budget.limits)

    @property
    def cost(self) -> float | None:
        """The cost of the session so far."""
        return self._core.state.cost

    def charge(self, model: ModelInfo, usage: Usage) -> float | None:
        """Add the cost of a request to the session's; return the total."""
        return self._core.state.charge(model.cost(usage))

    async def refusal(self, side_request: ModelRequest | None = None) -> str | None:
        """Return why no further request may be made; None if one may."""
        if not self._limited:
            return None
        model, sent_tokens = self._estimate(side_request)
        return await self._budget.refusal(model, sent_tokens, cached=side_request is None)

    @asynccontextmanager
    async def reserve(self, side_request: ModelRequest | None = None) -> AsyncIterator[str | None]:
        """Reserve budget for a request; yield why it is refused, or None."""
        if not self._limited:
            yield None
            return
        model, sent_tokens = self._estimate(side_request)
        async with self._budget.reserve(
            model, sent_tokens, cached=side_request is None
        ) as reservation:
            if isinstance(reservation, str):
                yield reservation
            elif side_request is not None:
                yield None
            else:
                self._pending = reservation
                try:
                    yield None
                finally:
                    self._pending = None

    def _estimate(self, side_request: ModelRequest | None) -> tuple[ModelInfo, int]:
        """Return the model of a request and the number of tokens that are sent."""
        if side_request is not None:
            return side_request.model, request_tokens(side_request)
        model = self._models.current
        return model, next_request_tokens(self._journal, self._tools, model)

    def streamed(self, batch: Sequence[StreamEvent]) -> None:
        """Count a received part of the answer for which budget is reserved."""
        if self._pending is not None:
            pieces = [
                event.text
                for event in batch
                if isinstance(event, TextDelta | ThoughtDelta | CallDelta)
            ]
            self._pending.receive(text_tokens("".join(pieces)))

    async def warn(self) -> None:
        """Warn the user about budgets that are nearly used up."""
        if self._limited:
            titles = await self._budget.warnings()
            await self._journal.emit(
                *(NoticeShown(severity="warning", title=title) for title in titles)
            )


class TurnTools:
    """The tools of a turn (`acp_agent.agent.resources.Tools`).

    The workspace does not change during a turn, even if the session's folders do.

    Args:
        extensions: the MCP servers, whose tools are added.
        options: the run options, which may limit the tools; None: all are allowed.
        checkpoints: returns the saved files.
    """

    def __init__(
        self,
        core: SessionCore,
        built_in: WorkspaceTools,
        extensions: Extensions,
        options: RunOptions | None,
        checkpoints: Callable[[], Checkpoints],
    ) -> None:
        self.open_calls = OpenCalls()
        self.added: list[AddedTools] = []
        self.search: AddedTools | None = None  # web search by the model's provider
        self._core = core
        self._built_in = built_in
        self._extensions = extensions
        self._checkpoints = checkpoints
        self._allowed = None if options is None else CachedChange(options.filter)
        self._notified = False  # whether the user was told that calls wait
        self._may_write_files = False

    @property
    def workspace(self) -> Workspace:
        """The workspace of the tools."""
        return self._built_in.workspace

    @property
    def edit_checks(self) -> SessionEditChecks:
        """The checks that find problems caused by edits."""
        return self._built_in.edit_checks

    @property
    def unfiltered(self) -> Toolset:
        """The session's built-in tools and the current tools of MCP servers."""
        mcp, tools = self._extensions.mcp, self._built_in.toolset
        if self.search is not None:
            tools = self.search.apply(tools)
        return tools if mcp is None else mcp.toolset(tools, self._built_in.workspace)

    @property
    def toolset(self) -> Toolset:
        """The current tools."""
        tools = self.unfiltered
        for added in self.added:
            tools = added.apply(tools)
        return tools if self._allowed is None else self._allowed.apply(tools)

    @property
    def gate(self) -> Gate:
        """The permission gate."""
        return self._core.services.gate()

    def take_changed_resources(self) -> Sequence[str]:
        """Return mentions of attached MCP resources that changed since the last call."""
        mcp = self._extensions.mcp
        return () if mcp is None else mcp.take_changed_resources()

    async def save_files(self, access: Access) -> None:
        """Save the files before a call that may change them."""
        self._may_write_files = self._may_write_files or may_write(access)
        if self._may_write_files:
            if _CHECKPOINTS not in sys.modules:  # the import takes some milliseconds
                await asyncio.to_thread(import_module, _CHECKPOINTS)
            await self._checkpoints().before_call(access)

    async def command_diffs(self, access: Access) -> tuple[CallContent, ...]:
        """Return content that shows the files that a command changed since `save_files`."""
        if not isinstance(access, CommandAccess | McpAccess):
            return ()
        diffs = await self._checkpoints().command_diffs(access)
        # Changes by background commands cannot be distinguished from the call's.
        return () if self.workspace.background.running else diffs

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a slot of the process's limit of calls, and hold it."""
        limit = self._core.services.call_limit
        notified = self._notified
        self._notified = notified or limit.full
        async with hold_slot(self._core, limit, None if notified else CALLS_WAIT):
            yield


@asynccontextmanager
async def turn_slot(core: SessionCore) -> AsyncIterator[None]:
    """Wait for a slot of the process's limit of turns, and hold it."""
    async with hold_slot(core, core.services.turn_limit, TURN_WAITS):
        yield


@asynccontextmanager
async def hold_slot(
    core: SessionCore, limit: ConcurrencyLimit, notice: str | None
) -> AsyncIterator[None]:
    """Wait for a slot of a limit, and hold it; `notice` is shown if it has to wait."""
    if limit.full and notice is not None:
        await core.emit(NoticeShown(severity="info", title=notice))
    await limit.acquire(core.id)
    try:
        yield
    finally:
        limit.release()


def code_tools(tools: TurnTools) -> Sequence[AnyTool]:
    """Return the tool that asks language servers about symbols."""
    from acp_agent.tools.code import CodeTool  # noqa: PLC0415 - only if a server runs

    return [CodeTool(tools.workspace, lambda: tools.edit_checks.servers)]


def write_skill_tools(
    core: SessionCore, definitions: Definitions, tools: TurnTools
) -> Sequence[AnyTool]:
    """Return the tool that writes skills."""
    from acp_agent.tools.skills.write_skill import SkillContext, WriteSkillTool  # noqa: PLC0415 - rare

    context = SkillContext(
        user=core.services.home / ".agents" / "skills",
        existing_skills=lambda: {skill.name: skill.path for skill in definitions.skills},
        tool_names=lambda: [spec.name for spec in tools.toolset.specs()],
    )
    return [WriteSkillTool(tools.workspace, context)]


def turn_limits(services: Services, options: RunOptions | None) -> Limits:
    """Return the limits of a turn."""
    limits = services.config.limits
    requests = None if options is None else options.uses.max_requests
    return Limits(
        model_requests=min(requests or limits.max_model_requests, limits.max_model_requests),
        retries=limits.max_retries,
        first_byte=limits.first_byte_timeout,
        stall=limits.stall_timeout,
        max_concurrent_calls=limits.max_concurrent_calls,
        refusal_ends_turn=limits.refusal_ends_turn,
        loop_rounds=(limits.loop_warn_after, limits.loop_ask_after, limits.loop_stop_after),
        context=services.config.context,
        output_folder=None if options is None else options.uses.output_folder,
    )
