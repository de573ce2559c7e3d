"""Load the paths, configuration and keys of the user, and find what belongs to a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from acp_agent.config.load import load_config
from acp_agent.config.paths import Paths, find_paths
from acp_agent.config.secrets import Secrets
from acp_agent.config.types import Config
from acp_agent.errors import ConfigError

if TYPE_CHECKING:
    from acp_agent.extensions.definitions.locations import DefinitionFolders
    from acp_agent.extensions.mcp.configured import FoundServers
    from acp_agent.hooks.sources import FoundHooks
    from acp_agent.trust.store import Item


class UserConfig(Struct, frozen=True, kw_only=True):
    """The environment and the user's files."""

    environ: Mapping[str, str]
    paths: Paths
    config: Config
    secrets: Secrets

    @property
    def trusts(self) -> Callable[[Item], bool]:
        """Return a function that returns whether the user trusts an item. Reads a file."""
        from acp_agent.trust.store import TrustStore  # noqa: PLC0415 - few commands need it

        return TrustStore(self.paths.trust_file, self.config.trusted_folders).trusts

    def folders(self, cwd: Path) -> DefinitionFolders:
        """Return the folders that a session in a folder searches for definitions."""
        from acp_agent.extensions.definitions.locations import find_folders  # noqa: PLC0415 - likewise

        return find_folders(cwd, user=self.paths.config_file.parent, home=Path.home())

    def mcp_servers(self, cwd: Path) -> FoundServers:
        """Return the MCP servers of a session in a folder, and errors in their files."""
        from acp_agent.extensions.mcp.configured import find_servers  # noqa: PLC0415 - likewise

        return find_servers(
            self.config,
            self.paths.config_file,
            cwd,
            self.environ,
            folders=self.folders(cwd),
            trusts=self.trusts,
        )

    def hooks(self, cwd: Path) -> FoundHooks:
        """Return the hooks of a session in a folder, and errors in their files."""
        from acp_agent.hooks.sources import find_hooks  # noqa: PLC0415 - likewise

        return find_hooks(
            self.config.hooks,
            config_file=str(self.paths.config_file),
            home=Path.home(),
            folders=self.folders(cwd),
            cwd=cwd,
            confine_own=self.config.sandbox.hooks,
            trusts=self.trusts,
        )


def load_user_config(
    environ: Mapping[str, str] = os.environ, *, ignore_errors: bool = False
) -> UserConfig:
    """Load the configuration for an environment.

    Args:
        ignore_errors: use the defaults if the configuration is invalid.

    Raises:
        ConfigError: the configuration is invalid.
    """
    paths = find_paths(environ)
    try:
        config = load_config(paths.config_file, environ)
    except ConfigError:
        if not ignore_errors:
            raise
        config = Config()
    secrets = Secrets(paths.secrets_file, environ)
    return UserConfig(environ=environ, paths=paths, config=config, secrets=secrets)


class AnyVariable(dict[str, str]):
    """An environment in which every variable is set."""

    def get(self, name: str, default: object = None) -> str:
        """Return a value for any name."""
        del default
        return name
