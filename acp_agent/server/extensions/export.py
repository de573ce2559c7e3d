"""`_acp-agent/session/export`: a session as text, part by part."""

from __future__ import annotations

from typing import Any

from acp_agent.errors import InvalidInputError
from acp_agent.ids import SessionId
from acp_agent.server.core import Core
from acp_agent.server.extensions.types import ExportSessionRequest, ExportSessionResponse
from acp_agent.session.export import export_page
from protocol.codec import typed_json


async def export_session(core: Core, params: dict[str, Any]) -> ExportSessionResponse:
    """A part of a session, open or stored, whoever writes it.

    Raises:
        InvalidInputError: the parameters are wrong.
        SessionNotFoundError: there is no such session.
        StoreError: it cannot be read.
    """
    try:
        request = typed_json.decode(typed_json.encode(params), ExportSessionRequest)
    except typed_json.InvalidValueError as error:
        raise InvalidInputError(f"invalid params: {error}", field=error.field or None) from None
    services = await core.services()
    session = SessionId(request.session_id)
    if core.opened is not None:
        await core.opened.settled(session)
    page = await export_page(
        services.store,
        session,
        form=request.format,
        secrets=services.secrets.values(),
        limit=request.max_bytes,
        cursor=request.cursor,
    )
    return ExportSessionResponse(content=page.content, next_cursor=page.next_cursor)
