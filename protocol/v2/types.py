"""Every type of version 2, in one place to import from.

Those of unstable methods and updates are in modules that say so, apart, so that a start does not
pay for them.
"""

# ruff: noqa: F403, PLC0414 - this is how a module exports all that another one has

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.codec.lazy_imports import lazy_imports
from protocol.jsonrpc.messages import Error as Error

if TYPE_CHECKING:
    from protocol.shared.types import *
    from protocol.v2.content import *
    from protocol.v2.elicitation import *
    from protocol.v2.initialization import *
    from protocol.v2.options import *
    from protocol.v2.sessions import *
    from protocol.v2.states import *
    from protocol.v2.tool_calls import *
    from protocol.v2.updates import *
else:
    # A start needs few of them; the order is that in which a session does.
    __getattr__ = lazy_imports(
        globals(),
        (
            "protocol.shared.types",
            "protocol.v2.initialization",
            "protocol.v2.content",
            "protocol.v2.options",
            "protocol.v2.sessions",
            "protocol.v2.updates",
            "protocol.v2.states",
            "protocol.v2.tool_calls",
            "protocol.v2.tool_calls",
            "protocol.v2.elicitation",
        ),
    )
