"""Where the user is asked about a call."""

from __future__ import annotations

from typing import NamedTuple

from acp_agent.ids import CallId, SessionId


class Place(NamedTuple):
    """A session that the client is shown, and one of its calls.

    `call` is None where the client is not shown it. `of` is the title of the child whose call it
    is, where that is shown as one of the parent's.
    """

    session: SessionId
    call: CallId | None
    of: str = ""


def in_child(child: str, title: str) -> str:
    """The title of a child's call among those of its parent; "" for a call of the parent's own."""
    return f"{child} › {title}" if child else title
