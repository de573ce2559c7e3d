"""Every type of version 1, in one place to import from.

Those of unstable methods are in `unstable`, apart, so that a start does not pay for them.
"""

# ruff: noqa: F403, PLC0414 - this is how a module exports all that another one has

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.codec.lazy_imports import lazy_imports
from protocol.jsonrpc.messages import Error as Error

if TYPE_CHECKING:
    from protocol.shared.types import *
    from protocol.v1.client_methods import *
    from protocol.v1.content import *
    from protocol.v1.elicitation import *
    from protocol.v1.initialization import *
    from protocol.v1.sessions import *
    from protocol.v1.unstable_subagents import *
    from protocol.v1.updates import *
else:
    # A start needs few of them; the order is that in which a session does.
    __getattr__ = lazy_imports(
        globals(),
        (
            "protocol.v1.sessions",
            "protocol.v1.content",
            "protocol.shared.types",
            "protocol.v1.updates",
            "protocol.v1.client_methods",
            "protocol.v1.elicitation",
            "protocol.v1.unstable_subagents",
            "protocol.v1.initialization",
        ),
    )
