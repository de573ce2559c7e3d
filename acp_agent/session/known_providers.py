"""Restrict a project's skills and agents to model providers that the user chose."""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from acp_agent.config.types import Config
from acp_agent.errors import AcpAgentError, ConfigError
from acp_agent.extensions.definitions.discovery import FoundDefinitions
from acp_agent.extensions.definitions.reading import Problem
from acp_agent.extensions.definitions.types import SMALL, AgentSpec, Skill
from acp_agent.models.base import ModelInfo
from acp_agent.models.registry import Models
from acp_agent.models.roles import small_model

Definition = TypeVar("Definition", Skill, AgentSpec)


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
