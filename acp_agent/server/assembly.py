"""Puts the parts together: made once, passed in, closed at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from acp_agent.config.load import load_config, placed
from acp_agent.config.paths import Paths
from acp_agent.config.secrets import Secrets
from acp_agent.config.types import Config
from acp_agent.models.registry import Models
from acp_agent.session.account import Account
from acp_agent.session.services import Services
from acp_agent.session.slots import Slots
from acp_agent.session.store.store import Store

if TYPE_CHECKING:
    from acp_agent.permissions.access import Gate


async def assemble(
    paths: Paths, *, secrets: Secrets, environ: Mapping[str, str], model_flag: str | None
) -> Services:
    """Read the configuration and open the store.

    Raises:
        ConfigError: the configuration cannot be used.
        StoreError: the store cannot be used; it is left as it is.
    """
    # In a thread: a key in the keyring may wait for the user to unlock it.
    config, models = await asyncio.to_thread(_configured, paths, secrets, environ)
    store = await Store.open(paths.sessions_file)  # last, so that nothing that fails leaves it open

    @cache
    def gate() -> Gate:
        from acp_agent.config.message_catalog import choose_language  # noqa: PLC0415 - for prompts only
        from acp_agent.permissions.gate import PolicyGate  # noqa: PLC0415 - for prompts only
        from acp_agent.permissions.grants import GrantStore  # noqa: PLC0415 - likewise

        language = choose_language(config.language, environ)
        return PolicyGate(GrantStore(paths.grants_file), language=language, own=paths.own)

    return Services(
        store=store,
        models=models,
        account=Account(
            models, secrets, model_flag, lambda: load_config(paths.config_file, environ)
        ),
        config=config,
        secrets=secrets,
        environ=environ,
        gate=gate,
        outputs=paths.outputs_dir,
        checkpoints=paths.checkpoints_dir,
        user_folder=paths.config_file.parent,
        turn_slots=Slots(config.limits.process_turns),
        call_slots=Slots(config.limits.process_calls),
    )


def _configured(
    paths: Paths, secrets: Secrets, environ: Mapping[str, str]
) -> tuple[Config, Models]:
    config = load_config(paths.config_file, environ)
    with placed(paths.config_file):
        return config, Models(config, secrets, environ)


async def dismantle(services: Services) -> None:
    """Close what `assemble` opened."""
    await asyncio.gather(
        services.models.aclose(),
        services.store.close(),
        services.watch.aclose(),
        return_exceptions=True,
    )
