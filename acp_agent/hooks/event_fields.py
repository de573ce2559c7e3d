"""The fields that all events have, and the events at which a matcher counts."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, Protocol

from acp_agent.config.hook_types import HookEvent
from acp_agent.content import JsonObject
from acp_agent.events import HookAnswered, NoticeShown
from acp_agent.hooks.file_watch import is_watched
from acp_agent.hooks.permission_rules import AddedRule
from acp_agent.hooks.tool_names import matches
from acp_agent.hooks.types import Hook
from acp_agent.permissions.access import Access, Mode

CONTEXT = "A hook gave the model additional context."
LATER_CONTEXT = "A hook in the background gave the model additional context."

# The names of modes in the contract.
_MODES: dict[Mode, str] = {
    "ask": "default",
    "draft": "default",
    "accept-edits": "acceptEdits",
    "plan": "plan",
    "full": "bypassPermissions",
}
# The events without kinds that a matcher could name.
_EVENTS_WITHOUT_MATCHER: frozenset[HookEvent] = frozenset(
    {
        "PostToolBatch", "UserPromptSubmit", "Stop", "TaskCreated", "TaskCompleted", "CwdChanged",
        "DirectoryAdded", "MessageDisplay",
    }
)  # fmt: skip
# The events of a call, whose hooks also apply to agents that work for the one who has the hooks.
CALL_EVENTS: frozenset[HookEvent] = frozenset(
    {"PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure"}
)
# The events that belong to no request of a model.
SESSION_EVENTS: frozenset[HookEvent] = frozenset(
    {
        "ConfigChange", "CwdChanged", "DirectoryAdded", "FileChanged", "InstructionsLoaded",
        "PostModelSwitch", "PreModelSwitch", "SessionEnd", "SessionStart", "Setup",
    }
)  # fmt: skip


class HookedSession(Protocol):
    """The session whose hooks run."""

    @property
    def id(self) -> str:
        """Return its id."""

    @property
    def cwd(self) -> Path:
        """Return its folder."""

    @property
    def mode(self) -> Mode:
        """Return its permission mode."""

    @property
    def effort(self) -> str | None:
        """Return how much its model reasons; None if the model has no levels."""

    async def transcript(self) -> str:
        """Return the path of the conversation's current transcript; "" if there is none."""

    def fits(self, rule: str, access: Access) -> bool:
        """Return whether a call matches a permission rule."""

    async def verdict(self, rules: Sequence[AddedRule], access: Access) -> AddedRule | None:
        """Return the rule that decides about a call, the strictest first; None if none does."""

    async def notify(self, notice: NoticeShown) -> None:
        """Show a notice that is not a part of the conversation."""

    async def record(self, answered: HookAnswered) -> None:
        """Write an answer of hooks to the journal."""

    async def add_context(self, text: str, *, later: bool = False) -> None:
        """Add a text for the model to the conversation; `later` if nothing waited for it."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the background."""


class HookedCall(Protocol):
    """A call of a tool."""

    @property
    def call(self) -> str:
        """Return the id of the call."""

    @property
    def name(self) -> str:
        """Return the name of the tool."""


def common_fields(event: HookEvent, session: str, cwd: Path, mode: Mode) -> JsonObject:
    """Return the fields that every event has."""
    return {
        "session_id": session,
        "transcript_path": "",
        "cwd": str(cwd),
        "permission_mode": _MODES[mode],
        "hook_event_name": event,
    }


def is_for(hook: Hook, event: HookEvent, matched: str) -> bool:
    """Return whether a hook runs at an event for a tool, or for a kind of event."""
    if event == "FileChanged":
        return hook.event == event and is_watched(hook.matcher, matched)
    return hook.event == event and (
        event in _EVENTS_WITHOUT_MATCHER or matches(hook.matcher, matched)
    )
