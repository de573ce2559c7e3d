"""Forms and pages for the user (Agent Client Protocol v1, elicitation/create)."""

from __future__ import annotations

import logging

from acp_agent.elicitation import Form, Page, Response
from acp_agent.errors import EditorGoneError
from acp_agent.ids import CallId, SessionId
from acp_agent.server.elicitation import accepted, malformed
from acp_agent.server.session_requests import Asked
from protocol.codec import typed_json
from protocol.jsonrpc.connection import Connection
from protocol.jsonrpc.errors import InvalidResultError, RpcError
from protocol.v1 import types as acp
from protocol.v1.methods import ELICITATION_COMPLETE, ELICITATION_CREATE

_log = logging.getLogger(__name__)


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
    client: Asked, request: acp.ElicitationFormMode | acp.ElicitationUrlMode
) -> Response | None:
    """Ask and wait as long as whoever asks does. None: the client failed to ask the user.

    An answer that does not fit the form counts as declined, an action that is not known as
    cancelled.

    Raises:
        EditorGoneError: the client left before it answered.
    """
    try:
        response = await client.request(ELICITATION_CREATE, request)
    except InvalidResultError as error:
        return malformed(str(error))
    except RpcError as error:
        _log.warning("the editor could not ask the user: %s", error)
        return None
    except ConnectionError:
        raise EditorGoneError("the editor left before the user answered") from None
    match response:
        case acp.ElicitationAcceptAction() if isinstance(request, acp.ElicitationFormMode):
            form = typed_json.decode_any(typed_json.encode(request.requested_schema))
            return accepted(form, response.content)
        case acp.ElicitationAcceptAction():
            return Response(action="accept")
        case acp.ElicitationDeclineAction():
            return Response(action="decline")
        case _:
            return Response(action="cancel")


def page_done(connection: Connection, page: Page) -> None:
    """Say that what the user visited a page for is done."""
    connection.notify(
        ELICITATION_COMPLETE, acp.CompleteElicitationNotification(elicitation_id=page.id)
    )
