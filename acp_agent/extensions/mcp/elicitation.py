"""Forward a server's elicitation requests to the editor.

Source: Model Context Protocol, Elicitation. A form may not ask for a secret: the user's input is
shown, stored and sent to a model.
"""

from __future__ import annotations

import re
import uuid
from typing import Any, Protocol
from urllib.parse import urlsplit

import mcp_types as types

from acp_agent.config.secret_questions import asks_for_secret as asks_for_secret_in_text
from acp_agent.elicitation import Form, Page, Response

_MAX_FIELDS = 30  # fields of a form
_MAX_MESSAGE_LENGTH = 4_000  # characters

# A field must not mention any of these, because it holds a value; a question may mention them.
_SECRET = re.compile(
    r"pass(word|wd|code|phrase)|secret|token|credential|private.?key|(api|access).?key"
    r"|\bpin\b|\bcvv2?\b|\botp\b|one.?time.?code|card.?number|\bssn\b|密码|口令|令牌",
    re.IGNORECASE,
)

# A request not to enter anything, such as "do not give us your PIN"; descriptions may have one.
_WARNING = re.compile(
    r"\b(do not|don't|never|please avoid|must not) (give|enter|include|share|send|type|provide)\b"
    r"[^.;!?)]*",
    re.IGNORECASE,
)


class Asker(Protocol):
    """Asks the user on behalf of a server."""

    async def ask_form(self, form: Form) -> Response | None:
        """Ask the user to fill in a form. None: nobody can answer."""

    async def ask_page(self, page: Page) -> Response | None:
        """Send the user to a page. None: nobody can answer."""

    async def sample(
        self, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        """Ask a model, if the user agrees; return its answer or why there is none."""

    def page_done(self, visit: str) -> None:
        """Report that the user has finished at the page."""

    async def refused(self, reason: str) -> None:
        """Report that a question was not forwarded, with the reason."""


async def answer_elicitation(params: types.ElicitRequestParams, asker: Asker) -> types.ElicitResult:
    """Return the user's answer; `decline` if the user cannot or must not be asked."""
    message = params.message[:_MAX_MESSAGE_LENGTH]
    if isinstance(params, types.ElicitRequestURLParams):
        if not _is_web_address(params.url):
            await asker.refused("it wanted to open an address that is not on the web")
            return types.ElicitResult(action="decline")
        visit = params.elicitation_id or uuid.uuid4().hex
        response = await asker.ask_page(Page(message=message, url=params.url, id=visit))
        return types.ElicitResult(action="decline" if response is None else response.action)
    schema = params.requested_schema
    if asks_for_a_secret(schema) or asks_for_secret_in_text(params.message):
        await asker.refused("it asked for what looks like a secret in a form")
        return types.ElicitResult(action="decline")
    properties = schema.get("properties")
    if not isinstance(properties, dict) or len(properties) > _MAX_FIELDS:
        await asker.refused("its form has no fields, or too many")
        return types.ElicitResult(action="decline")
    response = await asker.ask_form(Form(message=message, schema=schema))
    if response is None:
        return types.ElicitResult(action="decline")
    if response.action != "accept":
        return types.ElicitResult(action=response.action)
    return types.ElicitResult(
        action="accept", content=_defaults(properties) | dict(response.content or {})
    )


def _defaults(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the values of fields that are left out (SEP-1034)."""
    return {
        name: field["default"]
        for name, field in properties.items()
        if isinstance(field, dict) and "default" in field
    }


def asks_for_a_secret(schema: dict[str, Any]) -> bool:
    """Return whether a field of a form seems to ask for a password, a key or the like."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return False
    return any(_is_secret_field(str(name), field) for name, field in properties.items())


def _is_secret_field(name: str, field: Any) -> bool:  # JSON, of any kind
    attributes = field if isinstance(field, dict) else {}
    description = attributes.get("description")
    if isinstance(description, str):
        description = _WARNING.sub("", description)
    labels = [_split_words(name), attributes.get("title"), description]
    texts = [text for text in labels if isinstance(text, str)]
    return (
        attributes.get("format") == "password"
        or any(_SECRET.search(text) for text in texts)
        or asks_for_secret_in_text(*texts)
    )


def _split_words(name: str) -> str:
    """Return `userPin` or `user_pin` as separate words: `user Pin`, `user pin`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]+", " ", name)


def _is_web_address(url: str) -> bool:
    try:
        url_parts = urlsplit(url)
        return url_parts.scheme in {"http", "https"} and bool(url_parts.hostname)
    except ValueError:
        return False
