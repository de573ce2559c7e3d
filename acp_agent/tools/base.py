"""The base of a tool: a name, a description, typed parameters, and two steps.

`prepare` computes a title, the places that will change and a diff, and changes nothing, so that the
user sees the whole effect when asked. `run` of the result does the work.
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
from typing import Any, ClassVar, Generic, Literal, TypeVar

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

RESULT_LIMIT = 50_000  # bytes, as UTF-8, of one result that the model is sent
_NOTE_BYTES = 600  # bytes of the note in the middle of a result that was cut
_TAIL_SHARE = 0.3  # the share of the room that the end of a result gets
_MAX_TITLE_ARGUMENT = 120  # characters of one argument in a title
_MAX_SHOWN_ARGUMENTS = 4_000  # characters of the arguments that a call shows

Params = TypeVar("Params", bound=BaseModel)

AnswerKind = Literal["text", "number", "integer", "yes_no"]


class Touches(Struct, frozen=True, kw_only=True):
    """What a call reads and writes: absolute, resolved paths, each with all that is below it.

    A name that does not begin with a slash stands for something that is not a file, such as the
    plan. A call that is `exclusive` runs while no other call does; `unless_granted` lifts this once
    the user has allowed the tool permanently, `unless_only_reads` where the permission gate lets a
    command run because it only reads.
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
    """Whether the order in which two calls run may make a difference."""
    return (
        first.exclusive
        or second.exclusive
        or _overlap(first.writes, (*second.reads, *second.writes))
        or _overlap(second.writes, first.reads)
    )


def _overlap(first_paths: Sequence[str], second_paths: Sequence[str]) -> bool:
    return any(_is_within(a, b) or _is_within(b, a) for a in first_paths for b in second_paths)


def _is_within(path: str, folder: str) -> bool:
    # On some disks two spellings name one file; waiting needlessly costs next to nothing.
    path, folder = path.casefold(), folder.casefold()
    return path == folder or path.startswith(folder if folder.endswith("/") else f"{folder}/")


class ToolParams(BaseModel):
    """Base of every tool's parameters. Unknown ones are refused, so that the model learns."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Outcome(Struct, frozen=True, kw_only=True):
    """The result of a call: `text` and `images` for the model, the rest for the user.

    `content` and `locations` replace what was shown; None leaves it. `end_turn` ends the turn
    after this step (a question that the user answers with the next prompt). `wrote` has the files
    that were written: the path, and git's id of the content.
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

    The user may answer in words of their own all the same. `kind` is what is answered where there
    are no options. `preset` is the answer to begin with: labels of options, or a value of the kind.
    `further` are asked along with it, and have none of their own.
    """

    text: str
    options: tuple[tuple[str, str], ...] = ()
    several: bool = False
    kind: AnswerKind = "text"
    preset: tuple[str, ...] | str | float | bool | None = None
    optional: bool = False
    further: tuple[Question, ...] = ()


class Answer(Struct, frozen=True, kw_only=True):
    """What the user answered. `declined` is true when the user would not say."""

    text: str = ""
    declined: bool = False


class CommandEnd(Struct, frozen=True, kw_only=True):
    """How a background command ended.

    `lost` if that is unknown; `reported` if another call reports it to the model.
    """

    exit_code: int | None = None
    signal: str | None = None
    timed_out: bool = False
    stopped: bool = False
    lost: bool = False
    reported: bool = False


class Progress:
    """How a running call shows what it does, and how it reaches the user.

    This class shows nothing and asks nobody.

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
        """Replace what the call shows."""

    async def plan(self, entries: Sequence[PlanEntry]) -> None:
        """Show the whole plan as it is now; without entries there is none any more."""

    async def ask(self, question: Question) -> Answer | None:
        """Ask the user and wait. None: this editor cannot show a question."""
        del question
        return None

    async def say(self, text: str) -> None:
        """Show text to the user as part of the answer."""


Run = Callable[[Progress], Awaitable[Outcome]]


class Prepared(Struct, frozen=True, kw_only=True):
    """A call that is ready: what to show, what it will touch, and how to run it.

    `takes_slot` says whether it counts among the calls that run at the same time in the process.
    """

    title: str
    run: Run
    access: Access = NoAccess()
    locations: tuple[Location, ...] = ()
    content: tuple[CallContent, ...] = ()
    takes_slot: bool = True


class Tool(ABC, Generic[Params]):
    """A tool. Instances hold no state of a call and serve one session."""

    name: ClassVar[str]
    kind: ClassVar[ToolKind]
    effect: ClassVar[Literal["reads", "writes"]]
    stands_for: ClassVar[tuple[str, ...]] = ()  # tools that it does the work of, unoffered itself
    deferred: ClassVar[bool] = False  # it can be called, and is not among what the model is sent
    serves_deferred: ClassVar[bool] = False  # it finds or calls those
    polls: ClassVar[bool] = False  # to call it again and again with the same result is its use
    params: ClassVar[type[BaseModel]]
    touched: ClassVar[Touches | None] = None  # what every call reads and writes, if that is fixed

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    @property
    def is_offered(self) -> bool:
        """Whether it is among the tools that the model is sent."""
        return not (self.stands_for or self.deferred)

    def description(self) -> str:
        """Return the description for the model: the Markdown file next to the tool's module."""
        return _description(type(self).__module__.rpartition(".")[2])

    def title(self, arguments: JsonObject) -> str:
        """A title for a call whose arguments may be incomplete or wrong."""
        del arguments
        return self.name

    def forwarded(self, arguments: JsonObject) -> tuple[str, JsonObject] | None:
        """Return the call of another tool that a call stands for: its name and arguments."""
        del arguments
        return None

    def call_kind(self, arguments: JsonObject) -> ToolKind:
        """The kind of a call whose arguments may be incomplete or wrong."""
        del arguments
        return self.kind

    def touches(self, params: Params) -> Touches:
        """What a call reads and writes, as far as its arguments tell; asked before `prepare`.

        Calls whose touches conflict run in the order in which the model made them.

        Raises:
            WorkspaceError: an argument names nothing that can be touched.
        """
        del params
        return self.touched or (ALL_FILES_READ if self.effect == "reads" else EVERYTHING)

    @abstractmethod
    async def prepare(self, params: Params) -> Prepared:
        """Look at what the call would do. Changes nothing.

        Raises:
            ToolError: the call cannot work; the message is for the model.
            WorkspaceError: likewise, from the workspace.
        """


AnyTool = Tool[Any]


class SchemaArguments(BaseModel):
    """Arguments that were checked against the tool's own schema."""

    model_config = ConfigDict(frozen=True)

    values: JsonObject


class SchemaTool(Tool[SchemaArguments]):
    """A tool whose parameters are a JSON Schema that it brings along."""

    params: ClassVar[type[BaseModel]] = SchemaArguments

    @abstractmethod
    def parameters(self) -> JsonObject:
        """The parameters as a JSON Schema of an object."""

    def own_names(self, arguments: JsonObject) -> JsonObject:
        """Return a model's arguments with the names that the tool itself uses."""
        return arguments

    @abstractmethod
    def mistakes(self, arguments: JsonObject) -> list[str]:
        """What is wrong with arguments; empty where nothing is."""


def arguments_content(arguments: JsonObject) -> tuple[CallContent, ...]:
    """The arguments as text, for a call about which nothing else is known."""
    if not arguments:
        return ()
    text = json.dumps(arguments, indent=2, ensure_ascii=False)
    return (text_part(code_block(shorten(text, _MAX_SHOWN_ARGUMENTS), "json")),)


def text_argument(arguments: JsonObject, name: str) -> str:
    """A text argument on one line; "" if it is missing or no text."""
    value = arguments.get(name)
    if not isinstance(value, str):
        return ""
    line = display_name(value.encode("utf-8", "replace").decode())
    return line if len(line) <= _MAX_TITLE_ARGUMENT else line[: _MAX_TITLE_ARGUMENT - 1] + "…"


def number_argument(arguments: JsonObject, name: str) -> int | None:
    """A whole number; None if it is missing or something else."""
    value = arguments.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def path_argument(tool: AnyTool, arguments: JsonObject) -> str:
    """A path, relative to the working folder where it lies below it; "" if there is none."""
    path = text_argument(arguments, "path")
    for root in (tool.workspace.cwd, tool.workspace.files.roots[0]):
        if Path(path).is_relative_to(root):
            return display_path(path, root)
    return path


async def limit_result(text: str, outputs: Path, call: CallId) -> str:
    """Return a result of at most `RESULT_LIMIT` bytes of UTF-8.

    A longer one keeps its head and its tail, cut at line ends where there are any, around a note
    that names the file below `outputs` which holds the whole.
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
