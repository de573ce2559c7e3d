"""Give a subagent a task."""

from __future__ import annotations

import functools
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace
from pydantic import Field

from acp_agent.content import JsonObject, text_part
from acp_agent.errors import ToolError
from acp_agent.events import ToolKind
from acp_agent.permissions.access import McpAccess, NoAccess
from acp_agent.tools.base import NOTHING, Outcome, Prepared, Progress, Tool, ToolParams, Touches
from acp_agent.tools.quoting import code_block, described_list, first_line, joined_names
from acp_agent.workspace.workspace import Workspace

_MAX_TITLE = 100  # characters
_NUMBER = re.compile(r"#[0-9]{1,9}")  # of a task
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+){0,20}")
_NAME_ADVICE = "use lowercase letters, digits and hyphens"

_MAX_ROLE = 20_000  # characters


class AgentTask(Struct, frozen=True, kw_only=True):
    """A task for an agent. `role` has the instructions of a new agent.

    `continues` is the number of the task whose conversation it continues; "" for a new one.
    """

    agent: str
    title: str
    task: str
    role: str = ""
    continues: str = ""


class SessionAgents(Protocol):
    """The agents that have worked in the session, including those that the model created."""

    async def roles(self) -> Mapping[str, str]:
        """Return the names of those that the model made, each with its instructions."""

    async def agent_for_task(self, number: str) -> str:
        """Return the agent that can continue the task with this number.

        Raises:
            ToolError: nobody can.
        """


Delegate = Callable[[AgentTask, Progress], Awaitable[Outcome]]


class InnerTaskParams(ToolParams):
    """The task tool's parameters for an agent, which cannot create agents."""

    agent: str
    task: Annotated[str, Field(min_length=1)]
    title: str = ""


class ShortTaskParams(InnerTaskParams):
    """The task tool's parameters, shortened for sessions without configured agents."""

    role: str = ""


class TaskParams(ShortTaskParams):
    """The task tool's parameters."""

    agent: Annotated[str, Field(min_length=1, description="Which agent.")]
    task: Annotated[str, Field(min_length=1, description="The task, with all that it needs.")]
    title: Annotated[str, Field(description="The task in three to six words.")] = ""


class TaskTool(Tool[InnerTaskParams]):
    """Gives an agent a task and returns its answer.

    Args:
        session_agents: the agents of the session; None if the caller cannot use them.
        programs: the agents that are other programs, each with a digest of its start command;
            the user is asked before they start.
    """

    name: ClassVar[str] = "task"
    kind: ClassVar[ToolKind] = "other"
    effect: ClassVar[Literal["reads", "writes"]] = "writes"
    params: ClassVar[type[InnerTaskParams]] = TaskParams
    # Each call of the agent is checked separately, so agents can run in parallel.
    touched: ClassVar[Touches | None] = NOTHING

    def __init__(
        self,
        workspace: Workspace,
        agents: Sequence[tuple[str, str]],
        delegate: Delegate,
        session_agents: SessionAgents | None,
        programs: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(workspace)
        self._agents = dict(agents)
        self._delegate = delegate
        self._session_agents = session_agents
        self._programs = programs

    def description(self) -> str:
        """Return what the tool is for, and the agents that there are."""
        return "\n".join([super().description(), "", "The agents:", *described_list(self._agents)])

    def title(self, arguments: JsonObject) -> str:
        """Return a title such as "explore: Find the parser"."""
        title_parts = [arguments.get("agent"), arguments.get("title") or arguments.get("task")]
        return (
            first_line(": ".join(part for part in title_parts if isinstance(part, str)), _MAX_TITLE)
            or self.name
        )

    async def prepare(self, params: InnerTaskParams) -> Prepared:
        """Find the agent, or check that the new one can be created.

        Raises:
            ToolError: there is no such agent, or the name of the new one is in use.
        """
        agent_task = AgentTask(
            agent=params.agent,
            title=params.title or first_line(params.task, _MAX_TITLE),
            task=params.task,
            role=params.role.strip() if isinstance(params, ShortTaskParams) else "",
        )
        if self._session_agents is None:
            if agent_task.agent not in self._agents:
                raise _unknown_agent(agent_task.agent, self._agents)
        elif _NUMBER.fullmatch(agent_task.agent):
            number = agent_task.agent.removeprefix("#")
            agent_task = replace(
                agent_task,
                agent=await self._session_agents.agent_for_task(number),
                continues=number,
            )
        elif agent_task.agent not in self._agents or agent_task.role:
            self._check_new_agent(
                agent_task.agent, agent_task.role, await self._session_agents.roles()
            )
        title = self.title({**params.model_dump(), "agent": agent_task.agent})
        run = functools.partial(self._delegate, agent_task)
        digest = self._programs.get(agent_task.agent)
        if digest is None:
            named = NoAccess("agent", agent_task.agent)
            return Prepared(title=title, run=run, access=named)
        access = McpAccess(
            server=agent_task.agent,
            tool=self.name,
            identity=digest,
            definition=digest,
            is_agent=True,
        )
        content = (text_part(code_block(params.task, "")),)
        # The calls of the agent take slots themselves.
        return Prepared(title=title, run=run, access=access, content=content, takes_slot=False)

    def _check_new_agent(self, name: str, role: str, roles: Mapping[str, str]) -> None:
        label = first_line(name, _MAX_TITLE)
        if not role:
            if name not in roles:
                hint = "; a new one needs a `role`: who it is and how it works"
                raise _unknown_agent(name, [*self._agents, *roles], hint)
        elif name in self._agents or roles.get(name, role) != role:
            raise ToolError(
                f"there is an agent {label} already",
                advice="leave `role` out to use it, or give the new agent another name",
            )
        elif not _NAME.fullmatch(name):
            raise ToolError(f"{label!r} cannot name an agent", advice=_NAME_ADVICE)
        elif len(role) > _MAX_ROLE:
            raise ToolError(f"a role has at most {_MAX_ROLE:,} characters")


def _unknown_agent(name: str, names: Collection[str], hint: str = "") -> ToolError:
    return ToolError(
        f"there is no agent {first_line(name, _MAX_TITLE)!r}",
        advice=f"the agents are {joined_names(names)}{hint}",
    )


class InnerTaskTool(TaskTool):
    """The task tool of an agent, which may use the other agents of the session."""

    params: ClassVar[type[InnerTaskParams]] = InnerTaskParams

    def description(self) -> str:
        """Return what the tool is for, and the agents that there are."""
        text = "An agent does `task`, seeing only that, and answers."
        return "\n".join([text, *described_list(self._agents)])


class BundledTaskTool(TaskTool):
    """The task tool if all agents are bundled: short, because every first request includes it."""

    params: ClassVar[type[InnerTaskParams]] = ShortTaskParams

    def description(self) -> str:
        """Return what the tool is for, and the names of the agents."""
        names = ", ".join(self._agents)
        text = f"An agent ({names}) does `task`, seeing only that, and answers."
        return f"{text} `role` makes a new one."
