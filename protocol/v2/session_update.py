"""What an agent tells about a session: `session/update`, and the base of all its variants."""

from __future__ import annotations

from typing import Any

from protocol.codec.open_union import OpenUnion, UnknownVariant
from protocol.v2.base import SessionId, Wire


class SessionUpdate(OpenUnion):
    """One thing that happened in a session.

    The variants derive from it, in the modules of what they are about; `updates` has the list of
    them, which only those need who read updates.
    """

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its kind, and a state update by the state."""
        from protocol.v2.updates import variant_of  # noqa: PLC0415 - an agent only sends them

        return variant_of(value)


class OtherSessionUpdate(UnknownVariant, SessionUpdate):
    """An update of a kind not known yet."""

    __slots__ = ()


class UpdateSessionNotification(Wire, frozen=True, kw_only=True):
    """The parameters of `session/update`."""

    session_id: SessionId
    update: SessionUpdate
