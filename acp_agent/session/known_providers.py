"""Restrict a project's skills and agents to model providers that the user chose."""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from acp_agent.config.types import Config
from acp_agent.errors import AcpAgentError, ConfigError
from acp_agent.extensions.definitions.discovery import Found
from acp_agent.extensions.definitions.reading import Problem
from acp_agent.extensions.definitions.types import SMALL, AgentSpec, Skill
from acp_agent.models.base import ModelInfo
from acp_agent.models.registry import Models
from acp_agent.models.roles import small_model

Definition = TypeVar("Definition", Skill, AgentSpec)


def with_known_providers(found: Found, main: ModelInfo, models: Models, config: Config) -> Found:
    """Return the definitions without a project's models at providers that the user did not choose.

    The user chose the providers of the session's model and of the small model, and those that the
    user's configuration, skills and agents name. A project must not send text to others.

    Args:
        found: the skills and agents.
        main: the session's model.
        models: the available models.
        config: the user's configuration.
    """

    def provider(ref: str) -> str:
        try:
            return models.resolve(ref).provider
        except AcpAgentError:  # the model cannot be used
            return ""

    every: list[Skill | AgentSpec] = [*found.skills, *found.agents]
    tables = (*config.skills.values(), *config.agents.values())
    refs = [config.model, config.small_model, config.vision_model, *config.fallback_models]
    refs += [table.model for table in tables]
    refs += [one.uses.model for one in every if one.source == "user"]
    known = {main.provider, small_model(models, config, main).provider}
    known |= {provider(ref) for ref in refs if ref is not None and ref != SMALL}
    known.discard("")
    problems: list[Problem] = []

    def checked(one: Definition, kind: str) -> Definition:
        model = one.uses.model
        if one.source == "user" or model is None or model == SMALL or provider(model) in known:
            return one
        problem = _elsewhere(model, f"{kind}.{one.name}")
        problems.append(Problem(one.path, str(problem), left_out=False))
        return replace(one, uses=replace(one.uses, model=None))

    return replace(
        found,
        skills=tuple(checked(one, "skills") for one in found.skills),
        agents=tuple(checked(one, "agents") for one in found.agents),
        problems=(*found.problems, *problems),
    )


def _elsewhere(model: str, table: str) -> ConfigError:
    return ConfigError(
        f"model: {model} is at a provider that you have not chosen, so the session's model is "
        f"used; to allow it, name the model in your configuration, under [{table}]"
    )
