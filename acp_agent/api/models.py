"""Models of plugins: a provider, and the driver that answers its requests."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from acp_agent.models.base import Driver


class ModelProvider(Struct, frozen=True, kw_only=True):
    """A provider of models, used where the configuration has `api = "plugin"` for its name.

    Attributes:
        name: that of its table `[providers.NAME]`; its models are NAME/MODEL.
        driver: makes what answers requests; called once in a process, in a thread. It is given the
            key that the user saved for the provider, or None.
    """

    name: str
    driver: Callable[[str | None], Driver]
