"""The checks of a session's edits (`acp_agent.agent.resources.EditChecks`), loaded when needed.

The modules of language servers are imported in a thread when a file is first read or changed.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from acp_agent.events import NoticeShown
from acp_agent.extensions.definitions.locations import project_top
from acp_agent.session.core import SessionCore
from acp_agent.trust.store import code_item
from acp_agent.workspace.files import WorkspaceFiles

if TYPE_CHECKING:
    from acp_agent.language_servers.edit_checks import EditChecks
    from acp_agent.language_servers.problems import Problem
    from acp_agent.language_servers.service import LanguageServers

_log = logging.getLogger(__name__)


class SessionEditChecks:
    """The checks of one session's edits."""

    def __init__(self, core: SessionCore, files: WorkspaceFiles) -> None:
        self._core = core
        self._files = files
        self._use_servers = core.services.config.use_language_servers
        self._enabled = True
        self._checks: EditChecks | None = None
        self._servers: LanguageServers | None = None
        self._know_symbols = False
        self._notice_shown = False
        self._load_task: asyncio.Task[None] | None = None
        self._touched: dict[Path, None] = {}  # until the checks are loaded
        self._changed: dict[Path, str | None] = {}

    @property
    def servers(self) -> LanguageServers | None:
        """The session's language servers; None before a file is read or changed."""
        return self._servers

    @property
    def know_symbols(self) -> bool:
        """Return whether a server that knows definitions of symbols has run in this session.

        It never becomes false again, to preserve the provider's cache: the list of tools changes at
        most once in a session, early, when the first file of a language is touched.
        """
        if not self._know_symbols and self._servers is not None:
            self._know_symbols = bool(self._servers.running_with("textDocument/definition"))
        return self._know_symbols

    @property
    def has_changes(self) -> bool:
        """Return whether changed files are not checked yet."""
        return bool(self._changed) or (self._checks is not None and self._checks.has_changes)

    def record_read(self, path: Path) -> None:
        """Record that a file was read. Does not block."""
        if self._checks is not None:
            self._checks.record_read(path)
        elif self._enabled and self._use_servers:
            self._touched[path] = None
            self._load()

    def record_change(self, path: Path, old: str | None) -> None:
        """Record that a file was changed."""
        if self._checks is not None:
            self._checks.record_change(path, old)
        elif self._enabled:
            self._changed.setdefault(path, old)

    def record_command(self) -> None:
        """Record that a command may have changed files."""
        if self._checks is not None:
            self._checks.record_command()

    async def problems(self) -> str:
        """Check the changed files; return the new problems, a line each."""
        if self._checks is None:
            await asyncio.shield(self._load())
        if self._checks is None:
            return ""
        try:
            return self._describe(await self._checks.problems())
        except Exception:  # noqa: BLE001 - a failed check must not fail the edit
            _log.exception("the checks of an edit broke")
            return ""

    def late_problems(self) -> str:
        """Return new problems that were found after the last report."""
        return "" if self._checks is None else self._describe(self._checks.late_problems())

    async def aclose(self) -> None:
        """Stop the session's use of the servers."""
        self._enabled = False
        if self._load_task is not None:
            await asyncio.wait([self._load_task])
        if self._servers is not None:
            await self._servers.aclose()

    def _may_run_code(self) -> bool:
        """Return whether the user trusts the code of all of the session's folders."""
        trusts = self._core.services.trust().trusts
        return all(trusts(code_item(project_top(root))) for root in self._files.roots)

    def _notify_untrusted(self, names: Sequence[str]) -> None:
        """Notify the user, once, that the project's own servers are not used."""
        if self._notice_shown:
            return
        self._notice_shown = True
        notice = NoticeShown(
            severity="info",
            title=f"Language servers of the project are not used: {', '.join(names)}.",
            description="Whoever made the project made them, too. /trust lets them run.",
        )
        self._core.background.spawn(self._core.notify(notice))

    def _describe(self, problems: Sequence[Problem]) -> str:
        from acp_agent.language_servers.problems import describe_problems  # noqa: PLC0415 - loaded

        return describe_problems(problems, self._files.roots[0]) if problems else ""

    def _load(self) -> asyncio.Task[None]:
        if self._load_task is None:
            self._load_task = asyncio.create_task(self._load_checks())
        return self._load_task

    async def _load_checks(self) -> None:
        try:
            await asyncio.to_thread(_import)
            self._make_checks()
        except Exception:  # noqa: BLE001 - edits work without checks
            _log.exception("the language servers cannot be used")
            self._enabled = False
            self._changed.clear()

    def _make_checks(self) -> None:
        from acp_agent.language_servers.edit_checks import EditChecks  # noqa: PLC0415 - loaded
        from acp_agent.language_servers.service import LanguageServers  # noqa: PLC0415 - loaded
        from acp_agent.language_servers.syntax_check import SyntaxChecks  # noqa: PLC0415 - loaded
        from acp_agent.session.confinement import Confinement  # noqa: PLC0415 - likewise

        core = self._core
        services = core.services
        self._servers = LanguageServers(
            services.language_servers.pool(
                services.environ, Confinement.from_services(services).language_server
            ),
            self._files,
            services.config.language_servers,
            self._may_run_code,
            enabled=self._use_servers,
            on_untrusted=self._notify_untrusted,
        )
        syntax = SyntaxChecks(
            self._files.roots, services.environ.get("PATH", os.defpath), services.confine
        )
        self._checks = EditChecks(self._servers, syntax.new_problems)
        for path in self._touched:
            self._checks.record_read(path)
        for path, old in self._changed.items():
            self._checks.record_change(path, old)
        self._touched.clear()
        self._changed.clear()


def _import() -> None:
    """Import the modules of the checks. Takes some milliseconds: call it in a thread."""
    import acp_agent.language_servers.edit_checks  # noqa: PLC0415 - likewise
    import acp_agent.language_servers.pool  # noqa: PLC0415 - likewise
    import acp_agent.language_servers.syntax_check  # noqa: F401, PLC0415 - likewise
    from acp_agent.language_servers.table import built_in_servers  # noqa: PLC0415 - likewise

    built_in_servers()
