"""Find the skills and agents of a session, their hooks, and the errors in their files.

A project's definitions may name only model providers that the user chose.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from msgspec.structs import replace

from acp_agent.config.localization import Translator
from acp_agent.config.types import Config
from acp_agent.errors import AcpAgentError, ConfigError
from acp_agent.events import NoticeShown
from acp_agent.extensions.definitions.discovery import FoundDefinitions, find_definitions
from acp_agent.extensions.definitions.front_matter import field_line
from acp_agent.extensions.definitions.inputs import folder_variables
from acp_agent.extensions.definitions.reading import Problem, group_problems
from acp_agent.extensions.definitions.types import SMALL, AgentSpec, Skill
from acp_agent.hooks.settings_files import HookProblem, hooks_in
from acp_agent.hooks.types import Hook
from acp_agent.models.base import ModelInfo
from acp_agent.models.registry import Models
from acp_agent.models.roles import small_model
from acp_agent.session.core import SessionCore

MAX_PROBLEMS = 3  # problems that a notice lists
_MANIFESTS = (".claude-plugin/plugin.json", "plugin.json")
Definition = TypeVar("Definition", Skill, AgentSpec)


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


def definition_hooks(definition: Skill | AgentSpec) -> tuple[Hook, ...]:
    """Return the valid hooks of a skill or an agent.

    Only those of the user's own files may answer questions for the user.
    """
    hooks = (hook for hook in _read_hooks(definition) if isinstance(hook, Hook))
    variables = folder_variables(definition.path) if definition.hooks else {}
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


def with_known_providers(
    definitions: FoundDefinitions, session_model: ModelInfo, models: Models, config: Config
) -> FoundDefinitions:
    """Return the definitions without a project's models at providers that the user did not choose.

    The user chose the providers of the session's model and of the small model, and those that the
    user's configuration, skills and agents name. A project must not send text to others.
    """

    def provider(ref: str) -> str:
        try:
            return models.resolve(ref).provider
        except AcpAgentError:  # the model cannot be used
            return ""

    candidates: list[Skill | AgentSpec] = [*definitions.skills, *definitions.agents]
    tables = (*config.skills.values(), *config.agents.values())
    refs = [config.model, config.small_model, config.vision_model, *config.fallback_models]
    refs += [table.model for table in tables]
    refs += [definition.uses.model for definition in candidates if definition.source == "user"]
    allowed = {session_model.provider, small_model(models, config, session_model).provider}
    allowed |= {provider(ref) for ref in refs if ref is not None and ref != SMALL}
    allowed.discard("")
    problems: list[Problem] = []

    def restrict(definition: Definition, kind: str) -> Definition:
        model = definition.uses.model
        if (
            definition.source == "user"
            or model is None
            or model == SMALL
            or provider(model) in allowed
        ):
            return definition
        problem = _provider_error(model, f"{kind}.{definition.name}")
        problems.append(Problem(definition.path, str(problem), skipped=False))
        return replace(definition, uses=replace(definition.uses, model=None))

    return replace(
        definitions,
        skills=tuple(restrict(skill, "skills") for skill in definitions.skills),
        agents=tuple(restrict(agent, "agents") for agent in definitions.agents),
        problems=(*definitions.problems, *problems),
    )


def _provider_error(model: str, table: str) -> ConfigError:
    return ConfigError(
        f"model: {model} is at a provider that you have not chosen, so the session's model is "
        f"used; to allow it, name the model in your configuration, under [{table}]"
    )
