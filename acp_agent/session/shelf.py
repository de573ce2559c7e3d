"""What can be done with a session of the store without opening it."""

from __future__ import annotations

from acp_agent.events import TitleChanged
from acp_agent.ids import SessionId
from acp_agent.session.manager import SessionManager
from acp_agent.session.session import Session
from acp_agent.session.titles import tidy_title


async def look_up(manager: SessionManager, session_id: SessionId) -> Session | None:
    """A session that is open in this process; None where it rests in the store. Changes nothing.

    Raises:
        SessionNotFoundError: there is no such session.
    """
    session = manager.find(session_id)
    if session is None:
        await manager.services.store.get(session_id)
    return session


async def set_title(manager: SessionManager, session_id: SessionId, title: str) -> str:
    """Give a session a title that no other replaces but the user's next; gives it as it is kept.

    Whichever editor has the session open is shown it.

    Raises:
        InvalidInputError: nothing is left of the title without the spaces around it.
        SessionNotFoundError: there is no such session.
        SessionBusyError: another process writes it.
        StoreError: it could not be written.
    """
    event = TitleChanged(title=tidy_title(title), by="user")
    await look_up(manager, session_id)
    async with manager.door(session_id):
        session = await manager.at_door(session_id)
        if session is None:
            store = manager.services.store
            lease = store.lease(session_id)
            try:
                await store.append(session_id, [event])
            finally:
                lease.release()
    if session is not None:
        await session.emit(event)
    return event.title


async def archive(manager: SessionManager, session_id: SessionId) -> None:
    """Leave a session out of lists; one that is open is closed first, in whichever editor.

    Raises:
        SessionNotFoundError: there is no such session.
        SessionBusyError: another process has it open.
        StoreError: it could not be written.
    """
    store = manager.services.store
    await store.get(session_id)
    async with manager.door(session_id):
        await manager.shut(session_id)
        lease = store.lease(session_id)
        try:
            await store.archive(session_id)
        finally:
            lease.release()


async def unarchive(manager: SessionManager, session_id: SessionId) -> None:
    """Put a session into lists again, whether or not it is open anywhere.

    Raises:
        SessionNotFoundError: there is no such session.
        StoreError: it could not be written.
    """
    await manager.services.store.archive(session_id, archived=False)
