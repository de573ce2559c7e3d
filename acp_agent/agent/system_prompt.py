"""Build the system prompt of a session."""

from __future__ import annotations

from importlib.resources import files

from acp_agent.events import SystemPromptGiven


def _text(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8").strip()


def own_prompt() -> str:
    """Return the prompt of the built-in agent, without the rules for all agents."""
    return _text("system.md")


def agent_prompt(own: str) -> str:
    """Return the prompt of an agent definition, followed by the rules for all agents."""
    return f"{own}\n\n{_text('system_rules.md')}"


def system_prompt(
    *,
    instructions: str,
    environment: str,
    memory: str = "",
    given: SystemPromptGiven | None = None,
    own: str | None = None,
) -> str:
    """Return the system prompt of a session; the same arguments give the same bytes.

    The parts that change least come first, so that sessions share a prefix in the provider's cache.

    Args:
        instructions: the text of instruction files, from the most general to the most specific.
        environment: the folders, the system, the state of the project.
        memory: the index of the notes of earlier sessions.
        own: the agent's prompt, used instead of the built-in one.
        given: the editor's prompt; it replaces the agent's prompt or is appended to it.
    """
    if given is not None and given.mode == "override":
        parts = [given.text]
    elif own is not None:
        parts = [own]
    else:
        parts = [f"{_text('system.md')}\n{_text('system_rules.md')}"]
    if instructions:
        parts.append(f"# Instructions of the user and the project\n\n{instructions}")
    if memory:
        parts.append(f"# Notes of earlier sessions (the tool memory reads them)\n\n{memory}")
    parts.append(f"# Environment at the start of the session\n\n{environment}")
    if given is not None and given.mode == "append":
        parts.append(f"# Instructions of the editor\n\n{given.text}")
    return "\n\n".join(parts)
