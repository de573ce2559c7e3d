"""The interface for plugins that are Python packages. What is exported here stays as it is.

A package names an object of the type `Plugin` as an entry point of the group `acp_agent.plugins`.
It is imported once it was added with `acp-agent plugin add`, and when a session first needs it.
Names may be added, and fields with a default; nothing is renamed or taken away without a new
`API_VERSION`. All other modules of `acp_agent` may change at any time.
"""

from acp_agent.api.plugin import (
    API_VERSION,
    Hook,
    ModelProvider,
    Plugin,
    Tool,
    ToolContext,
    ToolResult,
)
from acp_agent.errors import ToolError
from acp_agent.events import Usage
from acp_agent.models.base import (
    CallDelta,
    CallDone,
    CallStarted,
    Driver,
    Failed,
    Finished,
    ModelInfo,
    ModelRequest,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
)

__all__ = [
    "API_VERSION", "CallDelta", "CallDone", "CallStarted", "Driver", "Failed", "Finished", "Hook",
    "ModelInfo", "ModelProvider", "ModelRequest", "Plugin", "StreamEvent", "TextDelta",
    "ThoughtDelta", "Tool", "ToolContext", "ToolError", "ToolResult", "Usage",
]  # fmt: skip
