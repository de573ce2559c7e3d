"""Create new sessions, reopen stored ones and fork them.

Errors are those of the methods of `SessionManager`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from acp_agent.errors import InvalidInputError
from acp_agent.events import AnyEvent, ConfigChanged, SessionStarted, SystemPromptGiven
from acp_agent.ids import SessionId, new_session_id
from acp_agent.session.history.interruption import close_lost_commands, close_open_turn
from acp_agent.session.services import Services
from acp_agent.session.session import Session
from acp_agent.session.store.event_codec import recovered_events

if TYPE_CHECKING:
    from acp_agent.config.types import Config
    from acp_agent.session.history.fork import ForkPoint
    from acp_agent.session.store.lease import Lease

_log = logging.getLogger(__name__)


async def create(
    services: Services,
    cwd: str,
    directories: Sequence[str],
    system_prompt: SystemPromptGiven | None,
) -> Session:
    """Create a session, write it to the store and return it; see `SessionManager.create`."""
    folder, additional_folders = await asyncio.to_thread(folders, cwd, directories)
    model = await services.account.choose_for_new()
    session_id = new_session_id()
    first_events: list[AnyEvent] = [
        SessionStarted(
            cwd=str(folder), directories=tuple(str(path) for path in additional_folders)
        ),
        ConfigChanged(option="mode", value=services.config.mode),
        ConfigChanged(option="model", value=model.ref),
        *_agent_event(services.config),
        *(() if system_prompt is None else (system_prompt,)),
    ]
    lease = services.store.lease(session_id)
    try:
        await services.store.create(session_id, first_events)
    except BaseException:
        await _discard(services, session_id, lease)
        raise
    session = Session(
        session_id,
        cwd=folder,
        directories=additional_folders,
        model=model,
        services=services,
        lease=lease,
    )
    session.core.apply(first_events)
    return session


def _agent_event(config: Config) -> Sequence[AnyEvent]:
    return () if config.agent is None else (ConfigChanged(option="agent", value=config.agent),)


async def reopen(services: Services, session_id: SessionId) -> Session:
    """Return a stored session; an open turn is closed as interrupted first."""
    record = await services.store.get(session_id)
    lease = services.store.lease(session_id)
    try:
        events = recovered_events(await services.store.read_all(session_id))
        closing_events = [*close_lost_commands(events), *close_open_turn(events)]
        await services.store.append(session_id, closing_events)
        events += closing_events
        session = Session(
            session_id,
            cwd=Path(record.cwd),
            directories=[Path(folder) for folder in record.directories],
            model=None,
            services=services,
            lease=lease,
        )
        session.core.restore(events)
        await session.core.settings.find_model()
    except BaseException:
        lease.release()
        raise
    return session


async def fork(
    services: Services,
    source: SessionId,
    cwd: str,
    directories: Sequence[str],
    *,
    system_prompt: SystemPromptGiven | None,
    point: ForkPoint | None,
) -> Session:
    """Return a new session with a copy of another's journal; see `SessionManager.fork`."""
    from acp_agent.session.history.checkpoint_files import copy_checkpoints  # noqa: PLC0415 - for forks only
    from acp_agent.session.history.fork import ForkedJournal  # noqa: PLC0415 - likewise

    folder, additional_folders = await asyncio.to_thread(folders, cwd, directories)
    journal = ForkedJournal(
        source,
        await services.store.read_all(source),
        cwd=folder,
        directories=additional_folders,
        system_prompt=system_prompt,
        point=point,
    )
    session_id = new_session_id()
    lease = services.store.lease(session_id)
    try:
        await services.store.fork(session_id, source, journal.copied, journal.added)
        session = Session(
            session_id,
            cwd=folder,
            directories=additional_folders,
            model=None,
            services=services,
            lease=lease,
        )
        session.core.apply(journal.events())
        await session.core.settings.find_model()
        await copy_checkpoints(services.checkpoints, source, session_id)
    except BaseException:
        await _discard(services, session_id, lease)
        raise
    return session


async def _discard(services: Services, session_id: SessionId, lease: Lease) -> None:
    """Remove a session whose creation failed or was cancelled; no client knows its id.

    The removal finishes even if the caller is cancelled, as store operations do. The next sweep
    removes copied checkpoints.
    """
    deletion = asyncio.create_task(services.store.delete(session_id))
    while not deletion.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([deletion])
    lease.release()
    if not deletion.cancelled() and (error := deletion.exception()) is not None:
        _log.warning(
            "the session %s was not created, and may be in the store: %s", session_id, error
        )


def folders(cwd: str, directories: Sequence[str]) -> tuple[Path, list[Path]]:
    """Return a session's folders as paths, after a check that each exists. Blocks."""
    folder = _folder(cwd, "cwd")
    additional_folders = [
        _folder(path, f"additionalDirectories[{index}]") for index, path in enumerate(directories)
    ]
    return folder, additional_folders


def _folder(text: str, field: str) -> Path:
    path = Path(text)
    if not path.is_absolute():
        raise InvalidInputError(f"{field}: expected an absolute path, got {text!r}", field=field)
    if not os.path.isdir(path):
        raise InvalidInputError(f"{field}: there is no folder {text!r}", field=field)
    return path
