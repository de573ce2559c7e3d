"""Write the system prompt of a session, with the instructions that a client gives."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from acp_agent.agent.resources import Journal
from acp_agent.content import escaped
from acp_agent.errors import InvalidInputError
from acp_agent.events import NoticeShown, SystemPromptGiven, SystemPromptWritten
from acp_agent.session.core import SessionCore
from acp_agent.workspace.scrub import scrub

if TYPE_CHECKING:  # first needed when a prompt runs
    from acp_agent.session.turns.environment import EnvironmentGatherer
    from acp_agent.workspace.instructions.files import Instructions

_MAX_FILES = 10  # files that a notice lists


def client_prompt_event(
    mode: str, texts: Sequence[str], *, secrets: Sequence[str]
) -> SystemPromptGiven:
    """Return the event that records a client's instructions.

    Args:
        mode: `append` to the agent's system prompt or `override` it.
        texts: the text blocks, in order.
        secrets: values that must not be stored.

    Raises:
        InvalidInputError: there is no such mode, or there are no instructions.
    """
    text = scrub("\n\n".join(texts).strip(), secrets)
    if not text:
        raise InvalidInputError(
            "systemPrompt.content: it is empty; give instructions, or leave systemPrompt out",
            field="systemPrompt.content",
        )
    match mode:
        case "append" | "override":
            return SystemPromptGiven(mode=mode, text=text)
        case _:
            raise InvalidInputError(
                f"systemPrompt.mode: there is no mode {mode!r}; the modes are append, override",
                field="systemPrompt.mode",
            )


async def find_instructions(core: SessionCore) -> Instructions:
    """Return the instructions for the system prompt of a session."""
    from acp_agent.workspace.instructions.files import read_instructions  # noqa: PLC0415 - for prompts only

    services = core.services
    user_file = services.user_folder / "AGENTS.md"
    return await asyncio.to_thread(read_instructions, core.cwd, user_file, services.trust().trusts)


async def write_system_prompt(
    core: SessionCore,
    journal: Journal,
    client_prompt: SystemPromptGiven | None,
    environment: EnvironmentGatherer,
    agent_prompt: str | None = None,
) -> None:
    """Write the system prompt to the journal; `client_prompt` replaces or follows the agent's own.

    Args:
        core: the session, whose folders the system prompt names.
        journal: the journal of the session, or of a child session.
        environment: gathers the description of the environment.
        agent_prompt: the system prompt of the agent; None for the built-in agent's.
    """
    from acp_agent.agent.system_prompt import system_prompt  # noqa: PLC0415 - for prompts only

    instructions = await find_instructions(core)
    from acp_agent.session.memory import memory_index  # noqa: PLC0415 - for prompts only

    text = system_prompt(
        instructions=escaped(scrub(instructions.text, core.secrets)),
        environment=await environment.text(),
        memory=await memory_index(core),
        client_prompt=client_prompt,
        agent_prompt=agent_prompt,
    )
    await journal.emit(SystemPromptWritten(text=text))
    if instructions.refused:
        some = instructions.refused[:_MAX_FILES]
        lines = [f"{path}: {core.translate.rendered(why)}" for path, why in some]
        title = "An instruction file is not used."
        notice = NoticeShown(severity="warning", title=title, description="\n".join(lines))
        await core.notify(notice)  # not journaled: it concerns the current files
