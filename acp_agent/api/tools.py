"""Tools of plugins: functions that the model can call once the user has allowed it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct


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
