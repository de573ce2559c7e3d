"""The base of a tool: a name, a description, typed parameters, and two steps.

`prepare` computes a title, locations and a diff without changing anything, so that the user sees
the whole effect when asked for permission. `run` of the result does the work.
"""

from __future__ import annotations

import asyncio
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from importlib.resources import files as package_files
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from msgspec import Struct
from pydantic import BaseModel, ConfigDict

from acp_agent.content import CallContent, ImageBlock, JsonObject, Location, text_part
from acp_agent.errors import WorkspaceError
from acp_agent.events import PlanEntry, ToolKind
from acp_agent.ids import CallId
from acp_agent.permissions.access import Access, NoAccess
from acp_agent.tools.quoting import code_block, shorten
from acp_agent.workspace.command_output import from_line_start, until_line_end
from acp_agent.workspace.file_io import display_name, display_path, replace_file
from acp_agent.workspace.workspace import Workspace

if TYPE_CHECKING:  # jsonschema is imported once a tool has a schema
    from acp_agent.extensions.mcp.schemas import ToolSchema

RESULT_LIMIT = 50_000  # bytes of UTF-8 of one result for the model
_NOTE_BYTES = 600  # bytes of the note in the middle of a shortened result
_TAIL_SHARE = 0.3  # fraction of a shortened result that is its end
_MAX_TITLE_ARGUMENT = 120  # characters of one argument in a title
_MAX_SHOWN_ARGUMENTS = 4_000  # displayed characters of the arguments of a call

Params = TypeVar("Params", bound=BaseModel)

AnswerKind = Literal["text", "number", "integer", "yes_no"]


class Touches(Struct, frozen=True, kw_only=True):
    """What a call reads and writes: absolute, resolved paths, each with everything below it.

    A name without a leading slash is not a file but another resource, such as the plan. An
    `exclusive` call runs alone, except that `unless_granted` applies once the user has allowed the
    tool permanently, and `unless_only_reads` if the permission gate allows a command because it
    only reads.
    """

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    exclusive: bool = False
    unless_granted: bool = False
    unless_only_reads: bool = False


NOTHING = Touches()


ALL_FILES_READ = Touches(reads=("/",))


EVERYTHING = Touches(exclusive=True)


READS_OR_EVERYTHING = Touches(exclusive=True, unless_only_reads=True)


NOTHING_IF_GRANTED = Touches(exclusive=True, unless_granted=True)


def conflict(first: Touches, second: Touches) -> bool:
    """Return whether the order in which two calls run may make a difference."""
    return (
        first.exclusive
        or second.exclusive
        or _overlap(first.writes, (*second.reads, *second.writes))
        or _overlap(second.writes, first.reads)
    )


def _overlap(first_paths: Sequence[str], second_paths: Sequence[str]) -> bool:
    return any(_is_within(a, b) or _is_within(b, a) for a in first_paths for b in second_paths)


def _is_within(path: str, folder: str) -> bool:
    # File systems may ignore case; waiting unnecessarily costs little.
    path, folder = path.casefold(), folder.casefold()
    return path == folder or path.startswith(folder if folder.endswith("/") else f"{folder}/")


class ToolParams(BaseModel):
    """Base of every tool's parameters. Unknown ones are errors, which the model can correct."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Outcome(Struct, frozen=True, kw_only=True):
    """The result of a call: `text` and `images` for the model, the rest for the user.

    `content` and `locations` replace those that are shown, unless None. `end_turn` ends the turn
    after this step, for a question that the user answers with the next prompt. `wrote` has the
    path and the git blob id of each written file.
    """

    text: str
    failed: bool = False
    images: tuple[ImageBlock, ...] = ()
    content: tuple[CallContent, ...] | None = None
    locations: tuple[Location, ...] | None = None
    raw_output: JsonObject | None = None
    exit_code: int | None = None
    signal: str | None = None
    end_turn: bool = False
    wrote: tuple[tuple[str, str], ...] = ()


class Question(Struct, frozen=True, kw_only=True):
    """A question to the user; `options` are suggested answers, as label and description.

    The user may also answer with free text. `kind` is the type of an answer without options.
    `preset` is the default answer: labels of options, or a value of the kind. `further` questions
    are asked together with this one; they have none themselves.
    """

    text: str
    options: tuple[tuple[str, str], ...] = ()
    several: bool = False
    kind: AnswerKind = "text"
    preset: tuple[str, ...] | str | float | bool | None = None
    optional: bool = False
    further: tuple[Question, ...] = ()


class Answer(Struct, frozen=True, kw_only=True):
    """The answer of the user. `declined` is true if the user refused to answer."""

    text: str = ""
    declined: bool = False


class CommandEnd(Struct, frozen=True, kw_only=True):
    """How a background command ended.

    `lost` if the result is unknown; `reported` if another call reports it to the model.
    """

    exit_code: int | None = None
    signal: str | None = None
    timed_out: bool = False
    stopped: bool = False
    lost: bool = False
    reported: bool = False


class Progress:
    """The interface of a running call to the user: it shows progress and asks questions.

    This base class does nothing.

    Attributes:
        call: the call's id.
        stop: set when the user stops the command that the call runs; the call ends by itself then.
        only_reads: true if the command was allowed without a question because it only reads.
    """

    def __init__(
        self, call: str = "", stop: asyncio.Event | None = None, *, only_reads: bool = False
    ) -> None:
        self.call = call
        self.stop = stop or asyncio.Event()
        self.only_reads = only_reads

    async def output(self, text: str) -> None:
        """Show the next piece of a command's output."""

    async def moved_to_background(self, name: str, command: str) -> None:
        """Report that the command continues in the background; `output` works until its end."""

    async def background_ended(self, end: CommandEnd) -> None:
        """Report that the background command has ended."""

    async def show(
        self,
        *,
        title: str | None = None,
        content: tuple[CallContent, ...] | None = None,
        locations: tuple[Location, ...] | None = None,
    ) -> None:
        """Replace the displayed title, content or locations of the call."""

    async def plan(self, entries: Sequence[PlanEntry]) -> None:
        """Replace the displayed plan; no entries remove it."""

    async def ask(self, question: Question) -> Answer | None:
        """Ask the user and wait; return None if the editor cannot show a question."""
        del question
        return None

    async def say(self, text: str) -> None:
        """Show text to the user as part of the answer."""


Run = Callable[[Progress], Awaitable[Outcome]]


class Prepared(Struct, frozen=True, kw_only=True):
    """A call that is ready to run: its display, its access and its function.

    `takes_slot` says whether it counts towards the limit of calls that run at the same time.
    """

    title: str
    run: Run
    access: Access = NoAccess()
    locations: tuple[Location, ...] = ()
    content: tuple[CallContent, ...] = ()
    takes_slot: bool = True


class Tool(ABC, Generic[Params]):
    """A tool of one session. Instances hold no state of a call."""

    name: ClassVar[str]
    kind: ClassVar[ToolKind]
    effect: ClassVar[Literal["reads", "writes"]]
    replaces_tools: ClassVar[tuple[str, ...]] = ()  # tools that it replaces; it is not offered
    deferred: ClassVar[bool] = False  # callable, but not in the requests to the model
    serves_deferred: ClassVar[bool] = False  # it finds or calls deferred tools
    polls: ClassVar[bool] = False  # repeated calls with the same result are normal
    params: ClassVar[type[BaseModel]]
    touched: ClassVar[Touches | None] = None  # what every call reads and writes, if it is constant

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    @property
    def is_offered(self) -> bool:
        """Whether the tool is in the requests to the model."""
        return not (self.replaces_tools or self.deferred)

    def description(self) -> str:
        """Return the description for the model: the Markdown file next to the tool's module."""
        return _description(type(self).__module__.rpartition(".")[2])

    def title(self, arguments: JsonObject) -> str:
        """Return a title for a call whose arguments may be incomplete or wrong."""
        del arguments
        return self.name

    def forwarded(self, arguments: JsonObject) -> tuple[str, JsonObject] | None:
        """Return the call of another tool that a call stands for: its name and arguments."""
        del arguments
        return None

    def call_kind(self, arguments: JsonObject) -> ToolKind:
        """Return the kind of a call whose arguments may be incomplete or wrong."""
        del arguments
        return self.kind

    def touches(self, params: Params) -> Touches:
        """Return what a call reads and writes according to its arguments; called before `prepare`.

        Calls whose touches conflict run in the order in which the model made them.

        Raises:
            WorkspaceError: an argument is not a usable path.
        """
        del params
        return self.touched or (ALL_FILES_READ if self.effect == "reads" else EVERYTHING)

    @abstractmethod
    async def prepare(self, params: Params) -> Prepared:
        """Check a call and compute its effects, without changing anything.

        Raises:
            ToolError: the call cannot work; the message is for the model.
            WorkspaceError: likewise, from the workspace.
        """


AnyTool = Tool[Any]


class SchemaArguments(BaseModel):
    """Arguments that match the schema of their tool."""

    model_config = ConfigDict(frozen=True)

    values: JsonObject


class SchemaTool(Tool[SchemaArguments]):
    """A tool whose parameters are given as a JSON Schema."""

    params: ClassVar[type[BaseModel]] = SchemaArguments
    schema: ToolSchema

    def parameters(self) -> JsonObject:
        """Return the parameters as a JSON Schema of an object."""
        return self.schema.for_model

    def own_names(self, arguments: JsonObject) -> JsonObject:
        """Return the model's arguments with the names that the tool uses."""
        return self.schema.own_names(arguments)

    def mistakes(self, arguments: JsonObject) -> list[str]:
        """Return the errors in arguments; empty if they are valid."""
        return self.schema.mistakes(arguments)


def arguments_content(arguments: JsonObject) -> tuple[CallContent, ...]:
    """Return the arguments as text, to show an unknown call."""
    if not arguments:
        return ()
    text = json.dumps(arguments, indent=2, ensure_ascii=False)
    return (text_part(code_block(shorten(text, _MAX_SHOWN_ARGUMENTS), "json")),)


def text_argument(arguments: JsonObject, name: str) -> str:
    """Return a text argument on one line; "" if it is missing or no text."""
    value = arguments.get(name)
    if not isinstance(value, str):
        return ""
    line = display_name(value.encode("utf-8", "replace").decode())
    return line if len(line) <= _MAX_TITLE_ARGUMENT else line[: _MAX_TITLE_ARGUMENT - 1] + "…"


def number_argument(arguments: JsonObject, name: str) -> int | None:
    """Return an integer argument; None if it is missing or of another type."""
    value = arguments.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def path_argument(tool: AnyTool, arguments: JsonObject) -> str:
    """Return a path argument, relative if it is below the working folder; "" if there is none."""
    path = text_argument(arguments, "path")
    for root in (tool.workspace.cwd, tool.workspace.files.roots[0]):
        if Path(path).is_relative_to(root):
            return display_path(path, root)
    return path


async def limit_result(text: str, outputs: Path, call: CallId) -> str:
    """Return a result of at most `RESULT_LIMIT` bytes of UTF-8.

    Of a longer one the head and the tail remain, cut at line ends if possible. A note between them
    names the file below `outputs` with the whole result.
    """
    raw = text.encode("utf-8", "replace")
    if len(raw) <= RESULT_LIMIT:
        return text
    name = re.sub(r"[^A-Za-z0-9_-]", "_", call)[:100]
    try:
        path = await asyncio.to_thread(_save, outputs, f"{name}.txt", text)
    except WorkspaceError as error:
        saved = f"the rest could not be saved: {error}"
    else:
        saved = f"the whole is in {path}: use `grep` on it, or `read` with line and limit"
    budget = RESULT_LIMIT - _NOTE_BYTES
    tail_budget = int(budget * _TAIL_SHARE)
    head = until_line_end(raw[: budget - tail_budget].decode("utf-8", "ignore"))
    tail = from_line_start(raw[-tail_budget:].decode("utf-8", "ignore"))
    omitted = len(text) - len(head) - len(tail)
    note = f"[… {omitted:,} characters are left out here; {saved[: _NOTE_BYTES - 80]} …]"
    return f"{head}\n{note}\n{tail}"


def _save(outputs: Path, name: str, text: str) -> Path:
    path = outputs.resolve() / name
    replace_file(path, text.encode("utf-8", "replace"), label=str(path))
    return path


@cache
def _description(module: str) -> str:
    """Return the description of a tool by its module: a turn may create a tool again."""
    return (package_files(__package__) / f"{module}.md").read_text("utf-8").strip()
