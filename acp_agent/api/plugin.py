"""What a plugin that is a Python package brings along: tools, hooks and models."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from acp_agent.config.hook_types import HookEvent
from acp_agent.models.base import Driver

API_VERSION = 1


class ToolContext(Protocol):
    """What a running call knows of its session, and how it shows what it does."""

    @property
    def cwd(self) -> Path:
        """The session's folder."""

    @property
    def data(self) -> Path:
        """A folder of the plugin's own for what it keeps; it exists."""

    async def output(self, text: str) -> None:
        """Show the user the next piece of what the call prints."""

    async def ask(self, question: str) -> str | None:
        """Ask the user, and wait; None: they would not say, or cannot be asked."""


class ToolResult(Struct, frozen=True, kw_only=True):
    """The result of a call: the text for the model, and whether the call failed."""

    text: str
    failed: bool = False


class Tool(Struct, frozen=True, kw_only=True):
    """A function that the model can call.

    The user is asked before a call as about a tool of an MCP server, in which place the plugin's
    name stands in rules: `mcp__PLUGIN__TOOL`.

    Attributes:
        name: letters, digits, underscores and hyphens.
        description: what it does and when it is of use, for the model.
        parameters: a JSON Schema of an object; what a call gives was checked against it.
        run: does the work, without blocking; a `ToolError` says what the model did wrong. It is
            cancelled with the turn.
        reads_only: whether it changes nothing, anywhere.
        timeout: seconds after which a call has failed.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    run: Callable[[Mapping[str, Any], ToolContext], Awaitable[str | ToolResult]]
    reads_only: bool = False
    timeout: float = 120.0


class Hook(Struct, frozen=True, kw_only=True):
    """A function that runs at an event.

    It may refuse a call, change its arguments or tell the model something. It cannot allow what the
    user would be asked about.

    Attributes:
        event: when it runs, such as "PreToolUse".
        run: given what a hook's program would read, returns what that would print; None: nothing.
            docs/hooks.md has both.
        matcher: for which tools, as a regular expression; "" for all.
        timeout: seconds after which it has failed.
    """

    event: HookEvent
    run: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any] | None]]
    matcher: str = ""
    timeout: float = 60.0


class ModelProvider(Struct, frozen=True, kw_only=True):
    """A provider of models, used where the configuration has `api = "plugin"` for its name.

    Attributes:
        name: that of its table `[providers.NAME]`; its models are NAME/MODEL.
        driver: makes what answers requests; called once in a process, in a thread. It is given the
            key that the user saved for the provider, or None.
    """

    name: str
    driver: Callable[[str | None], Driver]


class Plugin(Struct, frozen=True, kw_only=True):
    """A plugin: the object that an entry point of the group `acp_agent.plugins` names.

    Attributes:
        name: lowercase letters, digits and hyphens; what its tools' names begin with.
        api_version: the version of this interface that it was written for.
        tools: functions that the model can call.
        hooks: functions that receive events.
        models: providers of models.
    """

    name: str
    api_version: int = API_VERSION
    tools: tuple[Tool, ...] = ()
    hooks: tuple[Hook, ...] = ()
    models: tuple[ModelProvider, ...] = ()
