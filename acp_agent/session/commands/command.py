"""Slash commands: the list for the client, and finding a command in a prompt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeGuard

from msgspec import Struct

from acp_agent.config.localization import ENGLISH, Translator
from acp_agent.content import ContentBlock, TextBlock

if TYPE_CHECKING:
    from acp_agent.session.turns.flow import FlowRun
    from acp_agent.session.turns.plan import Action, Repetition, RunOptions

_ANSWERED_AT_ONCE = {
    "help", "status", "jobs", "mode", "model", "agent", "agents", "budget", "hooks", "mcp",
    "memory",
}  # fmt: skip


class Command(Struct, frozen=True, kw_only=True):
    """A command as the editor shows it; `hint` describes its arguments."""

    name: str
    description: str
    hint: str | None = None


class FoundCommand(Struct, frozen=True, kw_only=True):
    """A command found in a prompt, which the agent answers itself or passes to the model.

    Attributes:
        ask: text for the model in addition to the user's words.
        action: runs in a separate turn instead of a request to the model.
        compaction: the user's text on what matters. If a turn is running, its next request compacts
            the conversation first.
        refusal: the reason why the command cannot run during a turn.
        repetition: repeats the prompt in a separate turn.
        flow: runs the steps of a flow in a separate turn.
        call: a call that such a turn makes first, as if the model had made it: the tool's name and
            its arguments as JSON. If a turn is running, the model is asked instead.
        asks_with_call: whether to send `ask` in addition to the call.
    """

    answer: Callable[[], Awaitable[str]] | None = None
    ask: str | None = None
    action: Action | None = None
    compaction: str | None = None
    refusal: str = ""
    repetition: Repetition | None = None
    flow: FlowRun | None = None
    options: RunOptions | None = None
    call: tuple[str, str] | None = None
    asks_with_call: bool = False

    @classmethod
    def answering(cls, text: str) -> FoundCommand:
        """Return a command whose answer is a text."""

        async def answer() -> str:
            return text

        return cls(answer=answer)


COMMANDS = (
    Command(name="help", description="List the commands"),
    Command(name="status", description="Show the model, the mode and the session's cost"),
    Command(name="jobs", description="List background commands"),
    Command(name="mode", description="Show or switch the mode", hint="ask | accept-edits | …"),
    Command(name="model", description="Show or switch the model", hint="provider/name"),
    Command(name="agent", description="Show or switch the agent of this session", hint="name"),
    Command(
        name="agents",
        description="List agents and their tasks; start, message or stop one",
        hint="start NAME TASK | message N TEXT | stop N",
    ),
    Command(
        name="compact",
        description="Summarise the conversation to free space",
        hint="what matters",
    ),
    Command(
        name="budget",
        description="Show or change budgets",
        hint="turn | session | day  $2 | 500k | none",
    ),
    Command(
        name="rewind",
        description="Restore an earlier state of the conversation and the files",
        hint="N [files | conversation | both] [--force]",
    ),
    Command(
        name="loop",
        description="Repeat a prompt until the model reports that it is done",
        hint="N prompt",
    ),
    Command(
        name="mcp",
        description="Show MCP servers and their tools; enable, disable or restart one",
        hint="NAME | enable NAME | disable NAME | restart NAME",
    ),
    Command(name="hooks", description="List the hooks of this session and their files"),
    Command(name="skills", description="List the skills of this session and their files"),
    Command(name="trust", description="Decide which files of this folder to trust"),
    Command(
        name="memory",
        description="List, show or delete notes of earlier sessions",
        hint="[show | delete] NAME",
    ),
    Command(name="agent-new", description="Write a new agent", hint="its purpose"),
    Command(name="skill-new", description="Write a new skill", hint="its purpose"),
    Command(name="init", description="Write an AGENTS.md for this project", hint="what matters"),
)


def commands_in(translate: Translator) -> Sequence[Command]:
    """Return the commands in the user's language."""
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
    """Return whether the agent itself answers this prompt, even while a turn runs."""
    line = command_line(content)
    return (
        line is not None
        and line[0] in _ANSWERED_AT_ONCE
        and not (line[0] == "agents" and line[1].startswith("start"))
    )


def command_line(content: Sequence[ContentBlock]) -> tuple[str, str] | None:
    """Return the name of the command in any block of a prompt, and the text after it."""
    for block in content:
        if is_command(block):
            name, *arguments = block.text.split(maxsplit=1)
            return name.removeprefix("/"), "".join(arguments).rstrip()
    return None


def is_command(block: ContentBlock) -> TypeGuard[TextBlock]:
    """Return whether a block of a prompt begins like a command."""
    return isinstance(block, TextBlock) and block.text.lstrip().startswith("/")
