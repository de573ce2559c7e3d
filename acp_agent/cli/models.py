"""`acp-agent models`: list the usable models and the model of new sessions."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.output import say, say_json, say_table
from acp_agent.cli.parser import Parser
from acp_agent.cli.user_config import UserConfig, load_user_config
from acp_agent.config.load import locate_errors
from acp_agent.errors import AcpAgentError, ModelError
from acp_agent.models.base import ModelInfo
from acp_agent.models.catalog import Catalog
from acp_agent.models.providers import LOCAL, Provider, load_providers, presets
from acp_agent.models.registry import Models

ASK_SECONDS = 5.0  # for a provider's list of models


class Choice(Struct, frozen=True, kw_only=True):
    """The model of a new session; None with the reason if there is none."""

    model: ModelInfo | None
    why: str


def run(argv: list[str]) -> int:
    """List models; return the exit status."""
    parser = Parser(
        prog="acp-agent models",
        description="List the available models. Prices are in US dollars per million tokens.",
    )
    parser.add_argument(
        "--all", action="store_true", help="include models of providers without a key"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(argv)
    return asyncio.run(_list(include_all=options.all, as_json=options.json))


async def chosen_model(setup: UserConfig, models: Models, providers: dict[str, Provider]) -> Choice:
    """Return the model of a new session, and the reason."""
    flag = setup.environ.get("ACP_AGENT_MODEL") or None
    try:
        model = await models.choose(flag, None)
    except AcpAgentError as error:
        return Choice(model=None, why=translate_rendered(str(error)))
    if flag:
        return Choice(model=model, why=translate("set by the variable ACP_AGENT_MODEL"))
    if setup.config.model:
        reason = translate("set in {file}", file=setup.paths.config_file)
        return Choice(model=model, why=reason)
    provider = providers.get(model.provider)
    origin = None
    if provider is not None:
        origin = await asyncio.to_thread(setup.secrets.origin, provider.id, provider.key_env)
    if origin is not None:
        first = translate("first provider with a key ({place})", place=origin.name)
        return Choice(model=model, why=first)
    if model.provider != LOCAL:
        return Choice(model=model, why=translate("first configured provider that needs no key"))
    return Choice(
        model=model, why=translate("no provider has a key, but a local server is running")
    )


def unlisted_providers(providers: dict[str, Provider]) -> list[Provider]:
    """Return the usable providers whose models are not in the catalog.

    These are the user's own providers, and presets with a changed address.
    """
    home = {preset.id: preset.base_url.rstrip("/") for preset in presets()}
    return [
        provider
        for provider in providers.values()
        if provider.usable and provider.platform is None and provider.id != LOCAL
        and provider.api != "demo" and provider.base_url != home.get(provider.id)
    ]  # fmt: skip


async def _list(*, include_all: bool, as_json: bool) -> int:
    setup = load_user_config()
    with locate_errors(setup.paths.config_file):
        providers = load_providers(setup.config, setup.secrets, setup.environ)
        models = Models(setup.config, setup.secrets, setup.environ)
    try:
        choice = await chosen_model(setup, models, providers)
        usable = models.available()
    finally:
        await models.aclose()
    catalog = Catalog(setup.config.models)
    refs = {model.ref for model in usable}
    custom_providers = unlisted_providers(providers)
    unlisted_models: list[ModelInfo] = []
    for provider_models in await asyncio.gather(
        *(_served_models(provider, catalog) for provider in custom_providers)
    ):
        unlisted_models += provider_models
    usable += [model for model in unlisted_models if model.ref not in refs]
    listed = list(usable)
    if choice.model is not None and choice.model.ref not in {model.ref for model in usable}:
        listed.insert(0, choice.model)
    if include_all:
        refs = {model.ref for model in listed}
        listed += [m for name in providers for m in catalog.for_provider(name) if m.ref not in refs]
    chosen_ref = choice.model.ref if choice.model is not None else None
    if as_json:
        say_json(
            {
                "chosen": chosen_ref,
                "why": choice.why,
                "models": [
                    {"ref": model.ref, "usable": model in usable or model.ref == chosen_ref}
                    | _describe(model)
                    for model in listed
                ],
            }
        )
        return 0
    if listed:
        rows = [_row(model, chosen=model.ref == chosen_ref) for model in listed]
        say_table(("", "MODEL", "WINDOW", "OUTPUT", "IN $", "OUT $"), rows, numbers=4)
        say()
    if chosen_ref is not None:
        say(translate("* New sessions use {model}: {why}.", model=chosen_ref, why=choice.why))
    elif unlisted_models and not (setup.config.model or setup.environ.get("ACP_AGENT_MODEL")):
        say(
            translate(
                "Choose a model with --model, the variable ACP_AGENT_MODEL, or `model` in the "
                "configuration, such as {model}.",
                model=unlisted_models[0].ref,
            )
        )
    else:
        say(choice.why)
    return 0


async def _served_models(provider: Provider, catalog: Catalog) -> list[ModelInfo]:
    """Return the models that a provider lists; none if it does not respond in time."""
    from acp_agent.models.key_command import key_from_command  # noqa: PLC0415 - heavy
    from acp_agent.models.provider_check import check_provider  # noqa: PLC0415 - heavy

    try:
        key = (await asyncio.to_thread(key_from_command, provider)).key
    except ModelError:
        return []
    answer = await asyncio.to_thread(check_provider, provider, key, timeout=ASK_SECONDS)
    return [catalog.get(provider.id, name) for name in answer.models]


def _row(model: ModelInfo, *, chosen: bool) -> list[str]:
    price = model.price
    return [
        "*" if chosen else "",
        model.ref,
        _tokens(model.window),
        _tokens(model.max_output),
        f"{price.input:.2f}" if price else "-",
        f"{price.output:.2f}" if price else "-",
    ]


def _tokens(count: int) -> str:
    return f"{count / 1000:.3g}k" if count < 999_500 else f"{count / 1_000_000:.3g}M"


def _describe(model: ModelInfo) -> dict[str, object]:
    return {
        "name": model.name,
        "window": model.window,
        "max_output": model.max_output,
        "vision": model.vision,
        "thought_levels": list(model.thought_levels),
        "price": model.price,
    }
