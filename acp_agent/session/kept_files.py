"""The saved files of sessions: copied for a fork, removed with a session, removed with age."""

from __future__ import annotations

import asyncio
import logging
import shutil
from pathlib import Path

from acp_agent.errors import AcpAgentError, SessionNotFoundError, WorkspaceError
from acp_agent.ids import SessionId
from acp_agent.session.services import Services
from acp_agent.workspace.checkpoints import prune
from acp_agent.workspace.checkpoints.base import Deadline

SECONDS = 10.0
SWEEP_SECONDS = 120.0

_log = logging.getLogger(__name__)


async def adopt(folder: Path, source: str, session: str) -> None:
    """Let a fork have the checkpoints of its source. Without them it is a fork all the same."""
    try:
        await asyncio.to_thread(prune.copy_session, folder, source, session, Deadline(SECONDS))
    except WorkspaceError as error:
        _log.warning("the fork %s has no checkpoints of its source: %s", session, error)


async def forget(folder: Path, outputs: Path, session: str) -> None:
    """Remove the outputs and the checkpoints of a session that was deleted.

    Where its checkpoints cannot be removed, or not in time, the next sweep does it.

    Args:
        folder: where checkpoints are kept.
        outputs: where outputs are, in a folder for each session.
        session: one that was in the store: its id is safe as a folder's name.
    """
    await asyncio.to_thread(shutil.rmtree, outputs / session, ignore_errors=True)
    try:
        await asyncio.to_thread(prune.forget_session, folder, session, Deadline(SECONDS))
    except WorkspaceError as error:
        _log.warning("the checkpoints of %s are forgotten later: %s", session, error)


async def sweep(services: Services, deadline: Deadline) -> None:
    """Once a day, remove the checkpoints of sessions that are gone, and the oldest."""
    folder = services.checkpoints
    try:
        if not await asyncio.to_thread(prune.is_due, folder):
            return
        gone = set()
        for session in await asyncio.to_thread(prune.sessions_with_checkpoints, folder):
            try:
                await services.store.get(SessionId(session))
            except SessionNotFoundError:
                gone.add(session)
        most = services.config.checkpoints.max_bytes
        await asyncio.to_thread(prune.sweep, folder, gone, most, deadline)
    except AcpAgentError as error:  # it is due again with the next turn
        _log.info("old checkpoints were not removed: %s", error)
