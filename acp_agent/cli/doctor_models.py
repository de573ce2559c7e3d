"""The checks of `acp-agent doctor` for providers and for the model of new sessions."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from acp_agent.acp_client.programs import find_command
from acp_agent.cli.definitions import problem_line, untrusted_line
from acp_agent.cli.doctor_checks import Finding
from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.user_config import UserConfig
from acp_agent.config.load import locate_errors, read_text
from acp_agent.config.problems import Key, Problem
from acp_agent.config.toml_errors import find_lines
from acp_agent.config.types import Config
from acp_agent.errors import AcpAgentError, ModelError
from acp_agent.extensions.definitions.discovery import FoundDefinitions, find_definitions
from acp_agent.extensions.definitions.locations import any_folder_exists
from acp_agent.extensions.definitions.reading import group_problems
from acp_agent.extensions.definitions.types import SMALL, AgentSpec, Skill
from acp_agent.session.definition_search import with_known_providers

if TYPE_CHECKING:
    from acp_agent.models.base import ModelInfo
    from acp_agent.models.registry import Models


PROVIDER_SECONDS = 5.0
KeyPath = tuple[Key, ...]


def check_providers(setup: UserConfig, *, offline: bool) -> list[Finding]:
    """Check which providers have a key, where it comes from, and whether they respond."""
    from acp_agent.cli.models import unlisted_providers  # noqa: PLC0415 - only for this part
    from acp_agent.models.key_command import key_from_command  # noqa: PLC0415 - likewise
    from acp_agent.models.provider_check import check_provider  # noqa: PLC0415 - likewise
    from acp_agent.models.providers import Provider, load_providers  # noqa: PLC0415 - likewise

    try:
        with locate_errors(setup.paths.config_file):
            loaded = load_providers(setup.config, setup.secrets, setup.environ)
        providers = [p for p in loaded.values() if p.api != "demo" and p.usable]
        origins = {p.id: setup.secrets.origin(p.id, p.key_env) for p in providers}
    except AcpAgentError as error:
        return [Finding("broken", translate_rendered(str(error)))]

    def ask(provider: Provider) -> Finding:
        origin = origins[provider.id]
        key_text = (
            translate("key from {place}", place=origin.name)
            if origin
            else translate("needs no key")
        )
        if provider.key_command:
            key_text = translate("key from its key_command")
        text = translate(
            "{name}: {address}, {key}", name=provider.id, address=provider.address, key=key_text
        )
        if offline:
            return Finding("info", text)
        try:
            provider = key_from_command(provider)
        except ModelError as error:
            return Finding("broken", _append(text, translate_rendered(str(error))))
        answer = check_provider(provider, provider.key, timeout=PROVIDER_SECONDS)
        if answer.verdict == "ok":
            return Finding("ok", _append(text, translate_rendered(answer.detail)))
        if answer.verdict == "refused":
            remedy = f"acp-agent login {provider.id}"
            if provider.key_command:
                remedy = translate("Run its key_command in a terminal: it may need a login")
            if origin is not None and origin.kind == "environment":
                remedy = translate("Set {name} to a valid key", name=origin.name)
            return Finding("broken", _append(text, translate_rendered(answer.detail)), remedy)
        if answer.verdict == "unreachable" and provider.key is None:
            return Finding("info", _append(text, translate("not running")))
        remedy = translate("Check the network and the address, which often ends in /v1")
        return Finding("missing", _append(text, translate_rendered(answer.detail)), remedy)

    with ThreadPoolExecutor(max_workers=8) as pool:
        findings = list(pool.map(ask, providers))
    for provider in loaded.values():
        # A cloud's missing settings only matter to users who configured some of them.
        is_relevant = (
            provider.platform is None or provider.has_key or provider.id in setup.config.providers
        )
        if provider.lacks is not None and is_relevant:
            findings.append(
                Finding("broken", f"{provider.id}: {translate_rendered(provider.lacks)}")
            )
    if not any(provider.has_key for provider in loaded.values()) and not unlisted_providers(loaded):
        remedy = translate("Run `acp-agent login`, or set a variable such as ANTHROPIC_API_KEY")
        findings.append(Finding("missing", translate("no provider has a key"), remedy))
    return findings


async def check_model(setup: UserConfig, *, offline: bool) -> list[Finding]:
    """Check which model a new session would use."""
    from acp_agent.cli.models import chosen_model, unlisted_providers  # noqa: PLC0415 - only for this part
    from acp_agent.models.providers import load_providers  # noqa: PLC0415 - likewise

    config = setup.config
    try:
        with locate_errors(setup.paths.config_file):
            providers = await asyncio.to_thread(
                load_providers, config, setup.secrets, setup.environ
            )
        if offline and not config.model and not any(p.has_key for p in providers.values()):
            return [Finding("info", translate("not checked: it depends on a local server"))]
        models = _models_without_fallbacks(setup)
        try:
            choice = await chosen_model(setup, models, providers)
        finally:
            await models.aclose()
    except AcpAgentError as error:
        return [Finding("broken", translate_rendered(str(error)))]
    if choice.model is None:
        # A named but unusable model is an error; if none is named, the user has to choose one.
        is_named = bool(config.model or setup.environ.get("ACP_AGENT_MODEL"))
        remedy = translate(
            "Run `acp-agent login`, or try the demo without a key: acp-agent --model demo/demo"
        )
        if unlisted_providers(providers):
            remedy = translate("Set `model` to a model in the list of `acp-agent models`")
        return [
            Finding("broken" if is_named else "missing", choice.why, "" if is_named else remedy)
        ]
    message = translate("a new session uses {model}: {why}", model=choice.model.ref, why=choice.why)
    return [Finding("ok", message)]


def _append(text: str, more: str) -> str:
    return translate("{what}; {more}", what=text, more=more)


def _models_without_fallbacks(setup: UserConfig) -> Models:
    """Return the models; an unknown provider of a fallback model would be an error."""
    from acp_agent.models.registry import Models  # noqa: PLC0415 - only for this part

    config = msgspec.structs.replace(setup.config, fallback_models=[])
    return Models(config, setup.secrets, setup.environ)


async def check_roles(setup: UserConfig) -> list[Finding]:
    """Check the models that the configuration names for particular tasks."""
    models_by_key = list(_models_in_config(setup.config))
    if not models_by_key:
        return []
    try:
        models = _models_without_fallbacks(setup)
    except AcpAgentError:
        return []
    errors: list[tuple[KeyPath, str, Literal["broken", "missing"]]] = []
    try:
        for path, ref in models_by_key:
            try:
                info = models.resolve(ref)
            except AcpAgentError as error:
                errors.append(
                    (path, str(error), "broken" if path[0] == "fallback_models" else "missing")
                )
                continue
            try:
                if path[0] != "models":  # a model may be described before it can be used
                    models.require(info)
            except AcpAgentError as error:
                errors.append((path, str(error), "missing"))
    finally:
        await models.aclose()
    file = setup.paths.config_file
    lines = find_lines(read_text(file), [path for path, _, _ in errors])
    findings = []
    for (path, why, state), line in zip(errors, lines, strict=True):
        location = str(file) if line is None else f"{file}:{line}"
        findings.append(
            Finding(state, f"{location}: {Problem(path, why).key}: {translate_rendered(why)}")
        )
    return findings


def _models_in_config(config: Config) -> Iterator[tuple[KeyPath, str]]:
    """Yield the named models with the configuration keys that name them."""
    for index, ref in enumerate(config.fallback_models):
        yield ("fallback_models", index), ref
    for key, role in (
        ("small_model", config.small_model),
        ("vision_model", config.vision_model),
        ("embedding_model", config.embedding_model),
    ):
        if role is not None:
            yield (key,), role
    for ref in config.models:
        yield ("models", ref), ref
    for kind, tables in (("skills", config.skills), ("agents", config.agents)):
        for name, table in tables.items():
            if table.enabled and table.model not in {None, SMALL}:
                yield (kind, name, "model"), str(table.model)


def _check_other_agents(setup: UserConfig, cwd: Path) -> list[Finding]:
    """Check that the programs of external agents exist."""
    findings = []
    for name, agent in setup.config.agents.items():
        if not agent.command or not agent.enabled:
            continue
        program = find_command(agent.command, setup.environ, [cwd])
        if program is not None and os.access(program, os.X_OK):
            text = translate("agent {name}: {program}", name=name, program=program)
            findings.append(Finding("ok", text))
            continue
        text = translate(
            "agent {name}: program not found: {program}", name=name, program=agent.command
        )
        remedy = translate("Install it, or correct agents.{name}.command", name=name)
        findings.append(Finding("missing", text, remedy))
    return findings


async def check_definitions(setup: UserConfig, cwd: Path) -> list[Finding]:
    """Check the skills and agents of a session in `cwd`. Returns nothing if there are none."""
    folders = setup.folders(cwd)
    agents = _check_other_agents(setup, cwd)
    if not any_folder_exists(folders):
        return agents
    definitions = find_definitions(folders, setup.config, setup.trusts)
    counts = translate(
        "skills: {skills}, agents: {agents}",
        skills=len(definitions.skills),
        agents=len(definitions.agents),
    )
    findings = [Finding("ok", counts), *agents]
    if definitions.untrusted:
        findings.append(Finding("missing", untrusted_line(definitions)))
    for problem in group_problems(definitions.problems):
        is_broken = problem.skipped and not problem.is_note
        state: Literal["broken", "missing"] = "broken" if is_broken else "missing"
        findings.append(Finding(state, problem_line(problem)))
    return [*findings, *(await _check_definition_models(definitions, setup))]


async def _check_definition_models(
    definitions: FoundDefinitions, setup: UserConfig
) -> list[Finding]:
    """Check the models that skills and agents name."""
    if not _definitions_with_model(definitions):
        return []
    from acp_agent.models.registry import Models  # noqa: PLC0415 - most have no model of their own

    findings = []
    try:
        with locate_errors(setup.paths.config_file):
            models = Models(setup.config, setup.secrets, setup.environ)
    except AcpAgentError as error:
        return [Finding("broken", translate_rendered(str(error)))]
    try:
        main = _session_model(models, setup.config)
        if main is not None:
            checked = with_known_providers(definitions, main, models, setup.config)
            problems = checked.problems[len(definitions.problems) :]
            findings += [Finding("missing", problem_line(problem)) for problem in problems]
            definitions = checked
        for definition in _definitions_with_model(definitions):
            model = str(definition.uses.model)
            try:
                models.require(models.resolve(model))
            except AcpAgentError as error:
                reason = translate_rendered(f"its model {model} cannot be used: {error}")
                findings.append(Finding("missing", f"{definition.path}: {reason}"))
    finally:
        await models.aclose()
    return list(dict.fromkeys(findings))  # a table may name a model for each of its agents


def _session_model(models: Models, config: Config) -> ModelInfo | None:
    """Return the model of a new session; None if it cannot be determined."""
    if config.model is None:
        return next(iter(models.available()), None)
    try:
        return models.resolve(config.model)
    except AcpAgentError:
        return None


def _definitions_with_model(definitions: FoundDefinitions) -> list[Skill | AgentSpec]:
    """Return the skills and agents that name a model."""
    all_definitions: list[Skill | AgentSpec] = [*definitions.skills, *definitions.agents]
    return [
        definition for definition in all_definitions if definition.uses.model not in {None, SMALL}
    ]
