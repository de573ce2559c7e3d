"""The instructions that an editor gives to a session."""

from __future__ import annotations

from collections.abc import Sequence

from acp_agent.errors import InvalidInputError
from acp_agent.events import SystemPromptGiven
from acp_agent.workspace.scrub import scrub


def given_system_prompt(
    mode: str, texts: Sequence[str], *, secrets: Sequence[str]
) -> SystemPromptGiven:
    """The event that keeps instructions of an editor's.

    Args:
        mode: how they go together with the agent's own: `append` or `override`.
        texts: the text blocks, in order.
        secrets: values that must not be kept.

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
