"""Whether an agent that an editor starts would have a model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from msgspec import Struct

from acp_agent.cli.models import chosen_model
from acp_agent.cli.setup import Setup
from acp_agent.config.load import load_config, placed
from acp_agent.config.paths import find_paths
from acp_agent.config.secrets import Secrets
from acp_agent.models.providers import load_providers
from acp_agent.models.registry import Models


class Readiness(Struct, frozen=True):
    """The model that a session would use; None with the reason why there is none."""

    model: str | None
    why: str


def model_in(environ: Mapping[str, str]) -> Readiness:
    """The model of a session whose agent has this environment. May ask a local server.

    Raises:
        ConfigError: the agent's own configuration cannot be used.
    """
    return asyncio.run(_model_in(environ))


async def _model_in(environ: Mapping[str, str]) -> Readiness:
    paths = find_paths(environ)
    setup = Setup(
        environ=environ,
        paths=paths,
        config=load_config(paths.config_file, environ),
        secrets=Secrets(paths.secrets_file, environ),
    )
    with placed(paths.config_file):
        providers = await asyncio.to_thread(load_providers, setup.config, setup.secrets, environ)
        models = Models(setup.config, setup.secrets, environ)
    try:
        choice = await chosen_model(setup, models, providers)
    finally:
        await models.aclose()
    return Readiness(choice.model.ref if choice.model is not None else None, choice.why)
