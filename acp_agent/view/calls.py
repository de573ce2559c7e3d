"""Tool calls, each assembled from its events in the journal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, Literal

from acp_agent import events
from acp_agent.content import CallContent, ContentPart, DiffPart, ImageBlock, Location, TextBlock
from acp_agent.ids import CallId
from acp_agent.tools.quoting import code_block
from acp_agent.view.blocks import TextCleaner, blocks, diff, picture
from acp_agent.view.page import Call, Permission

# The texts in the journal if the user chose no option (`acp_agent.agent.call_runner`).
_UNANSWERED: Final[Mapping[str, Literal["dismissed", "unclear", "not_asked"]]] = {
    "dismissed": "dismissed",
    "unclear": "unclear",
    "not asked": "not_asked",
}


class _CallState:
    """Data of a call that later events may replace, so it is not in the page yet."""

    def __init__(self, step: Call, event: events.ToolCalled) -> None:
        self.step = step
        self.content: tuple[CallContent, ...] = event.content
        self.output: list[str] = []
        self.result = ""
        command = _command(event.arguments) if event.kind == "execute" else ""
        self.asked = code_block(command, "sh") if command else ""  # its content before it runs


class Calls:
    """The calls of a session. Call `finish` after the last event."""

    def __init__(self, clean: TextCleaner) -> None:
        self._clean = clean
        self._states: dict[CallId, _CallState] = {}

    def step(self, call: CallId) -> Call | None:
        """Return the step of a call; None if the journal lacks its beginning."""
        state = self._states.get(call)
        return None if state is None else state.step

    def on_call(self, event: events.ToolCalled, at: int, anchor: str) -> Call:
        """Begin a call and return its step."""
        clean = self._clean
        step = Call(
            anchor=anchor,
            at=at,
            name=clean.line(event.name),
            title=clean.line(event.title),
            command=clean.text(_command(event.arguments)) if event.kind == "execute" else "",
            arguments=clean.json(event.arguments),
            locations=self._locations(event.locations),
        )
        self._states[event.call] = _CallState(step, event)
        return step

    def on_start(self, event: events.ToolStarted, at: int) -> None:
        """Mark a call as running."""
        if (state := self._states.get(event.call)) is not None:
            state.step.started, state.step.status = at, "running"
            state.step.cwd = self._clean.line(event.cwd or "")
            if event.command is not None:
                state.step.command = self._clean.text(event.command)

    def on_output(self, event: events.ToolOutput) -> None:
        """Add output of its command, also after it moved to the background."""
        if (state := self._states.get(event.call)) is not None:
            state.output.append(event.text)

    def on_change(self, event: events.ToolShown) -> None:
        """Update what a call shows."""
        if (state := self._states.get(event.call)) is None:
            return
        if event.title is not None:
            state.step.title = self._clean.line(event.title)
        if event.content is not None:
            state.content = event.content
        if event.locations is not None:
            state.step.locations = self._locations(event.locations)

    def on_end(self, event: events.ToolEnded, at: int) -> None:
        """End a call."""
        if (state := self._states.get(event.call)) is None:
            return
        step = state.step
        step.ended = at
        if event.failed:
            refused = any(permission.allowed is False for permission in step.permissions)
            step.status = "cancelled" if event.cancelled else "refused" if refused else "failed"
        else:
            step.status = "completed"
        by_itself = event.exit_code is not None or event.signal is not None
        if state.output and by_itself:
            state.content = (event.content or ())[1:]  # the first part is the output
        elif event.content is not None:
            state.content = event.content
        if event.locations is not None:
            step.locations = self._locations(event.locations)
        state.result = event.result
        step.exit_code = event.exit_code
        step.signal = self._clean.line(event.signal or "")
        step.pictures = [
            picture(image, self._clean) for image in event.images if isinstance(image, ImageBlock)
        ]

    def on_question(self, event: events.PermissionAsked, at: int) -> None:
        """Add a permission question."""
        if (state := self._states.get(event.call)) is not None:
            state.step.permissions.append(Permission(asked_at=at))

    def on_decision(self, event: events.PermissionDecided, at: int) -> None:
        """Add a permission decision."""
        if (state := self._states.get(event.call)) is None:
            return
        permissions = state.step.permissions
        if not permissions or permissions[-1].allowed is not None:
            permissions.append(Permission())
        permission = permissions[-1]
        permission.decided_at, permission.allowed = at, event.allowed
        permission.by = "client" if event.by == "user" and not event.known else event.by
        permission.name, permission.why = self._clean.line(event.name), self._clean.line(event.why)
        if event.by in {"user", "nobody"} and not event.allowed:
            permission.unanswered = _UNANSWERED.get(event.why, "")

    def on_background(self, event: events.BackgroundCommandChanged) -> None:
        """Update the state of its background command."""
        if (state := self._states.get(event.call)) is not None:
            step = state.step
            step.background = self._clean.line(event.name)
            step.background_status = event.status
            step.exit_code = event.exit_code if event.exit_code is not None else step.exit_code
            step.signal = self._clean.line(event.signal or step.signal)

    def on_description(self, event: events.PicturesDescribed) -> bool:
        """Add another model's description of its pictures; return false if it is not of a call."""
        state = self._states.get(CallId(event.of))
        if state is None:
            return False
        state.step.picture_description = self._clean.text(event.text)
        return True

    def on_interruption(self, event: events.TurnInterrupted) -> None:
        """Mark the calls during which the process died."""
        for call in event.calls:
            if (state := self._states.get(call)) is not None and state.step.ended is None:
                state.step.status = "interrupted"

    def finish(self) -> None:
        """Complete the steps with data that could change until the last event."""
        for state in self._states.values():
            self._fill(state)
        self._states.clear()

    def _fill(self, state: _CallState) -> None:
        step, clean = state.step, self._clean
        output = "".join(state.output)
        step.output = clean.text(output.rstrip("\n"))
        texts = [output]
        # The steps of a child session show its events and answer.
        for part in () if step.children else state.content:
            match part:
                case DiffPart():
                    step.diffs.append(diff(part, clean))
                case ContentPart(content=TextBlock(text=state.asked)):
                    pass  # the command, shown above
                case ContentPart(content=TextBlock(text=text)):
                    texts.append(text)
                    step.blocks += blocks([part.content], clean, markdown=True)
                case ContentPart(content=ImageBlock()) if step.pictures:
                    pass  # the model received the same picture
                case ContentPart():
                    step.blocks += blocks([part.content], clean)
                case _:
                    pass  # a terminal, whose output is not in the journal
        if output:  # the exit status, or a replacement for long output
            result = state.result.removeprefix(output.rstrip("\n")).strip()
            step.output_omitted = len(result) < len(state.result.strip())
            is_visible = any(result in text for text in texts)
        else:  # show the result if nothing else does
            result = state.result.strip()
            is_visible = bool(step.blocks or step.diffs or step.pictures or step.background)
        if not is_visible and step.status not in {"cancelled", "interrupted"}:
            step.result = clean.text(result)

    def _locations(self, locations: tuple[Location, ...]) -> list[str]:
        return [
            self._clean.line(
                location.path if location.line is None else f"{location.path}:{location.line}"
            )
            for location in locations
        ]


def _command(arguments: str) -> str:
    """Return the command line in a call's arguments; "" if there is none."""
    try:
        decoded = json.loads(arguments)
    except (ValueError, RecursionError):
        return ""
    command = decoded.get("command") if isinstance(decoded, dict) else None
    return command if isinstance(command, str) else ""
