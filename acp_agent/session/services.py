"""What all sessions of a process share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct, field

from acp_agent.config.localization import Translator, choose_language, translator_for
from acp_agent.config.types import Config
from acp_agent.extensions.definitions.locations import Places, places
from acp_agent.extensions.mcp.config import MARK
from acp_agent.models.registry import Models
from acp_agent.permissions.access import Gate
from acp_agent.platform.death_watch import DeathWatch
from acp_agent.session.account import Account
from acp_agent.session.slots import Slots
from acp_agent.session.spending import UnderWay
from acp_agent.session.store.store import Store


class KnowsSecrets(Protocol):
    """Where the secrets are kept."""

    def values(self) -> Sequence[str]:
        """Every secret value that is known."""
        ...


def _server_watch() -> DeathWatch:
    return DeathWatch(f"{MARK}={os.urandom(16).hex()}.")


class Services(Struct, frozen=True, kw_only=True):
    """The parts that sessions are built on, made once and passed in.

    `gate` makes the gate when the first prompt needs it; `outputs` is the folder below which each
    session keeps outputs too long for the model, `checkpoints` the one of files as they were before
    they were changed; `user_folder` is where the user's own AGENTS.md, skills and agents are.
    `turn_slots` and `call_slots` are what turns and calls of all sessions share, `under_way` the
    requests that they are making. `watch` ends the programs of MCP servers where this process is
    killed.
    """

    store: Store
    models: Models
    account: Account
    config: Config
    secrets: KnowsSecrets
    environ: Mapping[str, str]
    gate: Callable[[], Gate]
    outputs: Path
    checkpoints: Path
    user_folder: Path
    turn_slots: Slots
    call_slots: Slots
    under_way: UnderWay = field(default_factory=UnderWay)
    watch: DeathWatch = field(default_factory=_server_watch)

    @property
    def home(self) -> Path:
        """The user's home folder, which other programs share."""
        named = self.environ.get("HOME")
        return Path(named) if named else Path.home()

    def places(self, cwd: Path) -> Places:
        """Where the skills and agents of a session in `cwd` are looked for."""
        return places(cwd, user=self.user_folder, home=self.home)

    @property
    def translate(self) -> Translator:
        """What is said to the user, in the user's language."""
        return translator_for(choose_language(self.config.language, self.environ))
