"""What a plugin that is a Python package brings along."""

from __future__ import annotations

from msgspec import Struct

from acp_agent.api.hooks import Hook
from acp_agent.api.models import ModelProvider
from acp_agent.api.tools import Tool

API_VERSION = 1


class Plugin(Struct, frozen=True, kw_only=True):
    """A plugin: the object that an entry point of the group `acp_agent.plugins` names.

    Attributes:
        name: lowercase letters, digits and hyphens; what its tools' names begin with.
        api_version: the version of this interface that it was written for.
        tools: functions that the model can call.
        hooks: functions that are told of events.
        models: providers of models.
    """

    name: str
    api_version: int = API_VERSION
    tools: tuple[Tool, ...] = ()
    hooks: tuple[Hook, ...] = ()
    models: tuple[ModelProvider, ...] = ()
