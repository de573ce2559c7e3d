"""Create and cache the drivers of a process, one for each provider."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from acp_agent.errors import ConfigError
from acp_agent.models.base import Driver
from acp_agent.models.providers import Api, Platform, Provider

if TYPE_CHECKING:  # only needed if a command prints the key
    from acp_agent.models.key_command import CommandKey

# The APIs that each cloud offers.
_CLOUD_APIS: dict[Platform, tuple[Api, ...]] = {
    "azure": ("openai", "openai_responses"),
    "bedrock": ("anthropic",),
    "vertex": ("anthropic",),
}


class DriverPool:
    """Creates drivers and caches them until the settings of their provider change."""

    def __init__(
        self, plugin_driver: Callable[[Provider], Driver], keys: Callable[[Provider], CommandKey]
    ) -> None:
        self._plugin_driver = plugin_driver
        self._keys = keys
        self._drivers: dict[str, Driver] = {}

    def get(self, provider: Provider, *, bundled: bool) -> Driver:
        """Return the driver of a provider. Imports its module. Not thread-safe.

        A provider with changed settings gets a new driver. The old driver finishes its streams.

        Args:
            bundled: true if the model is the one that this program serves itself.

        Raises:
            ConfigError: the provider lacks a setting, or a package that an extra installs.
        """
        driver = self.get_cached(provider, bundled=bundled)
        if driver is None:
            driver = _bundled(provider) if bundled else self._make(provider)
            self._drivers[_name(provider, bundled=bundled)] = driver
        return driver

    def _make(self, provider: Provider) -> Driver:
        make = partial(_make, plugin_driver=self._plugin_driver)
        if not provider.key_command:
            return make(provider)
        from acp_agent.models.key_command import CommandKeyDriver  # noqa: PLC0415 - where there is one

        return CommandKeyDriver(self._keys(provider), make)

    def get_cached(self, provider: Provider, *, bundled: bool) -> Driver | None:
        """Return the cached driver of a provider, or None. Thread-safe."""
        return self._drivers.get(_name(provider, bundled=bundled))

    async def aclose(self) -> None:
        """Close every driver's connections."""
        drivers, self._drivers = list(self._drivers.values()), {}
        await asyncio.gather(*(driver.aclose() for driver in drivers), return_exceptions=True)


def _name(provider: Provider, *, bundled: bool) -> str:
    """Return the cache key of a driver: every setting that requires a new driver."""
    return "\n".join(
        map(
            str,
            (
                provider.id,
                provider.api,
                provider.base_url,
                provider.key,
                provider.key_command,
                sorted(provider.headers.items()),
                (provider.platform, provider.region, provider.project, provider.api_version),
                bundled,
            ),
        )
    )


def _bundled(provider: Provider) -> Driver:
    from acp_agent.models.local_driver import LocalDriver  # noqa: PLC0415 - heavy

    return LocalDriver(provider)


def _make(provider: Provider, plugin_driver: Callable[[Provider], Driver]) -> Driver:
    if provider.platform is not None and provider.api not in _CLOUD_APIS[provider.platform]:
        apis = " or ".join(_CLOUD_APIS[provider.platform])
        raise ConfigError(f"providers.{provider.id}.api: {provider.name} has only {apis}.")
    match provider.api:
        case "plugin":
            return plugin_driver(provider)
        case "anthropic" if provider.platform in {"bedrock", "vertex"}:
            from acp_agent.models.anthropic_driver import (  # noqa: PLC0415 - heavy
                AnthropicCloudDriver,
            )
            from acp_agent.models.clouds import Bedrock, Vertex  # noqa: PLC0415 - for these only

            return AnthropicCloudDriver(
                provider, Bedrock() if provider.platform == "bedrock" else Vertex()
            )
        case "anthropic":
            from acp_agent.models.anthropic_driver import AnthropicDriver  # noqa: PLC0415 - heavy

            return AnthropicDriver(provider)
        case "openai" | "openai_responses":
            from acp_agent.models.openai_driver import OpenAIDriver  # noqa: PLC0415 - heavy

            return OpenAIDriver(provider)
        case "gemini":
            from acp_agent.models.gemini_driver import GeminiDriver  # noqa: PLC0415 - heavy

            return GeminiDriver(provider)
        case "demo":
            from acp_agent.models.demo.driver import DemoDriver  # noqa: PLC0415 - only where it is used

            return DemoDriver()
