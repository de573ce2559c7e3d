"""Save a session's files before and after a turn changes them, compare and restore them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from acp_agent.errors import AcpAgentError, CheckpointTooSlowError, WorkspaceError
from acp_agent.events import AnyEvent, CheckpointMade, NoticeShown
from acp_agent.ids import new_checkpoint_id
from acp_agent.permissions.access import Access, WriteAccess, may_write
from acp_agent.session.confinement import Confinement
from acp_agent.session.core import SessionCore
from acp_agent.session.history.checkpoint_files import (
    SWEEP_SECONDS,
    ChangesByOthers,
    NotSaved,
    RestoredFiles,
    changed_files,
    not_saved,
    plan_restore,
    restored_files,
    skipped_names,
    spans,
    sweep,
)
from acp_agent.session.history.steering_changes import ChangeReports
from acp_agent.workspace.checkpoints.base import NO_GIT, Deadline, Rules, Snapshot, Span
from acp_agent.workspace.checkpoints.folders import FolderCheckpoints, FolderRestore
from acp_agent.workspace.threads import run_to_end

if TYPE_CHECKING:
    from acp_agent.content import CallContent

RESTORE_SECONDS = 120.0
CANCELLED_SECONDS = 2.0  # for which the end of a cancelled turn waits for the save

# Pause after a save that timed out: its folder was too large, or locked by another session.
RETRY_SECONDS = 300.0

UNSAVED = "The files cannot be restored to their state before this turn"
_NOT_SAVED = CheckpointMade(checkpoint="", why="turn", trees=())

_log = logging.getLogger(__name__)

T = TypeVar("T")


class Checkpoints:
    """Saves and restores the files of one session's folders, one operation at a time.

    Args:
        on_restored: called after files were restored.
        background_runs: returns whether a command runs in the background.
    """

    def __init__(
        self,
        core: SessionCore,
        on_restored: Callable[[], Awaitable[None]],
        background_runs: Callable[[], bool],
    ) -> None:
        self._core = core
        self._on_restored = on_restored
        self._lock = asyncio.Lock()
        self._disabled = not core.services.config.checkpoints.enabled
        self._retry_at = 0.0  # the end of the pause after a timeout, by time.monotonic()
        self._warning_shown = False
        self._due = False
        self._only_tools = True  # whether only file tools could write in the running turn
        self._closing = False
        self._checkpoints: FolderCheckpoints | None = None
        self._save_task: asyncio.Task[None] | None = None  # of the running turn
        self._save_deadline: Deadline | None = None
        self._turns = 0  # number of ended turns
        self._tasks: set[asyncio.Task[Any]] = set()
        self._restores: set[asyncio.Task[RestoredFiles]] = set()
        self._deadlines: set[Deadline] = set()
        self._reports = ChangeReports(core, background_runs)
        self._trees: dict[Path, str] = {}  # the last saved trees

    # -- turns -------------------------------------------------------------------------------

    async def before_call(self, access: Access) -> None:
        """Save the files before the first call of a turn that may write.

        If they cannot be saved, the user is warned once, and the call still runs.
        """
        is_tool = isinstance(access, WriteAccess)
        if self._save_task is None or (self._only_tools and not is_tool):
            if not may_write(access):
                return
            self._only_tools = self._only_tools and is_tool
        if self._save_task is None:
            self._save_task = self._run(self._save_before(self._turns))
        await asyncio.shield(self._save_task)
        if self._due:
            await self._reports.before_call(access, self._folder_checkpoints())

    async def command_diffs(self, access: Access) -> tuple[CallContent, ...]:
        """Return content that shows the files that a command changed since `before_call`."""
        return await self._reports.diffs(access, self._folder_checkpoints()) if self._due else ()

    async def check_background(self) -> None:
        """Warn about files that background commands changed since the last turn."""
        if await self._reports.compare_background(self._folder_checkpoints()):
            return
        with suppress(WorkspaceError):
            async with self._lock:
                deadline = Deadline(self._core.services.config.checkpoints.timeout)
                files = await self._current_files(deadline)
                await self._reports.report_background(await self._compare(files, deadline))

    async def _save_before(self, turn: int) -> None:
        async with self._lock:
            if self._is_outdated(turn):
                return
            if self._disabled or time.monotonic() < self._retry_at:
                await self._core.emit(_NOT_SAVED)
                return
            limit = self._save_deadline = Deadline(self._core.services.config.checkpoints.timeout)
            try:
                ran = self._reports.background_ran
                event, files = await self._save("turn", limit)
                if ran:
                    await self._reports.report_background(await self._compare(files, limit))
                trees = self._trees = {root: snapshot.tree for root, snapshot in files.items()}
                checkpoints = self._folder_checkpoints()
                await self._in_thread(limit, self._reports.set_trees, checkpoints, trees)
            except WorkspaceError as error:
                if not self._is_outdated(turn):
                    await self._core.emit(_NOT_SAVED)
                    await self._report_failure(error)
                return
            if self._is_outdated(turn):
                return
            self._due = True
            await self._core.emit(event)

    def _is_outdated(self, turn: int) -> bool:
        """Return whether a save for this turn is no longer needed."""
        return self._closing or self._turns != turn

    async def _report_failure(self, error: WorkspaceError) -> None:
        # After a timeout, pause. Other errors may be temporary: try again in the next turn.
        if isinstance(error, CheckpointTooSlowError):
            self._retry_at = time.monotonic() + RETRY_SECONDS
        if str(error) == NO_GIT:
            self._disabled = True
        if not self._warning_shown:
            self._warning_shown = True
            await self._core.emit(
                NoticeShown(severity="warning", title=UNSAVED, description=f"{error}.")
            )

    async def save_turn_end(self, *, cancelled: bool) -> None:
        """Save the files at the end of a turn that may have written.

        The turn's end waits for this, because later changes are not the turn's.
        """
        self._turns += 1
        task, limit = self._save_task, self._save_deadline
        if task is not None and not task.done() and limit is not None:
            limit.cancel()
            await asyncio.wait([task], timeout=CANCELLED_SECONDS)
        if not self._due or self._closing:
            return
        self._due = False
        seconds = self._core.services.config.checkpoints.timeout
        await self._save_end(min(seconds, CANCELLED_SECONDS) if cancelled else seconds)

    def reset_turn(self) -> None:
        """Reset the state for the next turn."""
        self._save_task = self._save_deadline = None
        self._only_tools = True
        self._reports.reset_turn()

    def _run(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._discard_task)
        return task

    def _discard_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # mark it as retrieved

    async def _save_end(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds), self._lock:
                limit = Deadline(seconds)
                event, files = await self._save("turn_end", limit)
                await self._core.emit(event)
                if not self._only_tools:
                    await self._reports.report_turn(await self._compare(files, limit))
                self._trees = {root: snapshot.tree for root, snapshot in files.items()}
        except (AcpAgentError, TimeoutError) as error:  # later restores leave more files unchanged
            _log.warning("the files were not saved at a turn's end: %s", str(error) or "too slow")
        else:
            limit = Deadline(SWEEP_SECONDS)
            self._deadlines.add(limit)
            sweep_task = self._run(sweep(self._core.services, limit))
            sweep_task.add_done_callback(lambda _: self._deadlines.discard(limit))

    async def _compare(self, files: Mapping[Path, Snapshot], deadline: Deadline) -> list[str]:
        """Return the files that differ from the last saved ones."""
        checkpoints = self._folder_checkpoints()
        return await self._in_thread(deadline, changed_files, checkpoints, self._trees, files)

    async def wait_saved(self) -> None:
        """Wait until the files are saved after the last turn."""
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    async def aclose(self) -> None:
        """Abort running work and wait for its end; a restore is not aborted."""
        with suppress(AcpAgentError):
            await self.check_background()
        self._closing = True
        if not self._restores:
            for deadline in self._deadlines:
                deadline.cancel()
        await self.wait_saved()
        self._reports.close()

    # -- restoring ---------------------------------------------------------------------------

    async def preview(
        self, checkpoint: str, history: Sequence[AnyEvent], *, force: bool = False
    ) -> RestoredFiles:
        """Return the changes that restoring a checkpoint would make.

        Args:
            force: whether files that others changed are restored, too.

        Raises:
            WorkspaceError: the checkpoint no longer exists, or cannot be read.
        """
        async with self._lock:
            deadline = Deadline(RESTORE_SECONDS)
            files = await self._current_files(deadline)
            plans, by_others = await self._plan(files, checkpoint, history, deadline, force=force)
            return restored_files(self._home, plans, by_others)

    async def restore(
        self, checkpoint: str, history: Sequence[AnyEvent], *, force: bool = False
    ) -> RestoredFiles:
        """Save the current files and restore a checkpoint; see `preview`.

        The restore finishes even if the caller is cancelled.

        Raises:
            WorkspaceError: the checkpoint no longer exists, or the current files cannot be saved.
            StoreError: the journal cannot be written.
        """
        task = asyncio.create_task(self._restore(checkpoint, history, force=force))
        self._restores.add(task)
        self._tasks.add(task)
        try:
            return await run_to_end(task)
        finally:
            self._restores.discard(task)
            self._tasks.discard(task)

    async def _restore(
        self, checkpoint: str, history: Sequence[AnyEvent], *, force: bool
    ) -> RestoredFiles:
        async with self._lock:
            deadline = Deadline(RESTORE_SECONDS)
            event, files = await self._save("restore", deadline, target=checkpoint)
            plans, by_others = await self._plan(files, checkpoint, history, deadline, force=force)
            if not any(plan.changes for plan in plans):
                return restored_files(self._home, plans, by_others)
            await self._core.emit(event)
            restore = self._folder_checkpoints().restore
            results = await self._in_thread(deadline, restore, plans, checkpoint)
            await self._on_restored()
            end_event, _ = await self._save("restore_end", Deadline(RESTORE_SECONDS))
            await self._core.emit(end_event)
            return restored_files(self._home, results, by_others, replaced=event.checkpoint)

    async def _plan(
        self,
        files: Mapping[Path, Snapshot],
        checkpoint: str,
        history: Sequence[AnyEvent],
        deadline: Deadline,
        *,
        force: bool,
    ) -> tuple[list[FolderRestore], ChangesByOthers]:
        only_tools = self._only_tools

        def owners(root: Path) -> list[Span]:
            return spans(history, checkpoint, str(root), files[root].tree, only_tools=only_tools)

        plan = partial(plan_restore, force=force)
        checkpoints = self._folder_checkpoints()
        return await self._in_thread(deadline, plan, checkpoints, files, checkpoint, owners)

    # -- the files ---------------------------------------------------------------------------

    def has(self, checkpoint: str) -> bool:
        """Return whether a checkpoint still exists."""
        return self._folder_checkpoints().has(checkpoint)

    async def skipped_files(self, checkpoint: str) -> NotSaved:
        """Return the files that a checkpoint left out; none if finding them takes too long."""
        async with self._lock:
            limit = Deadline(self._core.services.config.checkpoints.timeout)
            unsaved = self._folder_checkpoints().unsaved
            try:
                skipped = await self._in_thread(limit, unsaved, checkpoint)
            except WorkspaceError as error:
                _log.info(
                    "what the checkpoint %s does not have is not known: %s", checkpoint, error
                )
                return NotSaved()
        return not_saved(self._home, skipped)

    def _folder_checkpoints(self) -> FolderCheckpoints:
        """Return the `FolderCheckpoints` of the session's current folders."""
        core = self._core
        settings = core.services.config.checkpoints
        folders = (core.cwd, *core.directories)
        roots = tuple(dict.fromkeys(Path(folder).resolve() for folder in folders))
        if self._checkpoints is None or self._checkpoints.roots != roots:
            self._checkpoints = FolderCheckpoints(
                core.services.checkpoints,
                core.id,
                roots,
                Rules(
                    max_file_bytes=settings.max_file_bytes,
                    max_files=settings.max_files,
                    exclude=tuple(settings.exclude),
                ),
                confine=Confinement.from_services(core.services).writer,
            )
        return self._checkpoints

    async def _save(
        self,
        why: Literal["turn", "turn_end", "restore", "restore_end"],
        deadline: Deadline,
        *,
        target: str = "",
    ) -> tuple[CheckpointMade, dict[Path, Snapshot]]:
        name = new_checkpoint_id()
        files = await self._in_thread(deadline, self._folder_checkpoints().save, name)
        event = CheckpointMade(
            checkpoint=name,
            why=why,
            trees=tuple((str(root), snapshot.tree) for root, snapshot in files.items()),
            left_out=skipped_names(self._home, files),
            left_out_count=sum(len(snapshot.unsaved) for snapshot in files.values()),
            only_tools=self._only_tools and why in {"turn_end", "restore"},
            target=target,
        )
        return event, files

    async def _current_files(self, deadline: Deadline) -> dict[Path, Snapshot]:
        """Return a snapshot of the current files without making a checkpoint."""
        return await self._in_thread(deadline, self._folder_checkpoints().save, None)

    @property
    def _home(self) -> Path:
        """The folder to which the names of files are relative."""
        return self._core.cwd.resolve()

    async def _in_thread(self, deadline: Deadline, work: Callable[..., T], *args: object) -> T:
        """Run work, with the deadline as its last argument, in a thread, and wait for it.

        The work is aborted if the caller is cancelled.
        """
        self._deadlines.add(deadline)
        try:
            return await asyncio.to_thread(work, *args, deadline)
        except asyncio.CancelledError:
            deadline.cancel()
            raise
        finally:
            self._deadlines.discard(deadline)
