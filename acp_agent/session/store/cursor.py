"""Where a page of the session list ends, as an opaque text for the client."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

import msgspec

from acp_agent.errors import InvalidInputError
from acp_agent.session.store.records import SessionRecord

_Position = tuple[Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)], str]

# Before every session: SQLite sorts bytes behind all times, and behind what is in the place of one.
START = (b"\xff", "")


def cursor_after(record: SessionRecord) -> str:
    """The cursor of the page that follows `record`."""
    position = msgspec.json.encode((record.updated_at, record.id))
    return base64.urlsafe_b64encode(position).decode()


def position_of(cursor: str | None) -> tuple[int | bytes, str]:
    """The place in the list (`updated_at`, id) that a cursor stands for.

    Raises:
        InvalidInputError: it is not a cursor of ours.
    """
    if cursor is None:
        return START
    try:
        raw = base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True)
        at, session_id = msgspec.json.decode(raw, type=_Position)
    except (ValueError, binascii.Error, msgspec.DecodeError) as error:
        raise InvalidInputError(
            "the cursor is not one that session/list gave; leave it out to start at the beginning",
            field="cursor",
        ) from error
    return at, session_id
