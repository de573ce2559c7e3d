"""Find the slash command in a prompt, and determine its effect."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from acp_agent.agent.resources import TurnResources
from acp_agent.content import ContentBlock, escaped
from acp_agent.errors import InvalidInputError, ToolError
from acp_agent.ids import SessionId
from acp_agent.session.commands.command import FoundCommand, command_line
from acp_agent.session.core import SessionCore
from acp_agent.session.extensions import FLOW_PREFIX, PREFIX, Extensions
from acp_agent.session.option_change import change_option
from acp_agent.session.turns.resources import SessionResources

if TYPE_CHECKING:
    from acp_agent.session.mcp.catalog import ServerPrompt

_MAX_COMMAND = 120  # characters shown of a background command
LATER = "Try again when the current turn has ended."
_CANCEL_POLL = 0.05  # seconds between two checks whether a prompt was cancelled


class CommandContext(Struct, frozen=True, kw_only=True):
    """The parts of a session that commands use; `waiting` returns the number of queued prompts.

    `stop_child` stops a child session; it returns false if the child is not running.
    """

    core: SessionCore
    resources: SessionResources
    extensions: Extensions
    waiting: Callable[[], int]
    stop_child: Callable[[SessionId], bool]


async def find_command(
    context: CommandContext,
    content: Sequence[ContentBlock],
    cancelled: Callable[[], bool] = lambda: False,
) -> FoundCommand | None:
    """Return the command in a prompt; None if it contains no known command.

    Fetches the prompt of an MCP server; if that fails, the answer says why. The fetch stops when
    the user's own prompt is cancelled.
    """
    line = command_line(content)
    if line is None:
        return None
    name, arguments = line
    core, mcp = context.core, context.extensions.mcp
    for prompt in () if mcp is None else mcp.prompts:
        if prompt.command.name == name:
            return await _fetch_prompt(core, prompt, arguments, cancelled)
    if name.startswith((PREFIX, FLOW_PREFIX)):
        from acp_agent.session.commands.prompting import skill_command  # noqa: PLC0415 - rarely needed

        return await skill_command(core, context.extensions.definitions, name, arguments, content)
    if name == "loop":
        from acp_agent.session.commands.prompting import loop_command  # noqa: PLC0415 - rarely needed

        return await loop_command(
            core.translate, arguments, lambda repeated: find_command(context, repeated, cancelled)
        )
    return await _built_in_command(context, name, arguments, content)


async def _fetch_prompt(
    core: SessionCore, prompt: ServerPrompt, arguments: str, cancelled: Callable[[], bool]
) -> FoundCommand:
    fetch = asyncio.create_task(prompt.fetch(arguments))
    try:
        while not fetch.done():
            await asyncio.wait([fetch], timeout=_CANCEL_POLL)
            if cancelled():
                fetch.cancel()
                break
        return FoundCommand(ask=await fetch)
    except asyncio.CancelledError:
        if not cancelled():
            raise
        why = core.translate("it was cancelled")
    except ToolError as error:
        why = str(error)
    finally:
        fetch.cancel()
    return FoundCommand.answering(
        core.clean(core.translate("The prompt could not be used: {why}.", why=why))
    )


async def _built_in_command(
    context: CommandContext, name: str, arguments: str, content: Sequence[ContentBlock]
) -> FoundCommand | None:
    core, resources = context.core, context.resources
    answer = _answer(context, name, arguments)
    if answer is not None:
        return FoundCommand(answer=answer)
    match name:
        case "compact":
            return FoundCommand(action=partial(_compact, core, arguments), compaction=arguments)
        case "rewind":
            from acp_agent.session.commands.rewind import rewind_command  # noqa: PLC0415 - rare

            return rewind_command(core, resources.rewinder, arguments)
        case "trust":
            return FoundCommand(action=partial(_trust, context.extensions), refusal=LATER)
        case "agents":
            from acp_agent.session.commands.agents import AgentTasks, agents_command  # noqa: PLC0415 - rare

            tasks = AgentTasks(
                core=core,
                definitions=context.extensions.definitions,
                children=resources.children,
                stop=context.stop_child,
            )
            return await agents_command(tasks, arguments)
        case "init":
            return _ask("init.md", arguments)
        case "agent-new":
            return _ask("agent_new.md", arguments)
        case "skill-new":
            context.extensions.definitions.skill_requested = True
            return _ask("skill_new.md", arguments)
        case _:
            return await _find_skill(context, name, arguments, content)


def _answer(
    context: CommandContext, name: str, arguments: str
) -> Callable[[], Awaitable[str]] | None:
    """Return the answer function of a command that only answers; None for other commands."""
    core, answer = context.core, None
    match name:
        case "help":
            answer = partial(_help, context.extensions)
        case "status":
            answer = partial(_status, context)
        case "jobs":
            answer = partial(_jobs, context)
        case "mode" | "model" | "agent":
            answer = partial(_option, context, name, arguments)
        case "budget":
            from acp_agent.session.commands.budget import budget_command  # noqa: PLC0415 - rare

            answer = partial(budget_command, core, context.resources.budget, arguments)
        case "mcp":
            from acp_agent.session.commands.mcp import mcp_command  # noqa: PLC0415 - rare

            answer = partial(mcp_command, core, context.extensions, arguments)
        case "hooks":
            from acp_agent.session.commands.listings import hooks_command  # noqa: PLC0415 - rare

            answer = partial(hooks_command, core, context.resources.hooks)
        case "skills":
            from acp_agent.session.commands.listings import skills_command  # noqa: PLC0415 - rare

            answer = partial(skills_command, core, context.extensions.definitions)
        case "memory":
            from acp_agent.session.memory import memory_command  # noqa: PLC0415 - rare

            answer = partial(memory_command, core, arguments)
    return answer


def _ask(name: str, additions: str) -> FoundCommand:
    """Return the command that sends the model a bundled text, with the user's additions."""
    from importlib.resources import files  # noqa: PLC0415 - takes 8 ms

    ask = (files(__package__) / name).read_text("utf-8").strip()
    return FoundCommand(ask=f"{ask}\n\nThe user adds: {additions}" if additions else ask)


async def _find_skill(
    context: CommandContext, name: str, arguments: str, content: Sequence[ContentBlock]
) -> FoundCommand | None:
    """Return the skill that a command names without `skill:`, as in other programs.

    The name of its plugin may be missing too, if no other plugin has a skill of this name.
    """
    definitions = context.extensions.definitions
    await definitions.load()  # a prompt may arrive before they are loaded
    names = {
        command.name.removeprefix(PREFIX)
        for command in definitions.commands
        if command.name.startswith(PREFIX)
    }
    if name not in names:
        in_plugins = [full_name for full_name in names if full_name.endswith(f":{name}")]
        if len(in_plugins) != 1:
            return None
        (name,) = in_plugins
    from acp_agent.session.commands.prompting import skill_command  # noqa: PLC0415 - rarely needed

    return await skill_command(context.core, definitions, name, arguments, content)


async def _help(extensions: Extensions) -> str:
    from acp_agent.tools.quoting import code_span, escape_markdown  # noqa: PLC0415 - not at start

    await extensions.definitions.load()  # a skill's file may be new
    # Projects and servers choose the descriptions of skills and prompts, so escape them.
    return "\n".join(
        f"- {code_span(' '.join(filter(None, [f'/{command.name}', command.hint])))}: "
        f"{escape_markdown(command.description)}"
        for command in extensions.commands
    )


async def _status(context: CommandContext) -> str:
    from acp_agent.config.amounts import format_dollars  # noqa: PLC0415 - not at start

    core, translate = context.core, context.core.translate
    options = ", ".join(
        f"{option.name.lower()} {option.current}" for option in core.settings.options()
    )
    cost = translate("unknown") if core.state.cost is None else format_dollars(core.state.cost)
    lines = [
        translate("- Session `{session}` in `{folder}`", session=core.id, folder=core.cwd),
        translate("- Now: {options}", options=options),
        translate("- Messages to the model so far: {count}", count=len(core.context.messages)),
        translate("- Cost so far: {cost}", cost=cost),
    ]
    if waiting := context.waiting():
        lines.append(translate("- Queued prompts: {count}", count=waiting))
    return "\n".join(lines)


async def _jobs(context: CommandContext) -> str:
    from acp_agent.tools.quoting import code_span, first_line  # noqa: PLC0415 - not at start

    translate = context.core.translate
    lines: list[str] = []
    for command in context.resources.background or ():
        seconds = f"{command.seconds:.0f}"
        how = (
            translate("running for {seconds} s", seconds=seconds)
            if command.is_running
            else translate("ended after {seconds} s", seconds=seconds)
        )
        lines.append(
            f"- {command.name}: {code_span(first_line(command.command, _MAX_COMMAND))}, {how}"
        )
    return context.core.clean("\n".join(lines)) or translate("There are no background commands.")


async def _option(context: CommandContext, name: str, value: str) -> str:
    core = context.core
    if name == "agent":
        await context.extensions.definitions.load()
    if value:
        try:
            await change_option(core, context.resources, name, value, "command")
        except InvalidInputError as error:
            return core.translate.rendered(str(error))
    option = next((option for option in core.settings.options() if option.id == name), None)
    if option is None:
        return core.translate("No agents are available.")
    mark = core.translate("(current)")
    values = "\n".join(
        f"- `{candidate.id}`{' ' + mark if candidate.id == option.current else ''}"
        for candidate in option.values
    )
    return f"{option.name}:\n{values}"


async def _trust(extensions: Extensions, turn: TurnResources) -> str:
    from acp_agent.session.folder_trust import describe_all  # noqa: PLC0415 - rarely needed

    translate = turn.user.translate
    asks = bool(await extensions.trust.find_changes(include_code=True))
    untrusted = await extensions.trust.ask_in_turn(repeat=True)
    if not untrusted and asks:
        return translate("The files of this folder are trusted.")
    if not untrusted:
        return translate("Nothing in this folder needs your trust.")
    lines = "\n".join(f"- {escaped(line)}" for line in describe_all(untrusted, translate))
    return f"{translate('Not used until you trust it:')}\n{lines}"


async def _compact(core: SessionCore, focus: str, turn: TurnResources) -> str:
    from acp_agent.agent.context_shortening import compact_now  # noqa: PLC0415 - only for prompts
    from acp_agent.session.turns.parts import turn_slot  # noqa: PLC0415 - likewise

    translate = turn.user.translate
    async with turn_slot(core):
        why = await compact_now(turn, turn.models.current, focus)
        await turn.budget.warn()
    if why is not None:
        why = translate.rendered(why).rstrip(".。")
        return translate("The conversation was not summarised: {why}.", why=why)
    return translate(
        "The conversation so far is summarised for the model. You still see all of it."
    )
