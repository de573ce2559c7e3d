"""Build the system prompt of a session."""

from __future__ import annotations

from importlib.resources import files

from acp_agent.events import SystemPromptGiven


def _text(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8").strip()


def built_in_prompt() -> str:
    """Return the prompt of the built-in agent, without the rules for all agents."""
    return _text("system.md")


def agent_prompt(prompt: str) -> str:
    """Return the prompt of an agent definition, followed by the rules for all agents."""
    return f"{prompt}\n\n{_text('system_rules.md')}"


def system_prompt(
    *,
    instructions: str,
    environment: str,
    memory: str = "",
    client_prompt: SystemPromptGiven | None = None,
    agent_prompt: str | None = None,
) -> str:
    """Return the system prompt of a session; the same arguments give the same bytes.

    The parts that change least come first, so that sessions share a prefix in the provider's cache.

    Args:
        instructions: the text of instruction files, from the most general to the most specific.
        environment: the folders, the system, the state of the project.
        memory: the index of the notes of earlier sessions.
        agent_prompt: the agent's prompt, used instead of the built-in one.
        client_prompt: the editor's prompt; it replaces the agent's prompt or is appended to it.
    """
    if client_prompt is not None and client_prompt.mode == "override":
        sections = [client_prompt.text]
    elif agent_prompt is not None:
        sections = [agent_prompt]
    else:
        sections = [f"{_text('system.md')}\n{_text('system_rules.md')}"]
    if instructions:
        sections.append(f"# Instructions of the user and the project\n\n{instructions}")
    if memory:
        sections.append(f"# Notes of earlier sessions (the tool memory reads them)\n\n{memory}")
    sections.append(f"# Environment at the start of the session\n\n{environment}")
    if client_prompt is not None and client_prompt.mode == "append":
        sections.append(f"# Instructions of the editor\n\n{client_prompt.text}")
    return "\n\n".join(sections)
