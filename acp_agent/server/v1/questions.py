"""Questions to the user as forms (Agent Client Protocol v1, elicitation/create)."""

from __future__ import annotations

from acp_agent.ids import CallId, SessionId
from acp_agent.server.v1.elicitation import elicit
from acp_agent.tools.base import Answer, Question
from protocol.jsonrpc.connection import Connection
from protocol.v1 import types as acp

FIELD = "answer"


async def ask_by_form(
    connection: Connection, session: SessionId, call: CallId, question: Question
) -> Answer | None:
    """Ask and wait as long as the turn lives. None: the client failed to show the form.

    Raises:
        EditorGoneError: the client left before it answered.
    """
    request = acp.ElicitationFormMode(
        session_id=session,
        tool_call_id=call,
        message=question.text,
        requested_schema=acp.ElicitationSchema(
            properties={FIELD: _property(question)}, required=[FIELD]
        ),
    )
    response = await elicit(connection, request)
    if response is None:
        return None
    if response.action != "accept":
        return Answer(declined=True)
    value = (response.content or {}).get(FIELD)
    if not value and value not in (0, False):
        return Answer(declined=True)
    return Answer(text=", ".join(value) if isinstance(value, list) else str(value))


def _property(question: Question) -> acp.ElicitationPropertySchema:
    options = [
        acp.EnumOption(const=label, title=label, description=description or None)
        for label, description in question.options
    ]
    if not options:
        return acp.StringPropertySchema(title="Answer")
    if question.several:
        return acp.MultiSelectPropertySchema(
            title="Answer", items=acp.TitledMultiSelectItems(any_of=options)
        )
    return acp.StringPropertySchema(title="Answer", one_of=options)
