"""The models of a process: list them, select one for a session, and return its driver."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from acp_agent.config.types import Config
from acp_agent.errors import AuthRequiredError, ConfigError, InvalidInputError
from acp_agent.events import Usage
from acp_agent.models import catalog, local
from acp_agent.models.base import Driver, ModelInfo
from acp_agent.models.local import LocalServer
from acp_agent.models.providers import (
    BUNDLED_MODEL,
    LOCAL,
    Provider,
    Secrets,
    canonical,
    check_fallbacks,
    load_providers,
    missing_key_message,
    missing_setting_message,
    presets,
    serves_bundled,
)

if TYPE_CHECKING:
    from acp_agent.models.driver_pool import DriverPool
    from acp_agent.models.endpoints import Endpoint
    from acp_agent.models.key_command import CommandKey

MODEL_VARIABLE = "ACP_AGENT_MODEL"
_NO_MODEL = (
    "No model can be used yet: run `acp-agent login`, or set a provider's key such as "
    "ANTHROPIC_API_KEY or OPENAI_API_KEY, or start a local server such as Ollama, "
    "or choose the offline demo with --model demo/demo."
)


def _no_plugin(provider: Provider) -> Driver:
    raise ConfigError(f"providers.{provider.id}.api: plugins are only used in sessions")


class Models:
    """All models of a process. Thread-safe.

    Creating it and calling `available` reads two small files and imports no SDK, because both
    happen at startup.

    Attributes:
        plugin_driver: creates the driver of a provider that a plugin implements.
    """

    plugin_driver: Callable[[Provider], Driver]

    def __init__(self, config: Config, secrets: Secrets, environ: Mapping[str, str]) -> None:
        """Load the providers and the models. Raises ConfigError."""
        self._config = config
        self._secrets = secrets
        self._environ = environ
        self._catalog = catalog.Catalog(config.models)
        self._endpoints: dict[str, Endpoint | None] = {}  # set by clients; None: disabled
        self._configured = load_providers(config, secrets, environ)
        check_fallbacks(config, self._configured)
        self._providers = self._configured
        self._local = LocalServer()
        self._pool: DriverPool | None = None
        self._command_keys: dict[str, CommandKey] = {}
        self.plugin_driver = _no_plugin
        self._lock = threading.Lock()
        self._changing = threading.Lock()  # for changes of the providers

    def refresh(self, config: Config | None = None) -> None:
        """Load keys again, and look for a local server at the next choice.

        Args:
            config: the new configuration; None: it is unchanged.

        Raises:
            ConfigError: the configuration of a provider or a model is invalid; nothing was changed.
        """
        config = self._config if config is None else config
        new_catalog = catalog.Catalog(config.models)
        configured = load_providers(config, self._secrets, self._environ)
        check_fallbacks(config, configured)
        with self._changing:
            self._configured = configured
            self._config, self._catalog = config, new_catalog
            self._use_endpoints()

    def set_endpoint(self, provider: str, endpoint: Endpoint | None) -> None:
        """Send later requests of a provider to a client's endpoint; None disables the provider.

        This overrides the configuration until the client changes it or the process ends.

        Raises:
            InvalidInputError: there is no such provider, or it cannot be configured.
        """
        if all(provider != candidate.id for candidate in self.configurable()):
            raise InvalidInputError(
                f"providerId: there is no provider {provider!r}; the providers are "
                + ", ".join(candidate.id for candidate in self.configurable()),
                field="providerId",
            )
        with self._changing:
            self._endpoints[provider] = endpoint
            self._use_endpoints()

    def _use_endpoints(self) -> None:
        providers = self._configured
        if self._endpoints:
            from acp_agent.models.endpoints import at_endpoint  # noqa: PLC0415 - for clients' only

            changed = {
                name: at_endpoint(providers[name], endpoint)
                for name, endpoint in self._endpoints.items()
                if name in providers
            }
            providers = {**providers, **changed}
        self._providers = providers
        self._local.forget()

    def configurable(self) -> list[Provider]:
        """Return the providers whose endpoint a client may set."""
        return [provider for provider in self._providers.values() if provider.api != "demo"]

    def provider(self, info: ModelInfo) -> Provider | None:
        """Return the provider of a model with its current settings, or None."""
        return self._providers.get(info.provider)

    def require(self, info: ModelInfo) -> Provider:
        """Return the provider of a model if it can be used.

        Raises:
            AuthRequiredError: it lacks a key, or a client disabled it.
            ConfigError: it lacks a required setting, such as a region.
            InvalidInputError: there is no such provider.
        """
        provider = self._providers.get(info.provider)
        if provider is None:
            raise InvalidInputError(
                f"the model provider {info.provider!r} is no longer configured; choose another "
                "model",
                field="model",
            )
        if provider.lacks is not None and not provider.disabled:
            raise ConfigError(missing_setting_message(provider))
        if not provider.usable:
            raise AuthRequiredError(missing_key_message(provider))
        return provider

    def providers(self) -> list[Provider]:
        """Return all providers, including unusable ones, in the order in which they are tried."""
        return list(self._providers.values())

    def available(self) -> list[ModelInfo]:
        """Return the models to offer: those in the configuration, and the known ones of providers.

        Only usable providers count. The models of a local server are included once `choose` has
        found it.
        """
        config = self._config
        offered: dict[str, ModelInfo] = {}
        for ref in (config.model, *config.fallback_models, config.vision_model, config.small_model):
            if ref is None:
                continue
            try:
                chosen = self.resolve(ref)
            except InvalidInputError:
                continue  # reported when the model is used
            if self._providers[chosen.provider].usable:
                offered[chosen.ref] = chosen
        for provider in self._providers.values():
            if not provider.usable or provider.api == "demo":
                continue
            models = self._catalog.for_provider(provider.id)
            if provider.id == LOCAL:
                models += [self._catalog.get(LOCAL, name) for name in self._local.cached_models]
                if serves_bundled(provider, BUNDLED_MODEL) and local.installed():
                    models.append(self._catalog.get(LOCAL, BUNDLED_MODEL))
            elif not models and provider.default_model:
                models = [self._catalog.get(provider.id, provider.default_model)]
            offered.update((info.ref, info) for info in models)
        return list(offered.values())

    def catalog_small_model(self, provider: str) -> ModelInfo | None:
        """Return the catalog's small model of a provider, or None.

        The provider must have its default address; a service at another address may lack the model.
        """
        loaded = self._providers.get(provider)
        default_preset = next((preset for preset in presets() if preset.id == provider), None)
        if (
            loaded is None
            or default_preset is None
            or loaded.base_url != default_preset.base_url.rstrip("/")
        ):
            return None
        return self._catalog.small(provider)

    def resolve(self, ref: str) -> ModelInfo:
        """Return the model named `provider/model`, or the first known one with a bare name.

        Raises:
            InvalidInputError: there is no such model or provider.
        """
        prefix, _, model_name = ref.strip().partition("/")
        provider = self._providers.get(canonical(prefix))
        if provider is not None:
            model = model_name or provider.default_model
            if provider.api == "demo" and model != provider.default_model:
                raise InvalidInputError(
                    f"unknown model {ref!r}; the demo is demo/{provider.default_model}",
                    field="model",
                )
            if model:
                return self._catalog.get(provider.id, model)
            raise InvalidInputError(
                f"{ref!r} is only a provider; add a model, as in {prefix}/model",
                field="model",
            )
        matches = [
            info
            for name in self._providers
            for info in self._catalog.for_provider(name)
            if info.id == ref
        ]
        if matches:
            usable = [info for info in matches if self._providers[info.provider].usable]
            return (usable or matches)[0]
        raise InvalidInputError(
            f"unknown model {ref!r}; name it as provider/model, with one of the providers "
            f"{', '.join(self._providers)}",
            field="model",
        )

    def fallbacks(self, info: ModelInfo) -> list[ModelInfo]:
        """Return the usable fallback models of the configuration, without `info` itself."""
        fallback_models = [self.resolve(ref) for ref in self._config.fallback_models]
        return [
            model
            for model in fallback_models
            if model.ref != info.ref and self._providers[model.provider].usable
        ]

    async def choose(self, flag: str | None, stored: str | None) -> ModelInfo:
        """Return the model for a session. It is the first of the following.

        1. the model of the command line, of ACP_AGENT_MODEL, of the session (`stored`), or of the
           configuration, in this order;
        2. the default model of the first provider that a client configured;
        3. the default model of the first provider with a key, or the first configured model of a
           provider at another address;
        4. the first model of a local server.

        Raises:
            InvalidInputError: the requested model does not exist.
            AuthRequiredError: its provider lacks a key, or no model was requested and none is
                usable.
            ConfigError: its provider lacks another setting, or the only one with a key does.
        """
        requested = flag or self._environ.get(MODEL_VARIABLE) or stored or self._config.model
        if requested and canonical(requested.strip().rstrip("/")) == LOCAL:
            return await self._first_local()
        if requested:
            info = self.resolve(requested)
            self.require(info)
            if info.provider == LOCAL:
                await self._served()  # to offer the other models of the server
            return info
        # Providers that a client configured come before the user's own.
        for provider in sorted(
            self._providers.values(), key=lambda candidate: not candidate.set_by_client
        ):
            described = self._first_configured_model(provider)
            if described is not None:
                return described
            if provider.chosen and provider.default_model:
                return self._catalog.get(provider.id, provider.default_model)
            if provider.chosen and provider.id == LOCAL and await self._served():
                return await self._first_local()
            provider_models = self._catalog.for_provider(provider.id)
            if provider_models and provider.usable and provider.id in self._config.providers:
                return provider_models[0]
        served = await self._served()
        if served:
            return self._catalog.get(LOCAL, served[0])
        for provider in self._providers.values():
            if provider.has_key and provider.usable and not provider.default_model:
                raise AuthRequiredError(
                    f"{provider.name} has a key, but it is not known which models it has: name one "
                    f'in the configuration, model = "{provider.id}/NAME".'
                )
            if self._is_set_up(provider) and provider.usable:
                raise AuthRequiredError(
                    f"{provider.name} needs no key, but it is not known which models it has: name "
                    f'one in the configuration, model = "{provider.id}/NAME".'
                )
            if provider.has_key and provider.lacks is not None and not provider.disabled:
                raise ConfigError(missing_setting_message(provider))
        raise AuthRequiredError(_NO_MODEL)

    def _first_configured_model(self, provider: Provider) -> ModelInfo | None:
        """Return the first configured model of a provider with another address, or None.

        A service at another address may lack the models of the catalog. Local servers are excluded,
        because they list their models.
        """
        if not (provider.moved and provider.usable) or provider.set_by_client:
            return None
        if provider.id == LOCAL or provider.api == "demo":
            return None
        for ref in self._config.models:
            name, _, model = ref.partition("/")
            if canonical(name) == provider.id:
                return self._catalog.get(provider.id, model)
        return None

    def _is_set_up(self, provider: Provider) -> bool:
        """Return whether the user or a client configured a provider, other than local or demo."""
        if provider.id == LOCAL or provider.api == "demo":
            return False
        return provider.moved or provider.set_by_client or provider.id in self._config.providers

    def driver(self, info: ModelInfo) -> Driver:
        """Return the driver for a model. Imports its module: call it in a thread.

        Raises:
            AuthRequiredError: the provider has no key, or a client disabled it.
            ConfigError: the provider lacks a setting, or a package that an extra installs.
            InvalidInputError: there is no such provider.
        """
        provider = self.require(info)
        if info.tool_dialect == "constrained" and provider.api != "openai":
            raise ConfigError(
                f'models."{info.ref}".tool_dialect: only a provider whose api is "openai" can hold '
                "a model to a schema; choose another dialect."
            )
        with self._lock:
            if self._pool is None:
                from acp_agent.models.driver_pool import DriverPool  # noqa: PLC0415 - for prompts

                self._pool = DriverPool(self.plugin_driver, self.command_key)
            driver = self._pool.get(provider, bundled=serves_bundled(provider, info.id))
        if info.tool_dialect is None:
            return driver
        from acp_agent.models.dialects.driver import DialectDriver  # noqa: PLC0415 - rarely used

        return DialectDriver(driver)

    def command_key(self, provider: Provider) -> CommandKey:
        """Return the shared key of a provider whose key is printed by a command."""
        from acp_agent.models.key_command import CommandKey  # noqa: PLC0415 - where there is one

        name = "\n".join((provider.id, *provider.key_command))
        if name not in self._command_keys:
            self._command_keys[name] = CommandKey(provider, self._secrets.learn)
        return self._command_keys[name]

    def cached_driver(self, info: ModelInfo) -> Driver | None:
        """Return the driver for a model if it exists already; if None, call `driver`."""
        provider = self.require(info)
        if self._pool is None or info.tool_dialect is not None:
            return None
        return self._pool.get_cached(provider, bundled=serves_bundled(provider, info.id))

    def cost_now(self, ref: str, usage: Usage) -> float | None:
        """Return the cost of a request at today's price in US dollars; see `Catalog.cost_now`."""
        return self._catalog.cost_now(ref, usage)

    async def aclose(self) -> None:
        """Close every driver's connections."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            await pool.aclose()

    async def _first_local(self) -> ModelInfo:
        served = await self._served()
        if not served:
            raise AuthRequiredError(
                f"No local model server answers at {self._providers[LOCAL].address}, or it has "
                "no model: start it (Ollama, for one), load a model, and try again."
            )
        return self._catalog.get(LOCAL, served[0])

    async def _served(self) -> list[str]:
        """Return the models of the local server."""
        return await self._local.served(self._providers[LOCAL])
