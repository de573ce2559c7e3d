"""A session's options as the protocol's config options."""

from __future__ import annotations

from collections.abc import Sequence

from acp_agent.session.options import Option
from protocol.v2 import types as acp


def config_options(options: Sequence[Option]) -> list[acp.SessionConfigOption]:
    """All options; the id of each is also its category (v2, Session Config Options)."""
    return [
        acp.SessionConfigSelect(
            config_id=option.id,
            name=option.name,
            description=option.description,
            category=option.id,
            current_value=option.current,
            options=[
                acp.SessionConfigSelectOption(
                    value=value.id, name=value.name, description=value.description
                )
                for value in option.values
            ],
        )
        for option in options
    ]
