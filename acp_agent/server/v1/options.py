"""A session's options in the protocol's two forms: config options, and the older modes."""

from __future__ import annotations

from collections.abc import Sequence

from acp_agent.session.options import Option
from protocol.v1 import types as acp


def config_options(options: Sequence[Option]) -> list[acp.SessionConfigOption]:
    """All options; the id of each is also its category (Agent Client Protocol v1)."""
    return [
        acp.SessionConfigSelect(
            id=option.id,
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


def mode_state(options: Sequence[Option]) -> acp.SessionModeState:
    """The mode alone, for clients that know no config options."""
    mode = next(option for option in options if option.id == "mode")
    return acp.SessionModeState(
        current_mode_id=mode.current,
        available_modes=[
            acp.SessionMode(id=value.id, name=value.name, description=value.description)
            for value in mode.values
        ],
    )
