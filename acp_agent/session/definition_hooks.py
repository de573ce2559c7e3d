"""Hooks in the front matter of skills and agents, which run while the skill or agent is in use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec.structs import replace

from acp_agent.extensions.definitions.front_matter import field_line
from acp_agent.extensions.definitions.reading import Problem
from acp_agent.extensions.definitions.types import AgentSpec, Skill
from acp_agent.hooks.settings_files import HookProblem, hooks_in
from acp_agent.hooks.types import Hook

_MANIFESTS = (".claude-plugin/plugin.json", "plugin.json")


def definition_hooks(definition: Skill | AgentSpec) -> tuple[Hook, ...]:
    """Return the valid hooks of a skill or an agent.

    Only those of the user's own files may answer questions for the user.
    """
    hooks = (hook for hook in _read_hooks(definition) if isinstance(hook, Hook))
    variables = _variables(definition.path) if definition.hooks else {}
    return tuple(replace(hook, variables=variables) for hook in hooks)


def hook_problems(definitions: Iterable[Skill | AgentSpec]) -> Iterator[Problem]:
    """Yield the errors in the hooks of skills and agents."""
    for definition in definitions:
        problems = [hook for hook in _read_hooks(definition) if isinstance(hook, HookProblem)]
        if problems:
            try:
                line = field_line(definition.path.read_text("utf-8-sig"), "hooks")
            except (OSError, UnicodeDecodeError):
                line = None
            for problem in problems:
                yield Problem(definition.path, problem.why, skipped=False, line=line)


def _read_hooks(definition: Skill | AgentSpec) -> Iterator[Hook | HookProblem]:
    if definition.hooks:
        is_own = definition.source == "user"
        yield from hooks_in(definition.hooks, str(definition.path), by_user=is_own)


def _variables(path: Path) -> dict[str, str]:
    """Return the variables of the environment that name the folders of a skill and its plugin."""
    folder = path.parent
    plugin = next(
        (
            parent
            for parent in (folder, *folder.parents[:3])
            if any((parent / name).is_file() for name in _MANIFESTS)
        ),
        folder,
    )
    return {"CLAUDE_SKILL_DIR": str(folder), "CLAUDE_PLUGIN_ROOT": str(plugin)}
