"""`/loop N prompt`: what the user wants repeated, which may be a skill or a prompt of a server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from acp_agent.config.localization import Translator
from acp_agent.content import ContentBlock, TextBlock
from acp_agent.session.commands import COMMANDS, FoundCommand, command_line
from acp_agent.session.repetition import Repetition

if TYPE_CHECKING:
    from acp_agent.session.session import Session

MAX_ROUNDS = 100
FINISH_TOOL = "finish_loop"  # `acp_agent.tools.finish_loop`, which brings pydantic

Find = Callable[[Sequence[ContentBlock]], Awaitable[FoundCommand | None]]


async def loop_command(rest: str, find: Find) -> FoundCommand:
    """What `/loop` does.

    Args:
        rest: what follows it.
        find: finds the command that is to be repeated, where it is one.
    """
    parsed = parse_loop(rest)
    if parsed is None:
        return FoundCommand(answer=usage)
    rounds, prompt = parsed
    said = (TextBlock(text=prompt),)
    line = command_line(said)
    if line is not None and line[0] == "loop":
        return _not_repeated("loop")
    found = await find(said)
    if found is None:
        return _repeated(Repetition(prompt, rounds))
    if found.call is not None:
        return _repeated(Repetition(prompt, rounds, call=found.call))
    if found.ask is not None:
        return _repeated(Repetition(prompt, rounds, ask=found.ask), found)
    if line is not None and any(command.name == line[0] for command in COMMANDS):
        return _not_repeated(line[0])
    return found  # it says why there is nothing to repeat


def parse_loop(rest: str) -> tuple[int, str] | None:
    """The rounds and the prompt; None where there is no number of rounds, or nothing to do."""
    count, *prompt = rest.split(maxsplit=1) or [""]
    if not (count.isascii() and count.isdigit() and len(count) <= len(str(MAX_ROUNDS))):
        return None
    if not 1 <= int(count) <= MAX_ROUNDS or not prompt:
        return None
    return int(count), prompt[0].strip()


async def usage(session: Session) -> str:
    """What the user is told where nothing can be repeated."""
    return session.services.translate(
        "Say how often, and what: `/loop N prompt`, where N is a number from 1 to {most}.",
        most=MAX_ROUNDS,
    )


def turn_runs(translate: Translator) -> str:
    """What the user is told where a turn runs already."""
    return translate(
        "A loop begins a turn of its own; say it again when the turn that runs has ended."
    )


def _repeated(repetition: Repetition, found: FoundCommand | None = None) -> FoundCommand:
    chosen = None if found is None else found.chosen
    if chosen is not None:  # a skill that has few tools has to come to an end, too
        chosen = replace(chosen, always=(FINISH_TOOL,))
    return FoundCommand(ask=repetition.told, repetition=repetition, chosen=chosen)


def _not_repeated(name: str) -> FoundCommand:
    async def answer(session: Session) -> str:
        return session.services.translate(
            "`/{name}` cannot be repeated. A loop repeats what you say to the model, a skill, or a "
            "prompt of an MCP server.",
            name=name,
        )

    return FoundCommand(answer=answer)
