"""Forms and pages for the user (Agent Client Protocol v1 and v2, elicitation/create).

The values of an answer are checked against the form before they are used (Elicitation, Form mode:
"Agents SHOULD validate them again").
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import date, datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from acp_agent.content import JsonObject
from acp_agent.elicitation import Form, Page, Response
from acp_agent.errors import EditorFailedError, InvalidInputError
from acp_agent.server.session_requests import Requester, await_user_answer
from acp_agent.server.session_tree import Target
from protocol.codec import typed_json
from protocol.jsonrpc.connection import Connection
from protocol.jsonrpc.methods import Method

MAX_TEXT = 100_000  # characters of one field

_log = logging.getLogger(__name__)


async def ask_form(client: Requester, version: int, form: Form, target: Target) -> Response | None:
    """Ask the user to fill in a form; see `_response`.

    Raises:
        InvalidValueError: the protocol does not allow the form's schema.
    """
    types = _messages(version)
    schema = typed_json.decode(typed_json.encode(form.schema), types.schema)
    request = types.form(
        session_id=target.session,
        tool_call_id=target.call,
        message=form.message,
        requested_schema=schema,
    )
    sent_schema = typed_json.decode_any(typed_json.encode(schema))
    return await _response(types, client.request(types.create, request), sent_schema)


async def ask_page(
    client: Requester, version: int, page: Page, target: Target | int | str
) -> Response | None:
    """Send the user to a page; see `_response`.

    Args:
        target: what the page is about, or the id of the client's request that needs it.
    """
    types = _messages(version)
    subject = (
        {"session_id": target.session, "tool_call_id": target.call}
        if isinstance(target, Target)
        else {"request_id": target}
    )
    request = types.page(message=page.message, url=page.url, elicitation_id=page.id, **subject)
    return await _response(types, client.request(types.create, request), None)


def page_done(connection: Connection, version: int, page: Page) -> None:
    """Report that the user has finished on a page."""
    types = _messages(version)
    connection.notify(types.complete, types.completed(elicitation_id=page.id))


class _Messages(NamedTuple):
    """The messages of one version of the protocol."""

    create: Method[Any, Any]
    form: Callable[..., object]
    schema: type[object]
    page: Callable[..., object]
    accept: type[Any]
    decline: type[object]
    complete: Method[Any, None]
    completed: Callable[..., object]


def _messages(version: int) -> _Messages:
    if version == 1:
        from protocol.v1 import methods as methods_v1, types as v1  # noqa: PLC0415 - as spoken

        return _Messages(
            create=methods_v1.ELICITATION_CREATE,
            form=v1.ElicitationFormMode,
            schema=v1.ElicitationSchema,
            page=v1.ElicitationUrlMode,
            accept=v1.ElicitationAcceptAction,
            decline=v1.ElicitationDeclineAction,
            complete=methods_v1.ELICITATION_COMPLETE,
            completed=v1.CompleteElicitationNotification,
        )
    from protocol.v2 import methods as methods_v2, types as v2  # noqa: PLC0415 - as spoken

    return _Messages(
        create=methods_v2.ELICITATION_CREATE,
        form=v2.ElicitationFormMode,
        schema=v2.ElicitationSchema,
        page=v2.ElicitationUrlMode,
        accept=v2.ElicitationAcceptAction,
        decline=v2.ElicitationDeclineAction,
        complete=methods_v2.ELICITATION_COMPLETE,
        completed=v2.CompleteElicitationNotification,
    )


async def _response(
    types: _Messages, pending_request: Awaitable[Any], schema: JsonObject | None
) -> Response | None:
    """Return what the user did. None: the client failed to ask the user.

    An answer of the wrong shape, or one that does not fit the form, counts as declined; an unknown
    action as cancelled.

    Args:
        schema: the form as it was sent; None for a page, whose input the client does not see.

    Raises:
        EditorGoneError: the client left before it answered.
    """
    try:
        answer = await await_user_answer(pending_request)
    except EditorFailedError as error:
        if error.answered:
            return _decline(str(error))
        _log.warning("the editor could not ask the user: %s", error)
        return None
    if isinstance(answer, types.decline):
        return Response(action="decline")
    if not isinstance(answer, types.accept):
        return Response(action="cancel")
    return Response(action="accept") if schema is None else accept_content(schema, answer.content)


def accept_content(schema: JsonObject, content: Mapping[str, Any] | None) -> Response:
    """Return what the user filled in, or a decline if it does not fit the form.

    Args:
        content: the values by field, as received.
    """
    try:
        return Response(action="accept", content=validate_content(schema, content or {}))
    except InvalidInputError as error:
        return _decline(str(error))


def _decline(reason: str) -> Response:
    """Return a decline in place of an unusable answer, and log why."""
    _log.warning(
        "the editor's answer to a form cannot be used, which counts as declined: %s", reason
    )
    return Response(action="decline")


def validate_content(schema: JsonObject, content: Mapping[str, Any]) -> JsonObject:
    """Return the values of the form's fields, without empty (null) and unknown fields.

    A `pattern` is not checked: the form may be untrusted, and a pattern can be made to run forever.
    A field of an unknown type keeps its value.

    Raises:
        InvalidInputError: a value is missing or does not fit its field; the message names the
            field and never its value.
    """
    fields: JsonObject = schema.get("properties") or {}
    values = {
        name: _value(name, field, content[name])
        for name, field in fields.items()
        if content.get(name) is not None
    }
    missing = [name for name in schema.get("required") or () if name not in values]
    if missing:
        raise InvalidInputError(f"{missing[0]} is required", field=missing[0])
    return values


def _value(name: str, field: JsonObject, value: Any) -> Any:
    match field.get("type"):
        case "string":
            return _text(name, field, value)
        case "integer" | "number" as kind:
            return _number(name, field, value, integer=kind == "integer")
        case "boolean":
            _check(name, isinstance(value, bool), "must be true or false")
            return value
        case "array":
            return _choices(name, field, value)
        case _:
            return value


def _text(name: str, field: JsonObject, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidInputError(f"{name} must be a text", field=name)
    _check(name, len(value) <= field.get("maxLength", MAX_TEXT), "is too long")
    _check(name, len(value) >= field.get("minLength", 0), "is too short")
    choices = field.get("enum") or [option["const"] for option in field.get("oneOf") or ()]
    _check(name, not choices or value in choices, "must be one of the choices")
    is_valid_format = _FORMATS.get(str(field.get("format")))
    if is_valid_format is not None:
        try:
            valid = is_valid_format(value)
        except ValueError:
            valid = False
        _check(name, bool(valid), f"must be in the format {field['format']}")
    return value


def _number(name: str, field: JsonObject, value: Any, *, integer: bool) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInputError(f"{name} must be a number", field=name)
    number: int | float = value
    if integer and isinstance(number, float):
        _check(name, number.is_integer(), "must be a whole number")
        number = int(number)  # JSON does not distinguish 3 and 3.0
    low, high = field.get("minimum"), field.get("maximum")
    _check(name, low is None or number >= low, f"must be at least {low}")
    _check(name, high is None or number <= high, f"must be at most {high}")
    return number


def _choices(name: str, field: JsonObject, value: Any) -> list[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(choice, str) for choice in value):
        raise InvalidInputError(f"{name} must be a list of choices", field=name)
    items: JsonObject = field.get("items") or {}
    choices = items.get("enum") or [option["const"] for option in items.get("anyOf") or ()]
    _check(
        name,
        not choices or all(choice in choices for choice in value),
        "must be of the choices alone",
    )
    _check(name, len(set(value)) == len(value), "must have each choice once")
    _check(name, len(value) >= field.get("minItems", 0), "has too few choices")
    _check(name, len(value) <= field.get("maxItems", len(value)), "has too many choices")
    return list(value)


def _check(name: str, valid: bool, reason: str) -> None:
    if not valid:
        raise InvalidInputError(f"{name} {reason}", field=name)


def _is_address(text: str) -> bool:
    name, at, host = text.rpartition("@")
    return bool(name and at and host) and not any(character.isspace() for character in text)


def _is_uri(text: str) -> bool:
    return bool(urlsplit(text).scheme) and not any(character.isspace() for character in text)


# The formats of the protocol; text in another format is not checked.
_FORMATS: dict[str, Callable[[str], bool]] = {
    "email": _is_address,
    "uri": _is_uri,
    "date": lambda text: date.fromisoformat(text) is not None,
    "date-time": lambda text: datetime.fromisoformat(text).tzinfo is not None,
}
