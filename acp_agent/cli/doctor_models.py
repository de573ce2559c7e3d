"""What `acp-agent doctor` says of providers and of the model that a new session uses."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import msgspec

from acp_agent.cli.doctor_checks import Finding
from acp_agent.cli.words import told, words
from acp_agent.config.load import load_config, placed
from acp_agent.config.paths import Paths
from acp_agent.config.secrets import Secrets
from acp_agent.config.types import Config
from acp_agent.errors import AcpAgentError, ConfigError

PROVIDER_SECONDS = 5.0


def check_providers(paths: Paths, environ: Mapping[str, str], *, offline: bool) -> list[Finding]:
    """Which providers have a key, from where, and whether they answer."""
    from acp_agent.cli.models import unlisted  # noqa: PLC0415 - only for this part
    from acp_agent.models.provider_check import check_provider  # noqa: PLC0415 - likewise
    from acp_agent.models.providers import Provider, load_providers  # noqa: PLC0415 - likewise

    secrets = Secrets(paths.secrets_file, environ)
    try:
        config = _config(paths, environ)
        with placed(paths.config_file):
            loaded = load_providers(config, secrets, environ)
        providers = [p for p in loaded.values() if p.api != "demo" and p.usable]
        origins = {p.id: secrets.origin(p.id, p.key_env) for p in providers}
    except AcpAgentError as error:
        return [Finding("broken", told(str(error)))]

    def ask(provider: Provider) -> Finding:
        origin = origins[provider.id]
        key = words("key from {place}", place=origin.name) if origin else words("needs no key")
        what = words(
            "{name}: {address}, {key}", name=provider.id, address=provider.address, key=key
        )
        if offline:
            return Finding("info", what)
        answer = check_provider(provider, provider.key, timeout=PROVIDER_SECONDS)
        if answer.verdict == "ok":
            return Finding("ok", _with(what, told(answer.detail)))
        if answer.verdict == "refused":
            remedy = f"acp-agent login {provider.id}"
            if origin is not None and origin.kind == "environment":
                remedy = words("set {name} to a key that is valid", name=origin.name)
            return Finding("broken", _with(what, told(answer.detail)), remedy)
        if answer.verdict == "unreachable" and provider.key is None:
            return Finding("info", _with(what, words("not running")))
        remedy = words("check its address, which often ends in /v1, and the network")
        return Finding("missing", _with(what, told(answer.detail)), remedy)

    with ThreadPoolExecutor(max_workers=8) as pool:
        found = list(pool.map(ask, providers))
    for provider in loaded.values():
        # What a cloud lacks is of no interest to those who never set anything of it.
        meant = provider.platform is None or provider.key or provider.id in config.providers
        if provider.lacks is not None and meant:
            found.append(Finding("broken", f"{provider.id}: {told(provider.lacks)}"))
    if not any(provider.key for provider in loaded.values()) and not unlisted(loaded):
        remedy = words("acp-agent login, or set a variable such as ANTHROPIC_API_KEY")
        found.append(Finding("missing", words("no provider has a key"), remedy))
    return found


async def check_model(paths: Paths, environ: Mapping[str, str], *, offline: bool) -> list[Finding]:
    """Which model a new session would use."""
    from acp_agent.cli.models import chosen_model, unlisted  # noqa: PLC0415 - only for this part
    from acp_agent.cli.setup import Setup  # noqa: PLC0415 - likewise
    from acp_agent.models.providers import load_providers  # noqa: PLC0415 - likewise
    from acp_agent.models.registry import Models  # noqa: PLC0415 - likewise

    secrets = Secrets(paths.secrets_file, environ)
    config = _config(paths, environ)
    try:
        with placed(paths.config_file):
            providers = await asyncio.to_thread(load_providers, config, secrets, environ)
        if offline and not config.model and not any(p.key for p in providers.values()):
            return [Finding("info", words("not examined: it depends on a local server's answer"))]
        # What is wrong with the models to fall back to is told by their keys (`doctor_roles`).
        models = Models(msgspec.structs.replace(config, fallback=[]), secrets, environ)
        setup = Setup(environ=environ, paths=paths, config=config, secrets=secrets)
        try:
            choice = await chosen_model(setup, models, providers)
        finally:
            await models.aclose()
    except AcpAgentError as error:
        return [Finding("broken", told(str(error)))]
    if choice.model is None:
        # A model that was named but cannot be used is a mistake; none named is a thing to do.
        named = bool(config.model or environ.get("ACP_AGENT_MODEL"))
        remedy = words("acp-agent login; or try it without a key: acp-agent --model demo/demo")
        if unlisted(providers):
            remedy = words("set `model` to one that acp-agent models lists")
        return [Finding("broken" if named else "missing", choice.why, "" if named else remedy)]
    said = words("a new session uses {model}: {why}", model=choice.model.ref, why=choice.why)
    return [Finding("ok", said)]


def _with(what: str, more: str) -> str:
    return words("{what}; {more}", what=what, more=more)


def _config(paths: Paths, environ: Mapping[str, str]) -> Config:
    """The configuration, or the defaults where it is broken: that is told elsewhere."""
    try:
        return load_config(paths.config_file, environ)
    except ConfigError:
        return Config()
