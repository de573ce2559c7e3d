"""Load the paths, configuration and keys of the user."""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec import Struct

from acp_agent.config.load import load_config
from acp_agent.config.paths import Paths, find_paths
from acp_agent.config.secrets import Secrets
from acp_agent.config.types import Config


class UserConfig(Struct, frozen=True, kw_only=True):
    """The environment and the user's files."""

    environ: Mapping[str, str]
    paths: Paths
    config: Config
    secrets: Secrets


def load_user_config(environ: Mapping[str, str] = os.environ) -> UserConfig:
    """Load the configuration for an environment. Raises ConfigError."""
    paths = find_paths(environ)
    return UserConfig(
        environ=environ,
        paths=paths,
        config=load_config(paths.config_file, environ),
        secrets=Secrets(paths.secrets_file, environ),
    )
