"""What becomes of a session's checkpoints when it is forked or deleted."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from acp_agent.errors import WorkspaceError
from acp_agent.workspace.checkpoints import prune
from acp_agent.workspace.checkpoints.contract import Deadline

SECONDS = 10.0

_log = logging.getLogger(__name__)


async def adopt(folder: Path, source: str, session: str) -> None:
    """Let a fork have the checkpoints of its source. Without them it is a fork all the same."""
    try:
        await asyncio.to_thread(prune.adopt, folder, source, session, Deadline(SECONDS))
    except WorkspaceError as error:
        _log.warning("the fork %s has no checkpoints of its source: %s", session, error)


async def forget(folder: Path, session: str) -> None:
    """Forget the checkpoints of a session; where that fails the next sweep does it."""
    try:
        await asyncio.to_thread(prune.forget_session, folder, session, Deadline(SECONDS))
    except WorkspaceError as error:
        _log.warning("the checkpoints of %s are forgotten later: %s", session, error)
