"""Skills and agents as sessions use them, and the settings that they run with."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from acp_agent.config.model_types import ThoughtLevel
from acp_agent.content import JsonObject
from acp_agent.extensions.definitions.locations import Source

if TYPE_CHECKING:
    from acp_agent.extensions.flows.flow import Flow

DEFAULT_PROMPT = "${DEFAULT}"  # stands for the prompt of the built-in agent
AgentMode = Literal["subagent", "primary", "all"]
TASK = "task"  # the tool that gives tasks to agents
MEMORY = "memory"  # the tool that keeps notes
SMALL = "small"  # means the session's small model
_VARIABLE = re.compile(r"\$\{(\w{1,64})\}")
COMPOSED = "skill_"  # prefix of a skill's name among the tools of another skill


class RunSettings(Struct, frozen=True, kw_only=True):
    """Settings that a skill or an agent runs with; None means the session's.

    Attributes:
        model: "provider/name", or "small".
        thought_level: how much the model reasons.
        temperature: the randomness of the model's answers.
        max_output: the longest answer, in tokens.
        tools: the only tools of the session that it may use; None: all of them.
        without: tools that it may not use, even if `tools` allows them.
        within: further lists that must each allow a tool: those of the callers.
        memory: an agent has the tool that keeps notes.
        output_folder: the only folder in which files may be edited, relative to the session's.
    """

    model: str | None = None
    thought_level: ThoughtLevel | None = None
    temperature: float | None = None
    max_output: int | None = None
    tools: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    max_requests: int | None = None
    within: tuple[tuple[str, ...], ...] = ()
    memory: bool = False
    output_folder: str | None = None

    @property
    def bounds(self) -> RunSettings:
        """Return the settings that also bound those who work on behalf of this one."""
        return RunSettings(
            tools=self.tools,
            without=self.without,
            within=self.within,
            max_requests=self.max_requests,
            output_folder=self.output_folder,
        )

    def over(self, base: RunSettings) -> RunSettings:
        """Return these settings, completed by `base`; a tool that either refuses is refused."""
        requests = [
            settings.max_requests for settings in (self, base) if settings.max_requests is not None
        ]
        return RunSettings(
            model=base.model if self.model is None else self.model,
            thought_level=base.thought_level if self.thought_level is None else self.thought_level,
            temperature=base.temperature if self.temperature is None else self.temperature,
            max_output=base.max_output if self.max_output is None else self.max_output,
            tools=self.tools,
            without=(*base.without, *self.without),
            max_requests=min(requests, default=None),
            within=(*self.within, *base.within, *(() if base.tools is None else (base.tools,))),
            memory=self.memory or base.memory,
            output_folder=self.output_folder or base.output_folder,
        )

    @property
    def tunes_answers(self) -> bool:
        """Return whether they change how the model answers."""
        return (self.thought_level, self.temperature, self.max_output) != (None, None, None)

    @property
    def composed(self) -> tuple[str, ...]:
        """Return the names of the skills among the tools."""
        skill_tools = (tool for tool in self.tools or () if tool.startswith(COMPOSED))
        return tuple(tool.removeprefix(COMPOSED) for tool in skill_tools)

    def allows(self, tool: str) -> bool:
        """Return whether a tool may be used. `*` in a pattern matches any characters."""
        if any(fnmatchcase(tool, pattern) for pattern in self.without):
            return False
        return all(
            only is None or any(fnmatchcase(tool, pattern) for pattern in only)
            for only in (self.tools, *self.within)
        )


class Argument(Struct, frozen=True):
    """One thing that a skill is given; `default` is what it is given where nothing is said."""

    name: str
    type: str = ""
    required: bool = False
    description: str = ""
    default: str | int | float | bool | None = None


class Skill(Struct, frozen=True, kw_only=True):
    """A skill of the Agent Skills standard (https://agentskills.io/specification).

    Attributes:
        name: its name, which is also that of its folder.
        description: what it does and when to use it, in one line.
        text: the Markdown below the front matter.
        path: the path of its file; files that the text names are in the same folder.
        hint: what may follow its command.
        by_model: whether the model may choose it.
        by_user: whether it is a command for the user.
        runs_in_subagent: whether a subagent runs it, instead of the conversation itself.
        agent: the agent that runs it in that case; None leaves the choice to the program.
        paths: patterns of files; it is offered when one of them is used. Empty: always.
        inputs: its inputs: words in this order, or `name=value`.
        flow: the chart that it follows step by step, if it is a flow.
        hooks: its hooks, which run while it is in use: a list for each event.
    """

    name: str
    description: str
    text: str
    path: Path
    source: Source
    hint: str | None = None
    uses: RunSettings = RunSettings()
    by_model: bool = True
    by_user: bool = True
    runs_in_subagent: bool = False
    agent: str | None = None
    paths: tuple[str, ...] = ()
    inputs: tuple[Argument, ...] = ()
    flow: Flow | None = None
    hooks: JsonObject = field(default_factory=dict)


class AgentSpec(Struct, frozen=True, kw_only=True):
    """An agent as defined by its file and the agents that it extends.

    Attributes:
        description: what it is good at, in one line.
        takes_tasks: whether tasks are given to it; sessions can run as it in any case.
        subagents: the agents that it may give tasks to, as patterns.
        skills: names of skills whose texts follow its prompt.
        has_worktree: whether it works in a git worktree of its own.
        hooks: its hooks, which run while it works: a list for each event.
    """

    name: str
    description: str
    prompt: str
    path: Path
    source: Source
    uses: RunSettings = RunSettings()
    takes_tasks: bool = True
    subagents: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    has_worktree: bool = False
    hooks: JsonObject = field(default_factory=dict)

    def prompt_in(self, cwd: Path, default: Callable[[], str]) -> str:
        """Return the prompt with `${CWD}`, `${DATE}`, `${AGENT}` and `${DEFAULT}` filled in."""
        today = datetime.now().astimezone().date().isoformat()
        values = {"CWD": str(cwd), "DATE": today, "AGENT": self.name}
        if DEFAULT_PROMPT in self.prompt:
            values["DEFAULT"] = default()
        return fill_variables(self.prompt, values).strip()


def fill_variables(prompt: str, values: Mapping[str, str | int | float | bool]) -> str:
    """Return a prompt with each `${NAME}` replaced, if there is a value for it."""
    return _VARIABLE.sub(lambda match: str(values.get(match[1], match[0])), prompt)
