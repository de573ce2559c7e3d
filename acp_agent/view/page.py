"""The data of a page: sections for turns and the time between them, with their steps.

Texts are ready for display: without secrets, with visible control characters, and shortened. Times
are Unix milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal

from msgspec import Struct, field

from acp_agent.events import PlanEntry, Severity, Usage

DiffKind = Literal["place", "same", "removed", "added", "unended"]
Status = Literal["waiting", "running", "completed", "failed", "cancelled", "refused", "interrupted"]
Lane = Literal["model", "tools", "user"]


class Request(Struct, kw_only=True):
    """A request to a model; `asked` is None for one outside the conversation, such as a title."""

    model: str
    asked: int | None = None
    answered: int | None = None
    usage: Usage = Usage()
    cost: float | None = None
    complete: bool = False
    discarded: bool = False


class Spend(Struct, kw_only=True):
    """Usage and cost in US dollars; `unpriced` requests are not in the `cost`."""

    usage: Usage = Usage()
    cost: float = 0.0
    requests: int = 0
    unpriced: int = 0

    def add(self, other: Spend) -> None:
        """Add the usage and cost of another `Spend`."""
        self.usage += other.usage
        self.cost += other.cost
        self.requests += other.requests
        self.unpriced += other.unpriced


class Step(Struct, kw_only=True):
    """An event as the page shows it; `anchor` is its id in the page.

    `undone` is true if a rewind removed it from the conversation.
    """

    kind: ClassVar[str] = ""

    anchor: str = ""
    at: int = 0
    undone: bool = False


class Picture(Struct, frozen=True, kw_only=True):
    """An image as a `data:` URL, "" if it is omitted; `size` is in bytes."""

    source: str
    media_type: str
    size: int


class Block(Struct, frozen=True, kw_only=True):
    """A piece of content: a verbatim text (Markdown if `markdown`), a picture, or a label.

    `label` names a resource, or content that cannot be shown, such as audio.
    """

    text: str = ""
    markdown: bool = False
    label: str = ""
    picture: Picture | None = None


class UserMessage(Step, kw_only=True):
    """A message of the user; `attached` is the context loaded for it.

    `task` is true for the task of a child session.
    """

    kind: ClassVar[str] = "user"

    blocks: list[Block]
    steering: bool = False
    task: bool = False
    attached: str = ""


class AgentMessage(Step, kw_only=True):
    """A part of an answer, in Markdown; `model` is set if the model changed."""

    kind: ClassVar[str] = "agent"

    text: str
    message: str
    model: str = ""
    by_agent: bool = False  # written by the agent, not by a model
    discarded: bool = False  # cut off, and requested again
    incomplete: bool = False


class AgentThought(Step, kw_only=True):
    """A part of the model's reasoning."""

    kind: ClassVar[str] = "thought"

    text: str
    message: str


class DiffLines(Struct, frozen=True, kw_only=True):
    """Consecutive lines of a diff of the same kind, with their marks and line breaks."""

    kind: DiffKind
    text: str


class Diff(Struct, frozen=True, kw_only=True):
    """The changes in a file."""

    path: str
    lines: list[DiffLines]
    added: int
    removed: int
    new: bool


class Permission(Struct, kw_only=True):
    """The decision about a call, with its reason; `decided_at` is None while it is open.

    `by` has the event's value, or `client` if it is unknown whether the user answered; `name` is
    the mode or the flag. `unanswered` says why a question has no answer.
    """

    asked_at: int | None = None
    decided_at: int | None = None
    allowed: bool | None = None
    by: str = ""
    name: str = ""
    why: str = ""
    unanswered: Literal["", "dismissed", "unclear", "not_asked"] = ""


class Call(Step, kw_only=True):
    """A tool call."""

    kind: ClassVar[str] = "call"

    name: str
    title: str
    status: Status = "waiting"
    command: str = ""  # the command line that it runs
    cwd: str = ""
    arguments: str = ""
    locations: list[str] = []
    permissions: list[Permission] = []
    started: int | None = None
    ended: int | None = None
    blocks: list[Block] = []
    diffs: list[Diff] = []
    output: str = ""
    result: str = ""  # the part of the result that is not shown elsewhere
    output_omitted: bool = False  # `result` lacks the output, which the model received too
    pictures: list[Picture] = []
    picture_description: str = ""
    exit_code: int | None = None
    signal: str = ""
    background: str = ""  # the name of its background command
    background_status: str = ""
    children: list[Child] = []  # child sessions that worked for this call

    @property
    def took(self) -> int | None:
        """The running time in milliseconds."""
        if self.started is None or self.ended is None:
            return None
        return max(0, self.ended - self.started)


class Child(Struct, kw_only=True):
    """A child session that worked for a call, with its steps.

    `outcome` and `error` have the same values as in a `Section`.
    """

    session: str
    title: str = ""
    steps: list[Step] = []
    requests: list[Request] = []
    outcome: str = "running"
    error: str = ""
    spend: Spend = field(default_factory=Spend)


class Plan(Step, kw_only=True):
    """The complete plan after a change."""

    kind: ClassVar[str] = "plan"

    entries: list[PlanEntry]
    last: bool = False  # of its section

    @property
    def done(self) -> int:
        """The number of completed entries."""
        return sum(entry.status == "completed" for entry in self.entries)


class Compaction(Step, kw_only=True):
    """A summary replaced older messages for the model."""

    kind: ClassVar[str] = "compaction"

    status: str
    summary: str = ""
    error: str = ""
    ended: int | None = None
    keeps: str = ""  # the anchor of the first message that the summary does not replace


class Rewind(Step, kw_only=True):
    """The session went back to `target`, an anchor, "" if that is not in the page.

    `undoes` is true if the target is another rewind, which is reverted; `title` then describes the
    target of that rewind.
    """

    kind: ClassVar[str] = "rewind"

    title: str
    target: str
    undoes: bool
    conversation: bool
    keeps_words: bool
    files: bool
    changed: int


class Note(Step, kw_only=True):
    """Any other event: `key` names its text, `values` fill the placeholders."""

    kind: ClassVar[str] = "note"

    key: str
    values: dict[str, str | int] = {}
    text: str = ""
    folded: bool = False
    severity: Severity = "info"
    link: str = ""  # the anchor of a related step


def all_steps(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield the steps, each followed by those of its child sessions."""
    for step in steps:
        yield step
        for child in step_children(step):
            yield from all_steps(child.steps)


def step_children(step: Step) -> list[Child]:
    """Return the child sessions that worked for a step."""
    return step.children if isinstance(step, Call) else []


class Span(Struct, frozen=True):
    """A period in which the model, a tool or the user was active."""

    lane: Lane
    start: int
    end: int


class Times(Struct, frozen=True, kw_only=True):
    """The duration of a section, and how long the model, tools and the user were active in it.

    Parallel spans of a lane count once. `idle` is the time without any activity.
    """

    start: int
    end: int
    spans: tuple[Span, ...] = ()
    model: int = 0
    tools: int = 0
    user: int = 0
    idle: int = 0

    @property
    def total(self) -> int:
        """The time from the first event to the last."""
        return self.end - self.start


class Section(Struct, kw_only=True):
    """A turn, or the time between turns (`number` is None).

    `spend` includes child sessions; `requests` does not.
    """

    anchor: str
    number: int | None
    start: int
    title: str = ""
    steps: list[Step] = []
    requests: list[Request] = []
    outcome: str = "running"  # a stop reason, `error`, `interrupted` or `running`
    error: str = ""
    times: Times | None = None
    spend: Spend = field(default_factory=Spend)
    context_used: int = 0
    context_size: int = 0
    local: bool = False  # a command that the agent itself answered
    undone: bool = False

    def all_requests(self) -> Iterator[Request]:
        """Yield its requests and those of its child sessions."""
        yield from self.requests
        for step in self.steps:
            for child in step_children(step):
                yield from child.requests


class Page(Struct, kw_only=True):
    """The data of a page. `omitted` counts the characters and bytes that did not fit."""

    session: str
    title: str
    cwd: str
    directories: list[str]
    forked_from: str
    created_at: int
    updated_at: int
    models: list[str]
    sections: list[Section]
    spend: Spend
    times: Times
    omitted: int = 0

    @property
    def turns(self) -> list[Section]:
        """The sections that are turns."""
        return [section for section in self.sections if section.number is not None]
