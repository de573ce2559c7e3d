"""Find the skills and agents of a session, their hooks, and the errors in their files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from acp_agent.config.localization import Translator
from acp_agent.events import NoticeShown
from acp_agent.extensions.definitions.discovery import FoundDefinitions, find_definitions
from acp_agent.extensions.definitions.front_matter import field_line
from acp_agent.extensions.definitions.reading import Problem, group_problems
from acp_agent.extensions.definitions.types import AgentSpec, Skill
from acp_agent.hooks.settings_files import HookProblem, hooks_in
from acp_agent.hooks.types import Hook
from acp_agent.session.core import SessionCore
from acp_agent.session.known_providers import with_known_providers

MAX_PROBLEMS = 3  # problems that a notice lists


def find_session_definitions(core: SessionCore) -> FoundDefinitions:
    """Return the skills and agents of a session, without secrets. Blocks: reads the files."""
    services = core.services
    folders = services.definition_folders(core.cwd)
    loaded = with_known_providers(
        find_definitions(folders, services.config, services.trust().trusts),
        core.settings.model,
        services.models,
        services.config,
    )
    plugins = services.plugins.load(folders)
    messages = () if plugins is None else plugins.problems
    problems = [
        *loaded.problems,
        *(Problem(folders.plugins[0][0], message) for message in messages),
        *hook_problems(loaded.skills),
        *hook_problems(loaded.agents),
    ]
    # Clean only what is announced. Other texts are cleaned when they are used.
    clean = core.clean
    return FoundDefinitions(
        skills=tuple(
            replace(
                skill,
                description=clean(skill.description),
                hint=None if skill.hint is None else clean(skill.hint),
            )
            for skill in loaded.skills
        ),
        agents=tuple(replace(spec, description=clean(spec.description)) for spec in loaded.agents),
        problems=tuple(replace(problem, why=clean(problem.why)) for problem in problems),
        untrusted=loaded.untrusted,
    )


def definition_notice(problems: Sequence[Problem], translate: Translator) -> NoticeShown:
    """Return a notice of the problems; definitions that are left out come first."""
    ordered = sorted(group_problems(problems), key=lambda each: not each.skipped)
    lines = [f"{each.location}: {translate.rendered(each.why)}" for each in ordered[:MAX_PROBLEMS]]
    if len(ordered) > MAX_PROBLEMS:
        lines.append(translate("`acp-agent doctor` lists the others."))
    return NoticeShown(
        severity="warning",
        title="A skill or an agent is not used as it is written."
        if len(problems) == 1
        else f"{len(problems)} skills or agents are not used as they are written.",
        description="\n".join(lines),
    )


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
