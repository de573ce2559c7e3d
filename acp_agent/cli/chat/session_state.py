"""The state of the open session, from the agent's updates: settings, plan and tool calls."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from msgspec import UNSET, Struct, UnsetType

from acp_agent.cli.output import terminal_text
from protocol.v1 import types as acp

_MAX_COMMANDS = 1_000  # slash commands that are offered
_MAX_CALLS = 2_000  # tool calls that are remembered
_MAX_FULL_CALLS = 50  # most recent calls that keep their whole output
_MAX_OUTPUT = 64_000  # characters stored of a call's output
_MAX_OLD_OUTPUT = 2_000  # the same for older calls
_MAX_DIFFS = 50  # diffs stored per call
PLAN_MARKS = {"completed": "[x]", "in_progress": "[>]", "pending": "[ ]"}


class Choice(Struct, frozen=True):
    """A choice in a list, such as a value of an option; `current` marks the current one."""

    value: str
    name: str
    description: str = ""
    current: bool = False


class SessionSettings(Protocol):
    """The settings in every response that opens a session."""

    @property
    def modes(self) -> acp.SessionModeState | None:
        """Return the session's modes, for agents without options."""

    @property
    def config_options(self) -> Sequence[acp.SessionConfigOption] | None:
        """Return the session's configuration options."""


class SessionState:
    """The state of a session, as last reported by the agent.

    Attributes:
        modes: its modes, for agents without options.
        usage: context usage and cost.
        prompted: whether it has a prompt, and is thus worth resuming.
    """

    def __init__(self, session: str = "", *, prompted: bool = False) -> None:
        self.id = session
        self.title = ""
        self.commands: Sequence[acp.AvailableCommand] = ()
        self.options: Sequence[acp.SessionConfigOption] = ()
        self.modes: acp.SessionModeState | None = None
        self.plan: Sequence[acp.PlanEntry] = ()
        self.usage: acp.UsageUpdate | None = None
        self.prompted = prompted

    def apply(self, settings: SessionSettings) -> None:
        """Apply the settings in the response that opened the session."""
        self.options = settings.config_options or ()
        self.modes = settings.modes

    def set_mode(self, mode: str) -> None:
        """Set the mode, for agents without options."""
        if self.modes is not None:
            self.modes = acp.SessionModeState(
                current_mode_id=mode, available_modes=self.modes.available_modes
            )

    def update(self, update: acp.SessionUpdate) -> bool:
        """Apply an update; return whether it changed the state."""
        match update:
            case acp.AvailableCommandsUpdate():
                self.commands = update.available_commands[:_MAX_COMMANDS]
            case acp.ConfigOptionUpdate():
                self.options = update.config_options
            case acp.CurrentModeUpdate():
                self.set_mode(update.current_mode_id)
            case acp.SessionInfoUpdate() if update.title is not UNSET:
                self.title = update.title or ""
            case acp.UsageUpdate():
                self.usage = update
            case acp.Plan():
                self.plan = update.entries
            case _:
                return False
        return True

    def option(self, name: str) -> acp.SessionConfigOption | None:
        """Return the option with an ID, or the first of a category, such as `mode` or `model`."""
        for option in self.options:
            if option.id == name:
                return option
        return next((option for option in self.options if option.category == name), None)

    def mode_choices(self) -> list[Choice]:
        """Return the modes of the session."""
        option = self.option("mode")
        if isinstance(option, acp.SessionConfigSelect):
            return list(choices(option))
        if self.modes is None:
            return []
        return [
            Choice(
                mode.id, mode.name, mode.description or "", mode.id == self.modes.current_mode_id
            )
            for mode in self.modes.available_modes
        ]

    @property
    def mode(self) -> Choice | None:
        """Return the current mode; None if there are no modes."""
        return next((choice for choice in self.mode_choices() if choice.current), None)

    @property
    def model(self) -> str:
        """Return the name of the model; empty if the agent does not report it."""
        option = self.option("model")
        if not isinstance(option, acp.SessionConfigSelect):
            return ""
        current = (choice.name for choice in choices(option) if choice.current)
        return next(current, option.current_value)


def choices(option: acp.SessionConfigSelect) -> Iterator[Choice]:
    """Yield the values of an option; those of a group are prefixed with its name."""
    for entry in option.options:
        match entry:
            case acp.SessionConfigSelectGroup():
                values, group = entry.options, f"{entry.name}: "
            case acp.SessionConfigSelectOption():
                values, group = [entry], ""
            case _:
                continue
        for value in values:
            is_current = value.value == option.current_value
            yield Choice(value.value, f"{group}{value.name}", value.description or "", is_current)


class ShownCall:
    """A tool call.

    Attributes:
        kind: its kind, such as `read` or `execute`.
        status: `pending`, `in_progress`, `completed` or `failed`.
        exit_code: exit code of its command, once that has ended.
        answer: the name of the answer to its permission request; empty if there was none.
    """

    def __init__(self, call_id: str) -> None:
        self.id = call_id
        self.title = call_id
        self.kind = "other"
        self.status: str = "pending"
        self.diffs: list[acp.Diff] = []
        self.locations: Sequence[acp.ToolCallLocation] = ()
        self.raw_input: Any = None
        self.exit_code: int | None = None
        self.answer = ""
        self._live = ""  # output of its command
        self._texts: list[str] = []  # texts of its content

    @property
    def has_ended(self) -> bool:
        """Return whether it completed or failed."""
        return self.status in {"completed", "failed"}

    @property
    def output(self) -> str:
        """Return its output, without a surrounding code fence."""
        return self._live or "\n".join(self._texts)

    def update(self, update: acp.ToolCall | acp.ToolCallUpdate) -> None:
        """Apply an update, or the call of a permission request."""
        if isinstance(update.title, str):
            self.title = update.title
        if isinstance(update.kind, str):
            self.kind = update.kind
        if isinstance(update.status, str):
            self.status = update.status
        if update.locations is not UNSET:
            self.locations = update.locations or ()
        if update.raw_input is not UNSET and update.raw_input is not None:
            self.raw_input = update.raw_input
        self._update_content(update.content)
        self._update_terminal(update.meta or {})

    def _update_content(self, content: Sequence[acp.ToolCallContent] | UnsetType | None) -> None:
        if content is UNSET:
            return
        items = content or ()
        diffs = [item for item in items if isinstance(item, acp.Diff)]
        if diffs or self.kind != "edit":
            # An edit keeps its diff if its last update has none.
            self.diffs = diffs[:_MAX_DIFFS] or self.diffs
        texts = [
            unfenced(item.content.text)
            for item in items
            if isinstance(item, acp.Content) and isinstance(item.content, acp.TextContent)
        ]
        texts += [
            f"[{item.content.mime_type}]"
            for item in items
            if isinstance(item, acp.Content)
            and isinstance(item.content, acp.ImageContent | acp.AudioContent)
        ]
        joined = "\n".join(text for text in texts if text)
        self._texts = [joined[-_MAX_OUTPUT:]] if joined else []

    def _update_terminal(self, meta: dict[str, Any]) -> None:
        output = meta.get("terminal_output")
        if isinstance(output, dict) and isinstance(output.get("data"), str):
            self._live = (self._live + output["data"])[-_MAX_OUTPUT:]
        exit_data = meta.get("terminal_exit")
        if isinstance(exit_data, dict) and isinstance(exit_data.get("exit_code"), int):
            self.exit_code = exit_data["exit_code"]

    def shorten(self) -> None:
        """Discard most of the output, because the call is old."""
        self._live = self._live[-_MAX_OLD_OUTPUT:]
        self._texts = [text[-_MAX_OLD_OUTPUT:] for text in self._texts]

    def output_lines(self) -> list[str]:
        """Return the lines of its output, escaped for the terminal."""
        text = terminal_text(remove_overwritten(self.output)).strip("\n")
        return text.split("\n") if text else []


class Calls:
    """The calls of a session by ID. The oldest are discarded."""

    def __init__(self) -> None:
        self._calls: OrderedDict[str, ShownCall] = OrderedDict()
        self._latest: deque[ShownCall] = deque()

    def update(self, update: acp.ToolCall | acp.ToolCallUpdate) -> ShownCall:
        """Apply an update; return its call."""
        call = self._calls.get(update.tool_call_id)
        if call is None or (isinstance(update, acp.ToolCall) and call.has_ended):
            call = self._calls[update.tool_call_id] = ShownCall(update.tool_call_id)
            self._latest.append(call)
            if len(self._latest) > _MAX_FULL_CALLS:
                self._latest.popleft().shorten()
            while len(self._calls) > _MAX_CALLS:
                self._forget()
        call.update(update)
        return call

    def get(self, call_id: str) -> ShownCall | None:
        """Return the call with an ID, or None if it is not stored."""
        return self._calls.get(call_id)

    @property
    def last(self) -> ShownCall | None:
        """Return the newest call."""
        return next(reversed(self._calls.values()), None)

    def _forget(self) -> None:
        oldest = next((name for name, call in self._calls.items() if call.has_ended), None)
        self._calls.pop(oldest if oldest is not None else next(iter(self._calls)))


def unfenced(text: str) -> str:
    """Return `text` without a Markdown fence that surrounds all of it."""
    lines = text.strip("\n").split("\n")
    fence = lines[0][: len(lines[0]) - len(lines[0].lstrip("`"))]
    if len(lines) >= 2 and len(fence) >= 3 and lines[-1].strip() == fence:
        return "\n".join(lines[1:-1])
    return text


def remove_overwritten(text: str) -> str:
    """Return `text` without what is overwritten after carriage returns, as by progress bars."""
    if "\r" not in text:
        return text
    return "\n".join(
        line.rstrip("\r").rpartition("\r")[2] for line in text.replace("\r\n", "\n").split("\n")
    )
