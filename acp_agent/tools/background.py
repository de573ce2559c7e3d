"""Read, await and stop background commands."""

from __future__ import annotations

import functools
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from acp_agent.content import JsonObject, text_part
from acp_agent.errors import ToolError
from acp_agent.events import ToolKind
from acp_agent.tools.base import Outcome, Prepared, Progress, Tool, ToolParams, Touches
from acp_agent.tools.quoting import code_block, code_span, first_line, shorten
from acp_agent.tools.shell import MAX_SHOWN_LENGTH, TITLE_LIMIT, ending
from acp_agent.workspace.background_commands import BackgroundCommand

MAX_WAIT = 600.0  # seconds
DEFAULT_WAIT = 30.0  # seconds, if the call has none
_COMMANDS_RESOURCE = "background commands"
_STOP_SECONDS = 10.0  # how long to wait for a stopped command

_TITLES = {
    "list": "List the background commands",
    "output": "Read the output of {}",
    "wait": "Wait for {}",
    "stop": "Stop {}",
}


class BackgroundParams(ToolParams):
    """The background tool's parameters. A command's id is a number as text, or a number."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    action: Literal["list", "output", "wait", "stop"]
    id: Annotated[str | None, Field(description="Which command; for all but `list`.")] = None
    seconds: Annotated[
        float | None, Field(gt=0, le=MAX_WAIT, description="How long to wait at most.")
    ] = None
    until: Annotated[
        str | None, Field(max_length=200, description="Text of a line; `*` is anything.")
    ] = None


class BackgroundTool(Tool[BackgroundParams]):
    """Reads, awaits and stops background commands."""

    name: ClassVar[str] = "background"
    kind: ClassVar[ToolKind] = "execute"
    effect: ClassVar[Literal["reads", "writes"]] = "reads"
    polls: ClassVar[bool] = True
    params: ClassVar[type[BackgroundParams]] = BackgroundParams

    def title(self, arguments: JsonObject) -> str:
        """Return a title such as "Wait for `npm run dev`"."""
        title = _TITLES.get(str(arguments.get("action")))
        if title is None:
            return self.name
        name = str(arguments.get("id") or "")
        try:
            label = code_span(first_line(self.workspace.background.get(name).command, TITLE_LIMIT))
        except ToolError:
            label = f"the background command {name}"
        return title.format(label)

    def touches(self, params: BackgroundParams) -> Touches:
        """Return no files: access to files was checked when the command was started.

        Calls about the same command run in order, for example a wait before a stop.
        """
        if params.action == "list" or params.id is None:
            return Touches(reads=(_COMMANDS_RESOURCE,))
        return Touches(writes=(f"{_COMMANDS_RESOURCE}/{params.id.strip().lstrip('#')}",))

    async def prepare(self, params: BackgroundParams) -> Prepared:
        """Find the command. No permission is needed: the session started it with permission."""
        if params.action == "list":
            return Prepared(title=self.title({"action": "list"}), run=self._list)
        if params.id is None:
            raise ToolError(
                "no background command is named", advice=f"`{params.action}` needs one, in `id`"
            )
        command = self.workspace.background.get(params.id)
        return Prepared(
            title=self.title({"action": params.action, "id": params.id}),
            run=functools.partial(self._run, params, command),
        )

    async def _list(self, _progress: Progress) -> Outcome:
        lines = [_line(command) for command in self.workspace.background]
        text = "\n".join(lines) or "There are no background commands."
        return Outcome(text=text, content=(text_part(text),))

    async def _run(
        self, params: BackgroundParams, command: BackgroundCommand, _progress: Progress
    ) -> Outcome:
        runs = command.is_running
        matched = False
        if params.action == "stop":
            command.reported = command.reported or runs
            command.stop(by_call=True)
            await command.wait(_STOP_SECONDS)
        elif params.action == "wait":
            command.reported = command.reported or runs
            try:
                matched = await command.wait(params.seconds or DEFAULT_WAIT, params.until or "")
            finally:
                if command.is_running:
                    command.reported = False
        output = command.read_output().rstrip("\n")
        state = _state(command)
        if matched and command.is_running:
            state += "; a line matched"
        elif params.action == "wait" and params.until and not matched:
            state += "; no line matched"
        user_text = (
            f"{code_block(shorten(output, MAX_SHOWN_LENGTH), 'console')}\n{state}"
            if output
            else state
        )
        return Outcome(
            text=f"{output}\n[{state}]" if output else f"[no new output; {state}]",
            content=(text_part(user_text),),
        )


def _line(command: BackgroundCommand) -> str:
    line = code_span(first_line(command.command, TITLE_LIMIT))
    return f"- {command.name}: {line}, {_state(command)}"


def _state(command: BackgroundCommand) -> str:
    if command.is_running:
        return f"running for {command.seconds:.0f} s"
    if command.result is None:
        return f"ended after {command.seconds:.0f} s; {command.failure or 'nobody knows how'}"
    by = "by a call" if command.stopped_by_call else "by the user"
    return f"ended after {command.seconds:.0f} s: {ending(command.result, by=by)}"
