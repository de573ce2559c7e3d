"""The calls of tools, the plan that one of them keeps, and the permissions that they need."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from acp_agent.content import CallContent, ContentBlock, JsonObject, Location
from acp_agent.events.base import Event
from acp_agent.ids import CallId, MessageId

ToolKind = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
DecidedBy = Literal["user", "mode", "grant", "rule", "flag", "nobody"]
PLAN = "plan"  # the id of the plan that the todo tool keeps; a session has one


class ToolCalled(Event, frozen=True, kw_only=True, tag="tool_called"):
    """The model called a tool. `arguments` is the JSON text exactly as the model wrote it."""

    call: CallId
    message: MessageId
    name: str
    arguments: str
    title: str
    kind: ToolKind = "other"
    locations: tuple[Location, ...] = ()
    content: tuple[CallContent, ...] = ()
    seal: JsonObject | None = None  # what the provider wants back with the call, as it gave it


class ToolStarted(Event, frozen=True, kw_only=True, tag="tool_started"):
    """A call that was allowed began to run. `cwd` is set where it runs a command."""

    call: CallId
    cwd: str | None = None


class ToolOutput(Event, frozen=True, kw_only=True, tag="tool_output"):
    """A further piece of a running command's output.

    `invalid` has a byte for each U+FFFD in the text, where the command wrote bytes that are not
    UTF-8: the byte that the character stands for, or 0 where it stands for itself.
    """

    call: CallId
    text: str
    invalid: bytes = b""


class ToolShown(Event, frozen=True, kw_only=True, tag="tool_shown"):
    """A call that runs shows something new: whole lists, None where nothing changed."""

    call: CallId
    title: str | None = None
    content: tuple[CallContent, ...] | None = None
    locations: tuple[Location, ...] | None = None


class ToolEnded(Event, frozen=True, kw_only=True, tag="tool_ended"):
    """A call ended. `result` and `images` are for the model; the rest is for the user.

    `cancelled` where the user stopped the call, or the turn that it was in; it is `failed` as well.
    `content` and `locations` are whole lists, None where what was shown before stays.
    `exit_code` and `signal` are set where a command ran. `wrote` has the files that a tool for
    files wrote: the path, and git's id of the content that was on the disk right after.
    """

    call: CallId
    failed: bool = False
    cancelled: bool = False
    result: str = ""
    images: tuple[ContentBlock, ...] = ()
    content: tuple[CallContent, ...] | None = None
    locations: tuple[Location, ...] | None = None
    raw_output: JsonObject | None = None
    exit_code: int | None = None
    signal: str | None = None
    wrote: tuple[tuple[str, str], ...] = ()


class BackgroundCommandChanged(Event, frozen=True, kw_only=True, tag="background_command_changed"):
    """The command of a call goes on behind it from now on, or has ended.

    `name` is what the model calls it, `command` the line that the user sees. One that was `lost`
    ended with the program that ran it, and nobody knows how. `stopped` where the user ended it;
    `heard` where a call tells the model of the end by itself.
    """

    call: CallId
    name: str
    status: Literal["running", "ended", "lost"]
    command: str = ""
    exit_code: int | None = None
    signal: str | None = None
    timed_out: bool = False
    stopped: bool = False
    heard: bool = False


class PermissionAsked(Event, frozen=True, kw_only=True, tag="permission_asked"):
    """The user was asked about a call. `options` are the ids of the buttons."""

    call: CallId
    options: tuple[str, ...]


class PermissionDecided(Event, frozen=True, kw_only=True, tag="permission_decided"):
    """A call was allowed or refused, for the reason `why`.

    `by` says who decided: the user, the mode, a remembered grant, a rule, or a flag that the client
    was started with; or nobody, as there was nobody to ask. `name` is the mode or the flag. Where
    it is not `known`, in older journals, `user` means that the client answered, perhaps by itself.
    """

    call: CallId
    allowed: bool
    by: DecidedBy
    why: str = ""
    name: str = ""
    known: bool = False


class PlanEntry(Struct, frozen=True, kw_only=True):
    """One step of the agent's plan."""

    content: str
    priority: Literal["high", "medium", "low"] = "medium"
    status: Literal["pending", "in_progress", "completed"] = "pending"


class PlanChanged(Event, frozen=True, kw_only=True, tag="plan_changed"):
    """The whole plan as it is now."""

    entries: tuple[PlanEntry, ...]
    plan_id: str = PLAN


class PlanRemoved(Event, frozen=True, kw_only=True, tag="plan_removed"):
    """There is no plan any more."""

    plan_id: str = PLAN
