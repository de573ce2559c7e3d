"""Pass a server's elicitation requests on to the editor.

Source: Model Context Protocol, Elicitation. A form may not ask for a secret: what the user types is
shown, stored, and sent to a model.
"""

from __future__ import annotations

import re
import uuid
from typing import Any, Protocol
from urllib.parse import urlsplit

import mcp_types as types

from acp_agent.config.secret_questions import asks_for_secret as question_asks
from acp_agent.elicitation import Form, Page, Response

_FIELDS = 30  # of a form
_LONGEST_MESSAGE = 4_000  # characters

# What a field must not so much as name: it holds a value, where a question may be about anything.
_SECRET = re.compile(
    r"pass(word|wd|code|phrase)|secret|token|credential|private.?key|(api|access).?key"
    r"|\bpin\b|\bcvv2?\b|\botp\b|one.?time.?code|card.?number|\bssn\b|密码|口令|令牌",
    re.IGNORECASE,
)


class Asker(Protocol):
    """The user, as a server reaches them."""

    async def ask_form(self, form: Form) -> Response | None:
        """Let the user fill in a form. None: nobody can."""
        ...

    async def ask_page(self, page: Page) -> Response | None:
        """Send the user to a page. None: nobody can."""
        ...

    def page_done(self, visit: str) -> None:
        """What the user was sent to a page for is done."""
        ...

    async def refused(self, what: str) -> None:
        """A question was not passed on, for this reason."""
        ...


async def answered(params: types.ElicitRequestParams, asker: Asker) -> types.ElicitResult:
    """What the user answers; `decline` where nobody can ask them, or may."""
    message = params.message[:_LONGEST_MESSAGE]
    if isinstance(params, types.ElicitRequestURLParams):
        if not _is_web_address(params.url):
            await asker.refused("it wanted to open an address that is not on the web")
            return types.ElicitResult(action="decline")
        visit = params.elicitation_id or uuid.uuid4().hex
        response = await asker.ask_page(Page(message=message, url=params.url, id=visit))
        return types.ElicitResult(action="decline" if response is None else response.action)
    schema = params.requested_schema
    if asks_for_a_secret(schema) or question_asks(params.message):
        await asker.refused("it asked for what looks like a secret in a form")
        return types.ElicitResult(action="decline")
    properties = schema.get("properties")
    if not isinstance(properties, dict) or len(properties) > _FIELDS:
        await asker.refused("its form has no fields, or too many")
        return types.ElicitResult(action="decline")
    response = await asker.ask_form(Form(message=message, schema=schema))
    if response is None:
        return types.ElicitResult(action="decline")
    return types.ElicitResult(
        action=response.action,
        content=dict(response.content or {}) if response.action == "accept" else None,
    )


def asks_for_a_secret(schema: dict[str, Any]) -> bool:
    """Whether a field of a form looks as if it were for a password, a key or the like."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return False
    return any(_is_secret_field(str(name), field) for name, field in properties.items())


def _is_secret_field(name: str, field: Any) -> bool:  # JSON, of any kind
    described = field if isinstance(field, dict) else {}
    given = [_spaced(name), described.get("title"), described.get("description")]
    texts = [text for text in given if isinstance(text, str)]
    return (
        described.get("format") == "password"
        or any(_SECRET.search(text) for text in texts)
        or question_asks(*texts)
    )


def _spaced(name: str) -> str:
    """`userPin` and `user_pin` as `user Pin` and `user pin`: words that can be told apart."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]+", " ", name)


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        return False
