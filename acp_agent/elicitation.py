"""Questions to the user outside the conversation: a form to fill in, or a page to visit.

Source: Agent Client Protocol, Elicitation, which shares its types with the Model Context Protocol.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from acp_agent.content import JsonObject


class Form(Struct, frozen=True, kw_only=True):
    """A form. `schema` is a flat JSON Schema of an object, as the protocol restricts it.

    A form never asks for a secret: what the user types may be shown, kept and sent to a model.
    """

    message: str
    schema: JsonObject


class Page(Struct, frozen=True, kw_only=True):
    """A page that the user is sent to; what they do there does not pass through the editor.

    `id` names the visit, so that the editor can be told when it is over.
    """

    message: str
    url: str
    id: str


class Response(Struct, frozen=True, kw_only=True):
    """What the user did: `content` is what they filled in, where they accepted a form.

    A page that is accepted is a page that was opened; that it was of use is not said by that.
    """

    action: Literal["accept", "decline", "cancel"]
    content: JsonObject | None = None
