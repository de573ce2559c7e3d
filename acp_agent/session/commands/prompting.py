"""Commands that send prompts to the model: `/skill:NAME`, `/flow:NAME` and `/loop`."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from acp_agent.agent.pending_messages import user_part
from acp_agent.config.localization import Translator
from acp_agent.content import ContentBlock, TextBlock
from acp_agent.errors import InvalidInputError
from acp_agent.events import AnyEvent, UserMessage
from acp_agent.extensions.definitions.inputs import (
    FILES,
    SkillInputs,
    fill_inputs,
    folder_variables,
    read_inputs,
)
from acp_agent.extensions.definitions.types import RunSettings
from acp_agent.models.base import UserText
from acp_agent.session.commands.command import COMMANDS, FoundCommand, command_line, is_command
from acp_agent.session.core import SessionCore
from acp_agent.session.extensions import FLOW_PREFIX, PREFIX, Definitions
from acp_agent.session.turns.plan import Repetition, RunOptions, run_options

if TYPE_CHECKING:
    from acp_agent.extensions.definitions.types import Skill

MAX_ROUNDS = 100
_RESUME = "resume"  # as a request, continues the last run of a flow
ASK_TOOL = "ask_user"  # from `acp_agent.tools.ask_user`, which is not imported here either
_MAX_QUESTIONS = 4  # questions in one call of it
_COMMAND_MARK = "!`"  # before a command whose output the model reads with the text
_COMMAND = re.compile(r"(?s)(?<![^\s])!`([^`\n]+)`|^```!\n(.+?)\n```", re.MULTILINE)
_COMMANDS_NOTE = (
    "Where a command in backticks follows an exclamation mark, read its output first; run it if "
    "you have no output of it."
)
_MAX_COMMANDS = 20  # commands of one skill that are run
SHELL_TOOL = "shell"  # from `acp_agent.tools.shell`, likewise
SKILL_TOOL = "skill"  # from `acp_agent.tools.skill`, which imports pydantic
FINISH_TOOL = "finish_loop"  # from `acp_agent.tools.finish_loop`, likewise


async def skill_command(
    core: SessionCore,
    definitions: Definitions,
    name: str,
    user_text: str,
    content: Sequence[ContentBlock] = (),
) -> FoundCommand:
    """Return the effect of `/skill:name`.

    The turn runs with the skill's options; if the skill needs its own run, the turn begins by
    starting an agent that follows it. If a turn is already running, the skill's text is added to it
    and the turn's options do not change.

    Args:
        content: the prompt that contains it. An agent does not see the rest of the conversation, so
            it gets the user's attachments.
    """
    translate = core.translate
    is_flow, name = name.startswith(FLOW_PREFIX), name.removeprefix(PREFIX)
    name = name.removeprefix(FLOW_PREFIX)
    await definitions.load()  # its file may be new
    skill = await definitions.find_skill(name)
    if skill is None or not skill.by_user or (is_flow and skill.flow is None):
        text = translate("Unknown skill {name!r}; /help lists the available ones.", name=name)
        if definitions.untrusted:
            text += " " + translate("Some files of this folder are not trusted: see /trust.")
        return FoundCommand.answering(core.clean(text))
    if is_flow and skill.flow is not None:
        flow_options = _options(core, skill)
        if isinstance(flow_options, FoundCommand):
            return flow_options
        return await _flow_command(
            core, skill, user_text, flow_options, skill_variables(core, skill)
        )
    try:
        inputs = await asyncio.to_thread(read_inputs, skill.inputs, user_text, core.cwd)
    except InvalidInputError as error:
        text = translate(
            "Invalid input for the skill {name}: {why}. Its inputs are: {inputs}",
            name=name,
            why=translate.rendered(str(error)),
            inputs=skill.hint or "",
        )
        return FoundCommand.answering(core.clean(text))
    if skill.runs_in_subagent:
        request = core.clean("\n\n".join([*filter(None, [user_text]), *_attached(content)]))
        arguments = msgspec.json.encode({"skill": skill.name, "request": request}).decode()
        return FoundCommand(
            ask=skill_text(core, skill, user_text, inputs), call=(SKILL_TOOL, arguments)
        )
    definitions.use(skill)
    text = skill_text(core, skill, user_text, inputs)
    question = _question(core, skill, inputs, content)
    filled, _ = _filled_text(core, skill, user_text, inputs.values)
    call = question or _commands_call(skill, filled)
    command = FoundCommand(ask=text, call=call, asks_with_call=call is not None)
    if skill.uses == RunSettings():
        return command
    options = _options(core, skill)
    if isinstance(options, FoundCommand):
        return options
    options = replace(options, skill=skill.name)
    if question is not None:  # a skill with few tools must still be able to ask
        options = replace(options, always=(ASK_TOOL,))
    return replace(command, options=options)


def _options(core: SessionCore, skill: Skill) -> RunOptions | FoundCommand:
    """Return the options of a skill's run, or an answer if it cannot be run."""
    settings, translate = core.settings, core.translate
    try:
        return run_options(
            skill.uses,
            main=settings.model,
            thought=settings.thought_level,
            services=core.services,
        )
    except InvalidInputError as error:
        why = translate.rendered(str(error))
        text = translate("The skill {name} cannot be used: {why}", name=skill.name, why=why)
        return FoundCommand.answering(core.clean(text))


def skill_variables(core: SessionCore, skill: Skill) -> dict[str, str]:
    """Return the values of placeholders in a skill's text, as other programs fill them in."""
    return {
        **folder_variables(skill.path),
        "CLAUDE_PROJECT_DIR": str(core.cwd),
        "CLAUDE_SESSION_ID": core.id,
        "CLAUDE_EFFORT": core.settings.thought_level or "",
    }


def _filled_text(
    core: SessionCore, skill: Skill, request: str, values: Mapping[str, str]
) -> tuple[str, bool]:
    variables = skill_variables(core, skill)
    return fill_inputs(skill.text.strip(), request.strip(), values, variables)


def skill_text(
    core: SessionCore, skill: Skill, request: str = "", inputs: SkillInputs | None = None
) -> str:
    """Return a skill's instructions, with the location of its files and its input.

    Args:
        inputs: its named inputs; None: only the request is known.
    """
    values = {} if inputs is None else inputs.values
    text, has_request = _filled_text(core, skill, request, values)
    folder = f" Paths in it are relative to {skill.path.parent}."
    lines = [f"Follow the skill {skill.name}.{'' if skill.source == 'bundled' else folder}"]
    lines += ["", text]
    if _COMMAND_MARK in text:
        lines += ["", _COMMANDS_NOTE]
    if not has_request:
        if values:
            lines += ["", "The input:", *(f"- {name}: {value}" for name, value in values.items())]
        further_text = request.strip() if inputs is None else inputs.remainder
        if further_text:
            lines += ["", f"Use it for this: {further_text}"]
    if inputs is not None and inputs.missing:
        names = ", ".join(missing_input.name for missing_input in inputs.missing)
        lines += ["", f"Not given yet: {names}. Ask the user where you cannot tell."]
    return "\n".join(lines)


def _commands_call(skill: Skill, text: str) -> tuple[str, str] | None:
    """Return a call that runs the commands in a skill's text, as !`command` or in a block.

    It is judged like any other call. None if there are none, or the skill may not run commands.
    """
    commands = [match[1] or match[2] for match in _COMMAND.finditer(text)]
    tools, without = skill.uses.tools, skill.uses.without
    if SHELL_TOOL in without or (tools is not None and SHELL_TOOL not in tools):
        return None
    lines = [
        line
        for command in commands[:_MAX_COMMANDS]
        for line in (f"echo {shlex.quote(f'$ {command.strip()}')}", command.strip())
    ]
    return (
        (SHELL_TOOL, msgspec.json.encode({"command": "\n".join(lines)}).decode()) if lines else None
    )


def _question(
    core: SessionCore, skill: Skill, inputs: SkillInputs, content: Sequence[ContentBlock]
) -> tuple[str, str] | None:
    """Return a call that asks for the missing inputs of a skill; None if none are missing."""
    attached = len(content) > 1  # such as a file
    missing = [
        missing_input
        for missing_input in inputs.missing
        if not (attached and missing_input.type.lower() in FILES)
    ]
    if not missing:
        return None
    translate = core.translate
    kinds = {"integer": "integer", "number": "number", "boolean": "yes_no"}
    questions = [
        {
            "question": translate(
                "The skill {skill} needs {name} ({what}).",
                skill=skill.name,
                name=missing_input.name,
                what=missing_input.description or missing_input.type or "text",
            ),
            "kind": kinds.get(missing_input.type.strip().lower(), "text"),
        }
        for missing_input in missing
    ]
    first, *further_questions = questions[:_MAX_QUESTIONS]
    further = {"further": further_questions} if further_questions else {}
    return ASK_TOOL, msgspec.json.encode({**first, **further}).decode()


def _attached(content: Sequence[ContentBlock]) -> list[str]:
    """Return the text of the blocks of a prompt other than the command."""
    command = next((block for block in content if is_command(block)), None)
    converted = [user_part(block) for block in content if block is not command]
    return [part.text for part in converted if isinstance(part, UserText) and part.text.strip()]


async def _flow_command(
    core: SessionCore,
    skill: Skill,
    arguments: str,
    options: RunOptions,
    variables: Mapping[str, str],
) -> FoundCommand:
    """Return the effect of `/flow:name`.

    Args:
        skill: a skill with a flow.
        variables: the values of placeholders such as `${CLAUDE_SKILL_DIR}`.
    """
    from acp_agent.session.turns.flow import FlowRun, stopped_at  # noqa: PLC0415 - for flows only

    flow = skill.flow
    assert flow is not None
    request, history = arguments.strip(), list[AnyEvent]()
    if resumes := request == _RESUME:
        history = list(await core.history())
        request = _last_request(skill.name, history)
    filled, has_request = {}, False
    for id_, node in flow.nodes.items():
        text, uses_request = fill_inputs(node.text, request, {}, variables)
        filled[id_] = replace(node, text=core.clean(text))
        has_request = has_request or uses_request
    flow = replace(flow, nodes=filled, notes=core.clean(flow.notes))
    resumed = stopped_at(flow, history)
    if resumes and resumed is None:
        return FoundCommand.answering(
            core.translate(
                "There is no stopped run of the flow {name} in this session.", name=skill.name
            )
        )
    further_text = "" if has_request else core.clean(request)
    run = FlowRun(skill.name, flow, request=further_text, resumed=resumed)
    # The plan shows the flow.
    uses = replace(options.uses, without=(*options.uses.without, "todo"))
    return FoundCommand(ask=run.first_note, flow=run, options=replace(options, uses=uses))


def _last_request(name: str, history: Sequence[AnyEvent]) -> str:
    """Return the user's text for the last run of a flow."""
    lines = (
        command_line(event.content) for event in reversed(history) if isinstance(event, UserMessage)
    )
    requests = (line[1].strip() for line in lines if line and line[0] == FLOW_PREFIX + name)
    return next((request for request in requests if request != _RESUME), "")


async def loop_command(
    translate: Translator,
    arguments: str,
    find: Callable[[Sequence[ContentBlock]], Awaitable[FoundCommand | None]],
) -> FoundCommand:
    """Return the effect of `/loop`."""
    parsed = parse_loop(arguments)
    if parsed is None:
        return FoundCommand.answering(
            translate(
                "Usage: `/loop N prompt`, where N is a number from 1 to {most}.", most=MAX_ROUNDS
            )
        )
    rounds, prompt = parsed
    content = (TextBlock(text=prompt),)
    line = command_line(content)
    if line is not None and line[0] == "loop":
        return _not_repeatable("loop", translate)
    repeated = await find(content)
    if repeated is None:
        return _repeat(Repetition(prompt, rounds))
    if repeated.call is not None and not repeated.asks_with_call:
        return _repeat(Repetition(prompt, rounds, call=repeated.call))
    if repeated.ask is not None:
        return _repeat(Repetition(prompt, rounds, ask=repeated.ask), repeated)
    if line is not None and any(command.name == line[0] for command in COMMANDS):
        return _not_repeatable(line[0], translate)
    return repeated  # its answer says why nothing can be repeated


def parse_loop(arguments: str) -> tuple[int, str] | None:
    """Return the number of rounds and the prompt; None if one of them is missing or invalid."""
    count, *prompt = arguments.split(maxsplit=1) or [""]
    if not (count.isascii() and count.isdigit() and len(count) <= len(str(MAX_ROUNDS))):
        return None
    if not 1 <= int(count) <= MAX_ROUNDS or not prompt:
        return None
    return int(count), prompt[0].strip()


def _repeat(repetition: Repetition, command: FoundCommand | None = None) -> FoundCommand:
    options = None if command is None else command.options
    if options is not None:  # a skill with few tools must still be able to end the loop
        options = replace(options, always=(FINISH_TOOL,))
    return FoundCommand(ask=repetition.first_note, repetition=repetition, options=options)


def _not_repeatable(name: str, translate: Translator) -> FoundCommand:
    return FoundCommand.answering(
        translate(
            "`/{name}` cannot be repeated. A loop can repeat a prompt, a skill, or a prompt of "
            "an MCP server.",
            name=name,
        )
    )
