"""Slash commands: what `/name rest` in a prompt does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeGuard

from msgspec import Struct

from acp_agent.config.localization import ENGLISH, Translator
from acp_agent.content import ContentBlock, TextBlock
from acp_agent.errors import InvalidInputError, ToolError

if TYPE_CHECKING:
    from acp_agent.session.children.assignment import Work
    from acp_agent.session.chosen import Chosen
    from acp_agent.session.mcp.catalog import ServerPrompt
    from acp_agent.session.repetition import Repetition
    from acp_agent.session.session import Session
    from acp_agent.session.turn_host import SessionHost

_SHOWN_COMMAND = 120  # characters of a command that runs in the background
_CANCEL_POLL = 0.05  # seconds between two looks whether a prompt was cancelled


class Command(Struct, frozen=True, kw_only=True):
    """A command as the editor offers it; `hint` says what may follow its name."""

    name: str
    description: str
    hint: str | None = None


class FoundCommand(Struct, frozen=True, kw_only=True):
    """A command in a prompt: one that the agent answers by itself, or asks the model to do.

    `work` takes a turn of its own; where a turn runs already, that turn is told the `wish`, or the
    user is told the `answer` or `refusal`. `chosen` is what a turn is to be run with that begins
    with it, and `call` a call that such a turn makes first, as if the model had made it: the tool's
    name, and its arguments as JSON. Where a turn runs already the model is asked instead.
    """

    answer: Callable[[Session], Awaitable[str]] | None = None
    ask: str | None = None
    work: Work | None = None
    wish: str = ""
    repetition: Repetition | None = None
    refusal: str = ""
    chosen: Chosen | None = None
    call: tuple[str, str] | None = None

    @property
    def is_wish(self) -> bool:
        """Whether a turn that runs is told the wish."""
        return self.work is not None and self.answer is None and not self.refusal


COMMANDS = (
    Command(name="help", description="List the commands"),
    Command(name="status", description="Show the model, the mode and what the session cost"),
    Command(name="jobs", description="List the commands that run in the background"),
    Command(name="mode", description="Show or switch the mode", hint="ask | accept-edits | …"),
    Command(name="model", description="Show or switch the model", hint="provider/name"),
    Command(
        name="compact", description="Sum the conversation up, to make room", hint="what matters"
    ),
    Command(
        name="budget",
        description="Show or change what may be spent",
        hint="turn | session | day  $2 | 500k | none",
    ),
    Command(
        name="rewind",
        description="Go back to how the conversation and the files were",
        hint="N [files | conversation | both] [--force]",
    ),
    Command(
        name="loop",
        description="Repeat a prompt until the model says that it is done",
        hint="N prompt",
    ),
    Command(name="init", description="Write an AGENTS.md for this project", hint="what matters"),
)


_AT_ONCE = {"help", "status", "jobs", "mode", "model", "budget"}


def commands_in(translate: Translator) -> Sequence[Command]:
    """The commands in the user's language."""
    if translate is ENGLISH:
        return COMMANDS
    return [
        Command(
            name=command.name,
            description=translate(command.description),
            hint=None if command.hint is None else translate(command.hint),
        )
        for command in COMMANDS
    ]


def is_answered_at_once(content: Sequence[ContentBlock]) -> bool:
    """Whether a prompt is a command that the agent answers by itself, in a turn too."""
    line = command_line(content)
    return line is not None and line[0] in _AT_ONCE


def command_line(content: Sequence[ContentBlock]) -> tuple[str, str] | None:
    """The name of the command in a prompt, whichever block carries it, and what follows it."""
    for block in content:
        if is_command(block):
            name, *rest = block.text.split(maxsplit=1)
            return name.removeprefix("/"), "".join(rest).rstrip()
    return None


def is_command(block: ContentBlock) -> TypeGuard[TextBlock]:
    """Whether a block of a prompt begins as a command does."""
    return isinstance(block, TextBlock) and block.text.lstrip().startswith("/")


async def find_command(
    content: Sequence[ContentBlock],
    prompts: Sequence[ServerPrompt] = (),
    cancelled: Callable[[], bool] = lambda: False,
    skills: Callable[[str, str], Awaitable[FoundCommand | None]] | None = None,
) -> FoundCommand | None:
    """The command in a prompt; None where there is none we know.

    A prompt of an MCP server is fetched; where that fails, the answer says why. It is given up when
    the user's own prompt is cancelled meanwhile.

    Args:
        content: the prompt.
        prompts: those of MCP servers.
        cancelled: whether the user's own prompt is.
        skills: finds the skill that a command's name and rest use; None: there are none.
    """
    line = command_line(content)
    if line is None:
        return None
    name, rest = line
    for prompt in prompts:
        if prompt.command.name == name:
            return await _fetched(prompt, rest, cancelled)
    found = None if skills is None else await skills(name, rest)
    if found is None and name == "loop":
        from acp_agent.session.loop_command import loop_command  # noqa: PLC0415 - rarely needed

        return await loop_command(rest, lambda said: find_command(said, prompts, cancelled, skills))
    return found or _command(name, rest)


async def _fetched(prompt: ServerPrompt, rest: str, cancelled: Callable[[], bool]) -> FoundCommand:
    fetching = asyncio.create_task(prompt.fetch(rest))
    try:
        while not fetching.done():
            await asyncio.wait([fetching], timeout=_CANCEL_POLL)
            if cancelled():
                fetching.cancel()
                break
        return FoundCommand(ask=await fetching)
    except asyncio.CancelledError:
        if not cancelled():
            raise
        why = None
    except ToolError as error:
        why = str(error)
    finally:
        fetching.cancel()

    async def answer(session: Session) -> str:
        translate = session.services.translate
        told = translate("it was cancelled") if why is None else why
        return session.clean(translate("The prompt could not be used: {why}.", why=told))

    return FoundCommand(answer=answer)


def _command(name: str, rest: str) -> FoundCommand | None:
    match name:
        case "help":
            return FoundCommand(answer=_help)
        case "status":
            return FoundCommand(answer=_status)
        case "jobs":
            return FoundCommand(answer=_jobs)
        case "mode" | "model":
            return FoundCommand(answer=lambda session: _option(session, name, rest))
        case "budget":
            from acp_agent.session.budget_command import budget_command  # noqa: PLC0415 - rare

            return FoundCommand(answer=lambda session: budget_command(session, rest))
        case "compact":
            return FoundCommand(work=lambda host: _compact(host, rest), wish=rest)
        case "rewind":
            return _rewind(rest)
        case "init":
            from importlib.resources import files  # noqa: PLC0415 - 8 ms that only this needs

            ask = (files(__package__) / "init.md").read_text("utf-8").strip()
            return FoundCommand(ask=f"{ask}\n\nThe user adds: {rest}" if rest else ask)
        case _:
            return None


async def _help(session: Session) -> str:
    from acp_agent.tools.quoting import code_span, escape_markdown  # noqa: PLC0415 - not at start

    await session.extensions.definitions.look()  # a skill may have been written just now
    # A project's skills and servers' prompts say what they want of themselves.
    return "\n".join(
        f"- {code_span(' '.join(filter(None, [f'/{one.name}', one.hint])))}: "
        f"{escape_markdown(one.description)}"
        for one in session.commands
    )


async def _status(session: Session) -> str:
    from acp_agent.config.amounts import dollars  # noqa: PLC0415 - not at start

    translate = session.services.translate
    options = ", ".join(
        f"{option.name.lower()} {option.current}" for option in session.settings.options()
    )
    cost = translate("unknown") if session.state.cost is None else dollars(session.state.cost)
    lines = [
        translate(
            "- Session `{session}` in `{folder}`", session=session.session, folder=session.cwd
        ),
        translate("- Now: {options}", options=options),
        translate("- Messages to the model so far: {count}", count=len(session.context.messages)),
        translate("- Cost so far: {cost}", cost=cost),
    ]
    if session.queue.waiting:
        lines.append(translate("- Prompts that wait: {count}", count=session.queue.waiting))
    return "\n".join(lines)


async def _jobs(session: Session) -> str:
    from acp_agent.tools.quoting import code_span, first_line  # noqa: PLC0415 - not at start

    translate = session.services.translate
    lines: list[str] = []
    for command in session.workbench.background or ():
        seconds = f"{command.seconds:.0f}"
        how = (
            translate("running for {seconds} s", seconds=seconds)
            if command.runs
            else translate("ended after {seconds} s", seconds=seconds)
        )
        lines.append(
            f"- {command.name}: {code_span(first_line(command.command, _SHOWN_COMMAND))}, {how}"
        )
    return session.clean("\n".join(lines)) or translate("There are no background commands.")


async def _compact(host: SessionHost, focus: str) -> str:
    from acp_agent.agent.room import compact_now  # noqa: PLC0415 - brings what only prompts need

    translate = host.translate
    async with host.turn_slot():
        why = await compact_now(host, host.model, focus)
        await host.warn_of_budget()
    if why is not None:
        why = translate.rendered(why).rstrip(".。")
        return translate("The conversation was not summed up: {why}.", why=why)
    return translate("The conversation so far is summed up for the model. You still see all of it.")


def _rewind(rest: str) -> FoundCommand:
    from acp_agent.session import rewind_command  # noqa: PLC0415 - rarely needed

    if not rest.strip():
        return FoundCommand(
            work=rewind_command.picked, answer=lambda session: rewind_command.told(session, rest)
        )
    if not rewind_command.goes(rest):
        return FoundCommand(answer=lambda session: rewind_command.told(session, rest))
    return FoundCommand(
        work=lambda host: rewind_command.gone(host, rest), refusal=rewind_command.TURN_RUNS
    )


async def _option(session: Session, name: str, value: str) -> str:
    if value:
        try:
            await session.set_option(name, value)
        except InvalidInputError as error:
            return session.services.translate.rendered(str(error))
    option = next(option for option in session.settings.options() if option.id == name)
    mark = session.services.translate("(current)")
    values = "\n".join(
        f"- `{known.id}`{' ' + mark if known.id == option.current else ''}"
        for known in option.values
    )
    return f"{option.name}:\n{values}"
