"""What `acp-agent doctor` says of skills and agents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from acp_agent.cli.definitions import places_of, problem_line
from acp_agent.cli.doctor_checks import Finding
from acp_agent.cli.words import told, words
from acp_agent.config.load import load_config, placed
from acp_agent.config.paths import Paths
from acp_agent.config.secrets import Secrets
from acp_agent.config.types import Config
from acp_agent.errors import AcpAgentError, ConfigError
from acp_agent.extensions.definitions.discovery import Found, find_definitions
from acp_agent.extensions.definitions.locations import any_there
from acp_agent.extensions.definitions.types import SMALL, AgentSpec, Skill
from acp_agent.session.definitions import with_known_providers

if TYPE_CHECKING:  # most have no model of their own
    from acp_agent.models.base import ModelInfo
    from acp_agent.models.registry import Models


async def check_definitions(paths: Paths, environ: Mapping[str, str], cwd: Path) -> list[Finding]:
    """What is wrong with the skills and agents that a session in `cwd` would have.

    Without any there is nothing to say.
    """
    places = places_of(cwd)
    if not any_there(places):
        return []
    try:
        config = load_config(paths.config_file, environ)
    except ConfigError:
        config = Config()  # what is wrong with it is told elsewhere
    found = find_definitions(places, config)
    counts = words(
        "skills: {skills}, agents: {agents}", skills=len(found.skills), agents=len(found.agents)
    )
    findings = [Finding("ok", counts)]
    for problem in found.problems:
        state: Literal["broken", "missing"] = "broken" if problem.left_out else "missing"
        findings.append(Finding(state, problem_line(problem)))
    return [*findings, *(await _models(found, paths, environ, config))]


async def _models(
    found: Found, paths: Paths, environ: Mapping[str, str], config: Config
) -> list[Finding]:
    """Which of the models cannot be used, or are not, that skills and agents name."""
    if not _named(found):
        return []
    from acp_agent.models.registry import Models  # noqa: PLC0415 - most have no model of their own

    findings = []
    try:
        with placed(paths.config_file):
            models = Models(config, Secrets(paths.secrets_file, environ), environ)
    except AcpAgentError as error:
        return [Finding("broken", told(str(error)))]
    try:
        main = _main(models, config)
        if main is not None:
            used = with_known_providers(found, main, models, config)
            problems = used.problems[len(found.problems) :]
            findings += [Finding("missing", problem_line(problem)) for problem in problems]
            found = used
        for one in _named(found):
            model = str(one.uses.model)
            try:
                models.require(models.resolve(model))
            except AcpAgentError as error:
                why = told(f"its model {model} cannot be used: {error}")
                findings.append(Finding("missing", f"{one.path}: {why}"))
    finally:
        await models.aclose()
    return findings


def _main(models: Models, config: Config) -> ModelInfo | None:
    """The model that a session would have; None where none can be told."""
    if config.model is None:
        return next(iter(models.available()), None)
    try:
        return models.resolve(config.model)
    except AcpAgentError:
        return None


def _named(found: Found) -> list[Skill | AgentSpec]:
    """Those that name a model."""
    every: list[Skill | AgentSpec] = [*found.skills, *found.agents]
    return [one for one in every if one.uses.model not in {None, SMALL}]
