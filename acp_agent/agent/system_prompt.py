"""The system prompt."""

from __future__ import annotations

from importlib.resources import files

from acp_agent.events import SystemPromptGiven


def _text(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8").strip()


def own_prompt() -> str:
    """Return the prompt of the program's own agent, without the rules for every agent."""
    return _text("system.md")


def agent_prompt(own: str) -> str:
    """Return an agent definition's own prompt, followed by the rules for every agent."""
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

    What changes least comes first, so that sessions share what a provider caches.

    Args:
        instructions: what instruction files say, from the most general to the most specific.
        environment: the folders, the system, the state of the project.
        memory: the index of the notes of earlier sessions.
        own: the agent's own prompt, in place of the program's.
        given: the editor's prompt; it overrides the agent's own prompt or is appended to it.
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
