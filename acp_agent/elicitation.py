"""Questions to the user outside the conversation: a form to fill in, or a page to visit.

Source: Agent Client Protocol, Elicitation, which shares its types with the Model Context Protocol.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from acp_agent.content import JsonObject


class Form(Struct, frozen=True, kw_only=True):
    """A form. `schema` is a flat JSON Schema of an object, as the protocol restricts it.

    A form never asks for a secret: the values may be shown, stored and sent to a model.
    """

    message: str
    schema: JsonObject


class Page(Struct, frozen=True, kw_only=True):
    """A page for the user to open; what they enter there does not pass through the editor.

    `id` identifies the request, so that the editor can be notified when it is complete.
    """

    message: str
    url: str
    id: str


class Response(Struct, frozen=True, kw_only=True):
    """The user's response; `content` has the values of an accepted form.

    An accepted page was opened; it may not have been completed.
    """

    action: Literal["accept", "decline", "cancel"]
    content: JsonObject | None = None
