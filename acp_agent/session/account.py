"""Choose the model that the user can use: from the command line, a key or a login."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from acp_agent.config.types import Config
from acp_agent.errors import AuthRequiredError, ConfigError
from acp_agent.models.base import ModelInfo
from acp_agent.models.providers import Provider
from acp_agent.models.registry import Models

DEMO_MODEL = "demo/demo"
LOGGED_OUT = "you are logged out; log in to continue"


class KeyStore(Protocol):
    """The API keys that logins stored (`acp_agent.config.secrets.Secrets`)."""

    def stored(self) -> list[str]:
        """Return the providers that have a stored key."""

    def delete(self, provider: str) -> bool:
        """Delete the key of a provider; return False if there is none."""

    def refresh(self) -> None:
        """Read the keys again."""


class Account:
    """Chooses a usable model for the sessions of a process, and handles login and logout.

    Args:
        flag: the model named on the command line or in the environment.
    """

    def __init__(
        self, models: Models, keys: KeyStore, flag: str | None, read_config: Callable[[], Config]
    ) -> None:
        self._models = models
        self._keys = keys
        self._flag = flag
        self._read_config = read_config
        self._demo = False
        self._logged_out = False
        self._logouts = 0
        self._refused: dict[str, Provider] = {}
        self._watchers: list[Callable[[], None]] = []

    async def choose(self, stored: str | None) -> ModelInfo:
        """Return the model for a session whose journal names the model `stored`.

        Raises:
            AuthRequiredError: no model can be used, or the user logged out.
            InvalidInputError: the model named on the command line does not exist.
        """
        if self._logged_out:
            raise AuthRequiredError(LOGGED_OUT)
        if self._demo and stored is None:
            return await self._models.choose(DEMO_MODEL, None)
        return await self._models.choose(self._flag, stored)

    async def choose_for_new(self) -> ModelInfo:
        """Return the model for a new session.

        If no model can be used, this reads the keys again: a login in a terminal, which is another
        process, may have stored one.

        Raises:
            AuthRequiredError, InvalidInputError: see `choose`.
        """
        try:
            return await self.choose(None)
        except AuthRequiredError:
            if self._logged_out:
                raise
            try:
                await asyncio.to_thread(lambda: self._refresh_keys(self._read_config()))
                model = await self.choose(None)
            except ConfigError:
                model = None  # its errors are reported elsewhere
            if model is None:
                raise
        for watcher in self._watchers:
            watcher()
        return model

    def require(self, model: ModelInfo) -> None:
        """Check that a chosen model can still be used.

        Raises:
            AuthRequiredError: the user logged out, or its provider has lost its key.
            InvalidInputError: its provider is no longer configured.
        """
        if self._logged_out:
            raise AuthRequiredError(LOGGED_OUT)
        self._models.require(model)

    def report_key(self, provider: str, *, refused: bool) -> None:
        """Record whether a provider refused its key."""
        current = {candidate.id: candidate for candidate in self._models.providers()}.get(provider)
        if current is None or self.is_refused(current) == refused:
            return
        if refused:
            self._refused[provider] = current
        else:
            del self._refused[provider]
        for watcher in self._watchers:
            watcher()

    def is_refused(self, provider: Provider) -> bool:
        """Return whether a provider refused its current key."""
        return self._refused.get(provider.id) == provider

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call `watcher` whenever a key is refused, accepted again or found."""
        self._watchers.append(watcher)

    async def authenticate(self, method: str) -> None:
        """Make a model usable by the method `demo` or `configured`.

        Raises:
            AuthRequiredError: `configured` found neither a key nor a local server, or the user
                logged out in the meantime.
            ConfigError: the configuration cannot be used.
        """
        if method == "demo":
            self._demo = True
            self._logged_out = False
            return
        logouts = self._logouts
        await asyncio.to_thread(lambda: self._refresh_keys(self._read_config()))
        await self._models.choose(self._flag, None)
        if self._logouts != logouts:
            raise AuthRequiredError(LOGGED_OUT)
        self._demo = False
        self._logged_out = False

    async def log_out(self) -> None:
        """Delete all stored keys, and use no model until the next authentication.

        Raises:
            ConfigError: a key could not be removed; the others are removed.
        """
        self._demo = False
        self._logged_out = True
        self._logouts += 1
        await asyncio.to_thread(self._forget_keys)

    def _forget_keys(self) -> None:
        failure: ConfigError | None = None
        for provider in self._keys.stored():
            try:
                self._keys.delete(provider)
            except ConfigError as error:
                failure = failure or error
        self._refresh_keys()
        if failure is not None:
            raise failure

    def _refresh_keys(self, config: Config | None = None) -> None:
        """Read the keys again. Blocks: the keyring may wait for the user to unlock it."""
        self._keys.refresh()
        self._models.refresh(config)
