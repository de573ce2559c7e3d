"""The command `/agents`: list agents and their tasks; start, message or stop an agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import msgspec
from msgspec import Struct

from acp_agent.content import TextBlock
from acp_agent.errors import InvalidInputError
from acp_agent.events import Activity, UserMessage
from acp_agent.ids import SessionId, new_message_id
from acp_agent.session.children.running import RunningChildren, TaskRecord
from acp_agent.session.commands.command import FoundCommand
from acp_agent.session.commands.listings import untrusted_lines
from acp_agent.session.core import SessionCore
from acp_agent.session.extensions import Definitions
from acp_agent.tools.quoting import code_span, escape_markdown, first_line
from acp_agent.workspace.scrub import scrub

_MAX_TASKS = 20  # tasks in the list, the last ones
_MAX_ROLE = 100  # characters of an agent's instructions
STATES: Mapping[Activity, str] = {
    "running": "running",
    "requires_action": "waiting for you",
    "idle": "ended",
    "unknown": "unknown",
}


class AgentTasks(Struct, frozen=True, kw_only=True):
    """The data that `/agents` works with.

    Attributes:
        stop: stops a child session; returns false if it is not running.
    """

    core: SessionCore
    definitions: Definitions
    children: RunningChildren
    stop: Callable[[SessionId], bool]


async def agents_command(tasks: AgentTasks, arguments: str) -> FoundCommand:
    """Return the effect of `/agents`.

    Args:
        arguments: the text after the command: nothing, or `start NAME TASK`, `message N TEXT`,
            `stop N`, `stop all`.
    """
    action, _, text = arguments.strip().partition(" ")
    if action == "start":
        return await _start(tasks, text.strip())
    if action == "message":
        number, _, message = text.strip().partition(" ")
        task = (await tasks.children.records.all()).get(number)
        if task is not None and message.strip() and tasks.children.find_call(task.session) is None:
            return _call(f"#{number}", message.strip())  # the task continues
    return FoundCommand(answer=partial(_answer, tasks, action, text.strip()))


async def _start(tasks: AgentTasks, arguments: str) -> FoundCommand:
    """Return a call that starts a task, or how to write the command."""
    await tasks.definitions.load()  # its file may be new
    name, _, task = arguments.partition(" ")
    task = task.strip()
    roles = await tasks.children.records.roles()
    names = [*(name for name, _ in tasks.definitions.task_agents), *roles]
    if name not in names or not task:
        text = tasks.core.translate(
            "Usage: /agents start NAME TASK. The agents are {names}.", names=", ".join(names)
        )
        return FoundCommand.answering(tasks.core.clean(text))
    return _call(name, task)


def _call(agent: str, task: str) -> FoundCommand:
    """Return a call of the tool `task`, as if the model had made it."""
    call = msgspec.json.encode({"agent": agent, "task": task}).decode()
    return FoundCommand(ask=f"Give this task to the agent {agent}: {task}", call=("task", call))


async def _answer(tasks: AgentTasks, action: str, arguments: str) -> str:
    translate, started = tasks.core.translate, await tasks.children.records.all()
    number, _, text = arguments.partition(" ")
    try:
        match action:
            case "":
                answer = await _list_agents(tasks, started)
            case "stop" if number == "all":
                stopped = [task for task in started.values() if tasks.stop(task.session)]
                answer = translate("Stopped {count} agents.", count=len(stopped))
            case "stop":
                running_task = _find_running(tasks, started, number)
                tasks.stop(running_task.session)
                answer = translate("Stopped: {title}", title=escape_markdown(running_task.title))
            case "message" if text.strip():
                running_task = _find_running(tasks, started, number)
                words = scrub(text.strip(), tasks.core.secrets)
                message = UserMessage(
                    message=new_message_id(), content=(TextBlock(text=words),), steering=True
                )
                await tasks.children.send(running_task.session, message)
                answer = translate("Sent to: {title}", title=escape_markdown(running_task.title))
            case _:
                answer = translate(
                    "Usage: /agents, /agents start NAME TASK, /agents message N TEXT, "
                    "/agents stop N, /agents stop all"
                )
    except InvalidInputError as error:
        answer = str(error)
    return tasks.core.clean(answer)


def _find_running(tasks: AgentTasks, started: Mapping[str, TaskRecord], number: str) -> TaskRecord:
    """Return a running task.

    Raises:
        InvalidInputError: no task has this number, or it has ended.
    """
    task = started.get(number)
    if task is None or tasks.children.find_call(task.session) is None:
        text = tasks.core.translate(
            "No running agent has the number {number}; /agents lists them.", number=number
        )
        raise InvalidInputError(text)
    return task


async def _list_agents(tasks: AgentTasks, started: Mapping[str, TaskRecord]) -> str:
    translate = tasks.core.translate
    await tasks.definitions.load()
    lines = [
        f"- {code_span(name)}: {escape_markdown(description)}"
        for name, description in tasks.definitions.task_agents
    ]
    for name, role in (await tasks.children.records.roles()).items():
        role_text = translate("created for this session: {role}", role=first_line(role, _MAX_ROLE))
        lines.append(f"- {code_span(name)}: {escape_markdown(role_text)}")
    lines += untrusted_lines(tasks.core, tasks.definitions, "agent")
    if not lines and not started:
        return translate("There are no agents.")
    if started:
        lines += ["", translate("Tasks of this session:"), ""]
    for number, task in list(started.items())[-_MAX_TASKS:]:
        state = translate(STATES[task.state])
        lines.append(f"- {number}: {escape_markdown(task.title)} ({state})")
    return "\n".join(lines)
