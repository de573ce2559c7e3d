"""Questions to the user as forms (Agent Client Protocol v1, elicitation/create)."""

from __future__ import annotations

from acp_agent.ids import CallId, SessionId
from acp_agent.server.questions import answer_of, form_of
from acp_agent.server.v1.elicitation import elicit, form_request
from acp_agent.tools.base import Answer, Question
from protocol.jsonrpc.connection import Connection


async def ask_by_form(
    connection: Connection, session: SessionId, call: CallId, question: Question
) -> Answer | None:
    """Ask and wait as long as the turn lives. None: the client failed to show the form.

    Raises:
        EditorGoneError: the client left before it answered.
    """
    response = await elicit(connection, form_request(form_of(question), session, call))
    return None if response is None else answer_of(question, response)
