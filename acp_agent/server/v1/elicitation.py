"""Forms and pages for the user (Agent Client Protocol v1, elicitation/create)."""

from __future__ import annotations

from acp_agent.elicitation import Form, Page, Response
from acp_agent.ids import CallId, SessionId
from acp_agent.server.elicitation import Said, users_response
from acp_agent.server.session_requests import Requester
from protocol.codec import typed_json
from protocol.jsonrpc.connection import Connection
from protocol.v1 import types as acp
from protocol.v1.methods import ELICITATION_COMPLETE, ELICITATION_CREATE


def form_request(form: Form, session: SessionId, call: CallId | None) -> acp.ElicitationFormMode:
    """The request that shows a form.

    Raises:
        InvalidValueError: the form's schema is none that the protocol allows.
    """
    return acp.ElicitationFormMode(
        session_id=session,
        tool_call_id=call,
        message=form.message,
        requested_schema=typed_json.decode(typed_json.encode(form.schema), acp.ElicitationSchema),
    )


def page_request(page: Page, session: SessionId, call: CallId | None) -> acp.ElicitationUrlMode:
    """The request that sends the user to a page."""
    return acp.ElicitationUrlMode(
        session_id=session,
        tool_call_id=call,
        message=page.message,
        url=page.url,
        elicitation_id=page.id,
    )


def page_request_outside(page: Page, request: acp.RequestId) -> acp.ElicitationUrlMode:
    """The same, outside any session: while the client's own `request` is being answered."""
    return acp.ElicitationUrlMode(
        request_id=request, message=page.message, url=page.url, elicitation_id=page.id
    )


async def elicit(
    client: Requester, request: acp.ElicitationFormMode | acp.ElicitationUrlMode
) -> Response | None:
    """Ask and wait as long as whoever asks does; see `users_response`."""
    schema = None
    if isinstance(request, acp.ElicitationFormMode):
        schema = typed_json.decode_any(typed_json.encode(request.requested_schema))
    return await users_response(client.request(ELICITATION_CREATE, request), _said, schema)


def _said(response: acp.CreateElicitationResponse) -> Said:
    match response:
        case acp.ElicitationAcceptAction():
            return "accept", response.content
        case acp.ElicitationDeclineAction():
            return "decline", None
        case _:
            return "cancel", None


def page_done(connection: Connection, page: Page) -> None:
    """Say that what the user visited a page for is done."""
    connection.notify(
        ELICITATION_COMPLETE, acp.CompleteElicitationNotification(elicitation_id=page.id)
    )
