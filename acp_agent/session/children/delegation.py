"""Tools by which the model delegates tasks to agents and uses skills."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from fnmatch import fnmatchcase
from hashlib import sha256

from msgspec import json

from acp_agent.config.types import AgentConfig
from acp_agent.errors import ToolError
from acp_agent.extensions.definitions.inputs import SkillInputs
from acp_agent.extensions.definitions.types import TASK, AgentSpec, RunSettings, Skill
from acp_agent.ids import CallId
from acp_agent.session.children.child import ChildSession
from acp_agent.session.children.task_run import InnerTools, NextTurn, ParentTurn, TaskRun
from acp_agent.session.commands.prompting import skill_text
from acp_agent.session.definition_search import definition_hooks
from acp_agent.tools.base import AnyTool, Outcome, Progress
from acp_agent.tools.skill import SkillTool
from acp_agent.tools.skills.composed import ComposedSkill, composed_tool
from acp_agent.tools.task import AgentTask, BundledTaskTool, InnerTaskTool, TaskTool

MAX_LEVELS = 3  # of agents, each working for the previous one


class Delegation:
    """The tools of a turn that run agents.

    Args:
        chain: the skills that are being followed, each by an agent that the previous skill started.
    """

    def __init__(self, parent: ParentTurn, chain: tuple[str, ...] = ()) -> None:
        self._parent = parent
        self._chain = chain
        self._core = parent.core
        self._definitions = parent.definitions

    def tools(self) -> Sequence[AnyTool]:
        """Return the tools `task` and `skill`, if there are agents and skills."""
        workspace = self._parent.tools.workspace
        agents, external = self._definitions.task_agents, self._definitions.external_agents
        skills = [
            (skill.name, skill.description)
            for skill in self._definitions.skills
            if skill.by_model and not skill.paths
        ]
        unlisted = [
            skill.name
            for skill in self._definitions.skills
            if (skill.by_user and skill.runs_in_subagent) or (skill.by_model and skill.paths)
        ]
        tools: list[AnyTool] = []
        if agents:
            tool = TaskTool if self._definitions.agents or external else BundledTaskTool
            programs = {name: _digest(config) for name, config in external.items()}
            records = self._parent.children.records
            tools.append(tool(workspace, agents, self.run_task, records, programs))
        if skills or unlisted:
            tools.append(SkillTool(workspace, skills, unlisted, self._run_skill))
        options = self._parent.options
        if options is not None:
            followed = Delegation(self._parent, (options.skill,))
            tools += followed.composed_tools(options.uses)
        return tools

    def composed_tools(self, uses: RunSettings) -> list[AnyTool]:
        """Return a tool for each skill that a skill uses."""
        if not uses.composed:
            return []
        skills: dict[str, ComposedSkill] = {
            skill.name: ComposedSkill(name=skill.name, description=skill.description)
            for skill in self._definitions.bundled
        }
        skills |= {
            skill.name: ComposedSkill(
                name=skill.name, description=skill.description, inputs=skill.inputs
            )
            for skill in self._definitions.skills
        }
        workspace = self._parent.tools.workspace
        chosen = (skills[name] for name in uses.composed if name in skills)
        return [composed_tool(workspace, composed, self._run_composed) for composed in chosen]

    async def _run_composed(self, name: str, inputs: SkillInputs, progress: Progress) -> Outcome:
        """Start an agent that follows a skill for the agent that follows another skill."""
        path = " → ".join([*filter(None, self._chain), name])
        if name in self._chain:
            raise ToolError(
                f"the skill {name} is being followed already ({path})", advice="do it without that"
            )
        if len(self._chain) > MAX_LEVELS:
            raise ToolError(
                f"skills call each other over more than {MAX_LEVELS} levels ({path})",
                advice="do it without that",
            )
        skill = await self._definitions.find_skill(name)
        if skill is None:
            raise ToolError(f"there is no skill {name!r} any more: its file is gone")
        return await self._follow(skill, inputs.remainder, progress, inputs)

    async def run_task(self, task: AgentTask, progress: Progress) -> Outcome:
        """Give a task to an agent."""
        program = self._definitions.external_agents.get(task.agent)
        if program is not None:
            return await self._run_program(task, program, progress)
        title = f"{task.agent}: {task.title}"
        records = self._parent.children.records
        resumed = await records.find_resumable(task.continues) if task.continues else None
        spec, role = await self._definitions.find_agent(task.agent), ""
        if spec is None or (resumed is not None and resumed.role):
            role = task.role or (await records.roles()).get(task.agent, "")
            if not role:
                raise ToolError(f"there is no agent {task.agent!r} any more: its file is gone")
        run = TaskRun(
            self._parent,
            title,
            "" if spec is None or role else spec.description,
            progress,
            task.agent,
            role=self._core.clean(role),
            resumable=self._parent.outer is None,
            resumed=resumed,
            hooks=() if spec is None or role else definition_hooks(spec),
        )
        if spec is None or role:
            return await run.work(self._core.clean(role), task.task, self._limits())
        inner = self._inner(spec)
        return await run.work(spec, task.task, spec.uses, inner=inner)

    async def verify(self, agent: str, prompt: str, task: str, uses: RunSettings) -> str:
        """Return the last answer of an agent that checks something for a hook.

        Raises:
            ToolError: the agent cannot be run, or failed.
            StoreError: the journal could not be written.
        """
        run = TaskRun(self._parent, task, "", Progress(only_reads=True), agent)
        outcome = await run.work(prompt, task, uses)
        if outcome.failed:
            raise ToolError(f"the agent gave no answer: {outcome.text[:500]}")
        return outcome.text

    def _inner(self, spec: AgentSpec) -> InnerTools | None:
        """Return a function that makes the agent's tool `task`; None if it has no agents to use.

        Agents already at work are left out, so that none waits for itself.
        """
        busy = (*self._parent.agents, spec.name)
        external = self._definitions.external_agents
        agents = [
            (name, description)
            for name, description in self._definitions.task_agents
            if name not in busy
            and name not in external
            and any(fnmatchcase(name, pattern) for pattern in spec.subagents)
        ]
        if not agents or len(busy) >= MAX_LEVELS or TASK in spec.uses.without:
            return None

        def tools(turn: ParentTurn) -> Sequence[AnyTool]:
            return [InnerTaskTool(turn.tools.workspace, agents, Delegation(turn).run_task, None)]

        return tools

    def _limits(self) -> RunSettings:
        """Return the limits of an agent that the model defines: those of the current turn."""
        if self._parent.options is None:
            return RunSettings()
        return RunSettings().over(self._parent.options.uses.bounds)

    async def _run_program(
        self, task: AgentTask, config: AgentConfig, progress: Progress
    ) -> Outcome:
        """Give a task to an agent that is another program."""

        def worker(child: ChildSession) -> AbstractAsyncContextManager[NextTurn]:
            from acp_agent.session.children.other_agent import run_other_agent  # noqa: PLC0415 - rarely used

            return run_other_agent(self._core, child, task.agent, config, self._parent.servers)

        title = f"{task.agent}: {task.title}"
        run = TaskRun(self._parent, title, config.description, progress, task.agent)
        return await run.work_by(worker, task.task, RunSettings())

    async def _follow_in_program(
        self, skill: Skill, task: AgentTask, config: AgentConfig, progress: Progress
    ) -> Outcome:
        """Have another program follow a skill that the user chose.

        Only the tool `task` asks the user whether to start the program, so the model has to use
        that tool.
        """
        if not self._parent.tools.open_calls.is_by_user(CallId(progress.call)):
            raise ToolError(
                f"the skill {skill.name} is followed by the program {task.agent}",
                advice=f"give the agent {task.agent} a task that says what the skill does",
                shown=f"only you may choose this skill, with /skill:{skill.name}",
            )
        if skill.uses.tools is not None or skill.uses.without:
            raise ToolError(
                f"the skill {skill.name} limits its tools, which no other program keeps to",
                advice="name an agent of a file, or take out the limit",
            )
        return await self._run_program(task, config, progress)

    async def _run_skill(self, name: str, request: str, progress: Progress) -> Outcome:
        """Return a skill's text to the model, or start an agent if the skill needs its own run."""
        skill = await self._definitions.find_skill(name)
        if skill is None:
            raise ToolError(f"there is no skill {name!r} any more: its file is gone")
        if not (skill.by_model or self._parent.tools.open_calls.is_by_user(CallId(progress.call))):
            raise ToolError(
                f"only the user may choose the skill {name}",
                shown=f"only you may choose the skill {name}, with /skill:{name}",
            )
        if not skill.runs_in_subagent and skill.uses == RunSettings():
            self._definitions.use(skill)
            # Other skills may have `$1` in a script of the shell.
            takes_request = skill.hint is not None or "$ARGUMENTS" in skill.text
            text = skill_text(self._core, skill, request if takes_request else "")
            return Outcome(text=self._core.clean(text))
        return await self._follow(skill, request, progress)

    async def _follow(
        self, skill: Skill, request: str, progress: Progress, inputs: SkillInputs | None = None
    ) -> Outcome:
        """Start an agent that follows a skill."""
        spec, uses, hooks = None, skill.uses, definition_hooks(skill)
        title = f"{skill.name}: {request or skill.description}"
        text = self._core.clean(skill_text(self._core, skill, request, inputs))
        program = self._definitions.external_agents.get(skill.agent or "")
        if skill.runs_in_subagent and program is not None:
            task = AgentTask(agent=skill.agent or "", title=skill.name, task=text)
            return await self._follow_in_program(skill, task, program, progress)
        if skill.runs_in_subagent and skill.agent is not None:
            spec = await self._definitions.find_agent(skill.agent)
            if spec is None:
                raise ToolError(
                    f"the skill {skill.name} wants the agent {skill.agent}, which is missing"
                )
            uses = uses.over(spec.uses)
            hooks += definition_hooks(spec)
        run = TaskRun(self._parent, title, "", progress, skill.agent or "", hooks=hooks)
        followed = Delegation(self._parent, (*(self._chain or ("",)), skill.name))
        return await run.work(spec, text, uses, followed.composed_tools(uses))


def _digest(config: AgentConfig) -> str:
    """Return a digest of a program, so that permission for one does not apply to another."""
    return sha256(json.encode((config.command, config.args, config.env))).hexdigest()[:16]
