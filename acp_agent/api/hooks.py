"""Hooks of plugins: functions that are told of events, and may refuse or change a call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import Struct

from acp_agent.config.hook_types import HookEvent


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
