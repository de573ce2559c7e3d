"""A git worktree of the session's repository, in which one agent works apart from the user."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from threading import Event

from acp_agent.errors import ToolError, WorkspaceError
from acp_agent.events import NoticeShown
from acp_agent.extensions.definitions.locations import WORKTREES
from acp_agent.ids import SessionId
from acp_agent.permissions.git_reads import runs_no_program
from acp_agent.permissions.paths import CommandContext, is_below
from acp_agent.session.confinement import Confinement
from acp_agent.session.core import SessionCore
from acp_agent.workspace.git_repositories import Repository
from acp_agent.workspace.git_status import run_git
from acp_agent.workspace.threads import run_to_end


class Worktree:
    """The worktree of an agent, on a branch of its own; it begins at the session's last commit.

    It is below the session's folder, so that programs find what is installed there.

    Args:
        agent: the agent's session; an agent that continues finds its worktree again.

    Attributes:
        is_kept: whether the worktree has changes, which outlive the agent.
    """

    def __init__(self, core: SessionCore, agent: SessionId) -> None:
        name = f"agent-{agent[-12:]}"
        self.branch = f"worktree-{name}"
        self.is_kept = False
        self._core = core
        self._cwd = os.path.realpath(core.cwd)
        self._folder = f"{self._cwd}{WORKTREES}{name}"
        self._base = ""  # the commit at which it begins; "" if an earlier run made it
        self._stopped = Event()

    @property
    def note(self) -> str:
        """Where the changes are, for the model; "" if there are none."""
        if not self.is_kept:
            return ""
        return (
            f"[Its changes are in the git worktree {self._folder} on the branch {self.branch}, "
            "and not in the working folder.]"
        )

    def create(self) -> Path:
        """Create the worktree and return the agent's folder in it. Blocks: runs git.

        Raises:
            ToolError: there is no repository with a commit, or git fails.
        """
        repository = self._repository(self._cwd)
        parent = Path(self._folder).parent
        folder = Path(self._folder, os.path.relpath(self._cwd, repository.work_tree))
        try:
            if os.path.realpath(parent) != str(parent):
                raise ToolError(f"{parent} is a link, so no worktree is made there")
            if not os.path.lexists(self._folder):
                parent.mkdir(parents=True, exist_ok=True)
                with suppress(FileExistsError), (parent / ".gitignore").open("x") as file:
                    file.write("*\n")
                base = self._git(repository, self._cwd, "rev-parse", "--verify", "HEAD")
                command = ("worktree", "add", "--quiet", "--no-track", "-b", self.branch)
                self._git(repository, self._cwd, *command, self._folder, base)
                self._base = base
                folder.mkdir(parents=True, exist_ok=True)  # it may have no committed file
        except OSError as error:
            raise ToolError(f"the agent's worktree cannot be made: {error}") from None
        except WorkspaceError as error:
            advice = "commit something first, or use an agent without `isolation`"
            raise ToolError(f"the agent has no worktree: {error}", advice=advice) from None
        return folder

    def stop(self) -> None:
        """Stop the running git."""
        self._stopped.set()

    def leave(self) -> None:
        """Remove the worktree and its branch if nothing changed. Blocks: runs git."""
        self.is_kept = os.path.isdir(self._folder)
        self._stopped.clear()
        with suppress(ToolError, WorkspaceError):  # kept if its state is not known
            repository = self._repository(self._folder)
            head = self._git(repository, self._folder, "rev-parse", "--verify", "HEAD")
            if head == self._base and not self._git(
                repository, self._folder, "status", "--porcelain", "--ignored=no"
            ):
                repository = self._repository(self._cwd)
                self._git(repository, self._cwd, "worktree", "remove", self._folder)
                self.is_kept = False
                self._git(repository, self._cwd, "branch", "-D", self.branch)

    def _repository(self, folder: str) -> Repository:
        """Return the repository of a folder. Raises ToolError if git cannot be used there."""
        repositories = self._core.services.repositories(self._stopped.is_set)
        home = str(self._core.services.home)
        context = CommandContext(
            cwd=folder, roots=(self._cwd, folder), home=home, repositories=repositories
        )
        found = repositories.used_in(folder)
        if not found or not is_below(folder, [found[0].work_tree]):
            raise ToolError(
                "the agent works in a git worktree, and this folder is in no repository",
                advice="use another agent, or one without `isolation`",
            )
        if not runs_no_program(folder, context):
            raise ToolError("git would run programs that this repository names; the user can look")
        return found[0]

    def _git(self, repository: Repository, folder: str, *arguments: str) -> str:
        """Return the output of a git command that may change the repository and the worktree."""
        confinement = Confinement.from_services(self._core.services)
        writable = [repository.common_dir, str(Path(self._folder).parent)]
        output = run_git(arguments, folder, self._stopped.is_set, confinement.writer(writable))
        return output.decode("utf-8", "replace").strip()


@asynccontextmanager
async def agent_worktree(
    core: SessionCore, agent: SessionId
) -> AsyncIterator[tuple[Worktree, Path]]:
    """Create a worktree for an agent, and remove it at the end if it has no changes.

    Yields the worktree and the agent's folder in it.

    Raises:
        ToolError: it cannot be created.
    """
    worktree = Worktree(core, agent)
    try:
        folder = await run_to_end(asyncio.to_thread(worktree.create), worktree.stop)
        yield worktree, folder
    except BaseException:
        await run_to_end(asyncio.to_thread(worktree.leave))
        if worktree.is_kept:
            await core.emit(
                NoticeShown(
                    severity="info",
                    title="The changes of an agent that ended early are in its worktree.",
                    description=worktree.note[1:-1],
                )
            )
        raise
    await run_to_end(asyncio.to_thread(worktree.leave))
