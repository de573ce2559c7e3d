"""What every event is."""

from __future__ import annotations

from msgspec import Struct


class Event(Struct, frozen=True, kw_only=True, tag_field="event", omit_defaults=True, gc=False):
    """Something that happened in a session.

    Out of the collector's sight (`gc`): it is a tree, as its JSON is, and a session has thousands.
    """
