"""The parts that all connections share, created when the first session is requested."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from acp_agent.config.load import load_config, locate_errors
from acp_agent.config.localization import Translator, translator_for
from acp_agent.config.paths import Paths
from acp_agent.config.policy_types import PermissionsConfig
from acp_agent.config.secrets import Secrets
from acp_agent.config.types import Config
from acp_agent.errors import ConfigError
from acp_agent.ids import SessionId
from acp_agent.models.registry import Models
from acp_agent.session.account import Account
from acp_agent.session.client import Client
from acp_agent.session.manager import PAGE_SIZE, SessionManager
from acp_agent.session.sandboxes import SharedSandboxes
from acp_agent.session.services import ConcurrencyLimit, Services, SharedPlugins
from acp_agent.session.store.records import ArchiveFilter, SessionPage
from acp_agent.session.store.store import Store

if TYPE_CHECKING:
    from acp_agent.permissions.access import Gate
    from acp_agent.server.auth_status import AuthStatusWatch, Subscriber
    from acp_agent.trust.store import TrustStore
    from acp_agent.workspace.git_repositories import GitRepositories, RepositoryCache

_Made = TypeVar("_Made")


class Core:
    """The sessions of a process, for all its connections.

    An unusable configuration or store fails the request that needs it and is tried again with the
    next one, so that fixing it does not take a restart.

    Args:
        model_flag: the model named on the command line.
        adapt: changes the services before any session uses them, as a replay does.
    """

    def __init__(
        self,
        paths: Paths,
        *,
        secrets: Secrets,
        environ: Mapping[str, str],
        model_flag: str | None,
        adapt: Callable[[Services], Services] = lambda services: services,
    ) -> None:
        self._adapt = adapt
        self._paths = paths
        self.secrets = secrets
        self._environ = environ
        self._model_flag = model_flag
        self._services: Services | None = None
        self.active_manager: SessionManager | None = None
        self._lock = asyncio.Lock()
        self._auth: AuthStatusWatch | None = None
        self.subscribers: set[Subscriber] = set()

    async def services(self) -> Services:
        """Return the parts that sessions are built on. Raises ConfigError, StoreError."""
        async with self._lock:
            if self._services is None:
                assembled = await assemble(
                    self._paths,
                    secrets=self.secrets,
                    environ=self._environ,
                    model_flag=self._model_flag,
                )
                self._services = self._adapt(assembled)
                self._services.account.watch(self._account_changed)
            return self._services

    async def manager(self) -> SessionManager:
        """Return the sessions. Raises as `services` does."""
        services = await self.services()
        if self.active_manager is None:
            self.active_manager = SessionManager(services)
        return self.active_manager

    async def list(
        self, cwd: str | None, cursor: str | None, archived: ArchiveFilter
    ) -> SessionPage:
        """Return a page of the sessions; see `SessionManager.list`.

        This works without a valid configuration.

        Raises:
            InvalidInputError: the cursor is invalid.
            StoreError: the store cannot be used.
        """
        try:
            manager = await self.manager()
        except ConfigError:
            store = await Store.open(self._paths.sessions_file)
            try:
                return await store.list(cwd=cwd, cursor=cursor, limit=PAGE_SIZE, archived=archived)
            finally:
                await store.close()
        return await manager.list(cwd, cursor, archived)

    @property
    def auth(self) -> AuthStatusWatch:
        """What publishes changes of the authentication status."""
        if self._auth is None:
            from acp_agent.server.auth_status import AuthStatusWatch  # noqa: PLC0415 - rare

            self._auth = AuthStatusWatch(
                self.services,
                self.secrets,
                sessions=lambda: self.active_manager.open_sessions() if self.active_manager else (),
                subscribers=self.subscribers,
            )
        return self._auth

    def _account_changed(self) -> None:
        self.auth.publish_soon()  # imports the watch only now

    @property
    def use_terminals(self) -> bool:
        """Whether the user opted in to commands in the editor's terminals."""
        return self._services is not None and self._services.config.editor.terminals

    @property
    def translate(self) -> Translator:
        """The translator of texts for the user; uses the configuration once it is read."""
        if self._services is not None:
            return self._services.translate
        from acp_agent.config.localization import choose_language  # noqa: PLC0415 - for an error

        return translator_for(
            choose_language(self._environ.get("ACP_AGENT_LANGUAGE"), self._environ)
        )

    def cancel(self, session: SessionId, editor: Client) -> None:
        """Stop the turn of a session that this editor has. Silent when there is none."""
        if self.active_manager is not None:
            self.active_manager.cancel(session, editor)

    def cancel_child(self, session: SessionId, child: SessionId, editor: Client) -> None:
        """Stop the work of a child of a session that this editor has. Silent when it is idle."""
        if self.active_manager is None:
            return
        parent = self.active_manager.find(session)
        if parent is not None and parent.client.current is editor:
            parent.turns.cancel_child(child)

    def release(self, editor: Client) -> None:
        """Release the sessions of an editor that left; see `SessionManager.release`."""
        if self.active_manager is not None:
            self.active_manager.release(editor)

    async def close(self) -> None:
        """Stop every turn, write what is left, close the store."""
        if self.active_manager is not None:
            await self.active_manager.close_all()
        if self._services is not None:
            await dismantle(self._services)


async def assemble(
    paths: Paths, *, secrets: Secrets, environ: Mapping[str, str], model_flag: str | None
) -> Services:
    """Read the configuration and open the store. Raises ConfigError, StoreError."""
    # In a thread: a key in the keyring may wait for the user to unlock it.
    config, models = await asyncio.to_thread(_load_models, paths, secrets, environ)
    store = await Store.open(paths.sessions_file)  # last, so that nothing that fails leaves it open

    sandboxes, plugins = SharedSandboxes(), SharedPlugins()
    models.plugin_driver = lambda provider: plugins.importer(
        paths.config_file.parent / "plugins"
    ).driver(provider)

    @_made_once
    def trust() -> TrustStore:
        from acp_agent.trust.store import TrustStore  # noqa: PLC0415 - for prompts only

        return TrustStore(paths.trust_file, config.trusted_folders)

    @_made_once
    def gate() -> Gate:
        from acp_agent.permissions.opening import open_permissions  # noqa: PLC0415 - for prompts only

        opened = open_permissions(paths, config, environ, trust=trust()).gate
        opened.repositories = repositories
        return opened

    @_made_once
    def repository_cache() -> RepositoryCache:
        from acp_agent.workspace.git_repositories import RepositoryCache  # noqa: PLC0415 - so

        return RepositoryCache()

    def repositories(stopped: Callable[[], bool]) -> GitRepositories:
        from acp_agent.workspace.git_repositories import GitRepositories  # noqa: PLC0415 - so

        confine = sandboxes.confine(config.sandbox, environ.get("PATH"))
        return GitRepositories(stopped, confine, repository_cache())

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
        trust=trust,
        repositories=repositories,
        outputs=paths.outputs_dir,
        checkpoints=paths.checkpoints_dir,
        memory=paths.memory_dir,
        user_folder=paths.config_file.parent,
        program_files=paths.program_files,
        mcp_logins=paths.mcp_logins_file,
        plugins=plugins,
        sandboxes=sandboxes,
        turn_limit=ConcurrencyLimit(config.limits.max_turns_all_sessions),
        call_limit=ConcurrencyLimit(config.limits.max_calls_all_sessions),
    )


def _made_once(make: Callable[[], _Made]) -> Callable[[], _Made]:
    """Return a function that makes a value at its first call; calls in other threads wait."""
    lock, cached = threading.Lock(), cache(make)

    def get() -> _Made:
        with lock:
            return cached()

    return get


def _load_models(
    paths: Paths, secrets: Secrets, environ: Mapping[str, str]
) -> tuple[Config, Models]:
    config = load_config(paths.config_file, environ, paths.parsed_config_file)
    with locate_errors(paths.config_file):
        if config.permissions != PermissionsConfig():
            from acp_agent.permissions.policy.loading import compile_rules  # noqa: PLC0415 - few have rules
            from acp_agent.permissions.policy.rules import Source  # noqa: PLC0415 - likewise

            compile_rules(config.permissions, Source(file=str(paths.config_file)))
        return config, Models(config, secrets, environ)


async def dismantle(services: Services) -> None:
    """Close what `assemble` opened."""
    await asyncio.gather(
        services.models.aclose(),
        services.store.close(),
        services.watch.aclose(),
        services.language_servers.aclose(),
        return_exceptions=True,
    )
    await services.sandboxes.aclose()  # when none of its programs runs any more
