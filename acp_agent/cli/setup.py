"""What most commands begin with: the user's files, configuration and keys."""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec import Struct

from acp_agent.config.load import load_config
from acp_agent.config.paths import Paths, find_paths
from acp_agent.config.secrets import Secrets
from acp_agent.config.types import Config


class Setup(Struct, frozen=True, kw_only=True):
    """The user's setup, read once and passed on."""

    environ: Mapping[str, str]
    paths: Paths
    config: Config
    secrets: Secrets


def load_setup() -> Setup:
    """Read the setup of the user who runs the command.

    Raises:
        ConfigError: the configuration cannot be used.
    """
    paths = find_paths(os.environ)
    return Setup(
        environ=os.environ,
        paths=paths,
        config=load_config(paths.config_file, os.environ),
        secrets=Secrets(paths.secrets_file, os.environ),
    )
