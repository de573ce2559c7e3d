"""The data of a page: its turns and what is between them, with their steps and times.

Texts are ready to be shown: scrubbed, visible and cut. Times are Unix milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal

from msgspec import Struct, field

from acp_agent.events import PlanEntry, Severity, Usage


class Request(Struct, kw_only=True):
    """A request to a model; `asked` is None for those beside the conversation."""

    model: str
    asked: int | None = None
    answered: int | None = None
    usage: Usage = Usage()
    cost: float | None = None
    complete: bool = False
    discarded: bool = False


class Spend(Struct, kw_only=True):
    """What requests took; those that are `unpriced` are not in the `cost` (US dollars)."""

    usage: Usage = Usage()
    cost: float = 0.0
    requests: int = 0
    unpriced: int = 0

    def add(self, other: Spend) -> None:
        """Count the other in."""
        self.usage += other.usage
        self.cost += other.cost
        self.requests += other.requests
        self.unpriced += other.unpriced


DiffKind = Literal["place", "same", "removed", "added", "unended"]

Status = Literal["waiting", "running", "completed", "failed", "cancelled", "refused", "interrupted"]


class Step(Struct, kw_only=True):
    """Something that happened, as the page shows it; `anchor` is its id in the page.

    `undone` where a rewind took it back.
    """

    kind: ClassVar[str] = ""

    anchor: str
    at: int
    undone: bool = False


class Picture(Struct, frozen=True, kw_only=True):
    """A picture: a `data:` address, "" where it is left out; `size` counts its bytes."""

    source: str
    media_type: str
    size: int


class Block(Struct, frozen=True, kw_only=True):
    """A piece of content: text as it was written (Markdown where `markdown`), or what it is.

    `label` names a resource or what cannot be shown, such as a sound.
    """

    text: str = ""
    markdown: bool = False
    label: str = ""
    picture: Picture | None = None


class UserSaid(Step, kw_only=True):
    """What the user said; what the agent read because of it is `attached`.

    `task` where it is what a child session was told to do.
    """

    kind: ClassVar[str] = "user"

    blocks: list[Block]
    steering: bool = False
    task: bool = False
    attached: str = ""


class AgentSaid(Step, kw_only=True):
    """A piece of an answer, in Markdown, by `model` where it is another one than before."""

    kind: ClassVar[str] = "agent"

    text: str
    message: str
    model: str = ""
    own: bool = False  # the agent's own words, not a model's
    discarded: bool = False  # it was cut off and asked for again
    incomplete: bool = False


class AgentThought(Step, kw_only=True):
    """A piece of the model's reasoning."""

    kind: ClassVar[str] = "thought"

    text: str
    message: str


class DiffLines(Struct, frozen=True, kw_only=True):
    """Lines of a diff that are of one kind, each with its mark; they end with a line break."""

    kind: DiffKind
    text: str


class Diff(Struct, frozen=True, kw_only=True):
    """What changed in a file."""

    path: str
    lines: list[DiffLines]
    added: int
    removed: int
    new: bool


class Permission(Struct, kw_only=True):
    """Who allowed or refused a call, and why; `decided_at` is None while it is open.

    `by` is as in the event, but `client` where it is not known whether the user answered; `name` is
    the mode or the flag.
    `unanswered` says what became of a question that nobody answered.
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
    places: list[str] = field(default_factory=list)
    permissions: list[Permission] = field(default_factory=list)
    started: int | None = None
    ended: int | None = None
    blocks: list[Block] = field(default_factory=list)
    diffs: list[Diff] = field(default_factory=list)
    output: str = ""
    result: str = ""  # what the model was told that is not shown otherwise
    besides: bool = False  # the result without the output, which the model was told whole
    pictures: list[Picture] = field(default_factory=list)
    pictures_told: str = ""
    exit_code: int | None = None
    signal: str = ""
    background: str = ""  # the name of the command that goes on behind it
    background_status: str = ""
    children: list[Child] = field(default_factory=list)  # who worked for it

    @property
    def took(self) -> int | None:
        """How long it ran."""
        if self.started is None or self.ended is None:
            return None
        return max(0, self.ended - self.started)


class Child(Struct, kw_only=True):
    """A child session that worked for a call, and what it did.

    `outcome` and `error` are those of a `Section`.
    """

    session: str
    title: str = ""
    steps: list[Step] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    outcome: str = "running"
    error: str = ""
    spend: Spend = field(default_factory=Spend)


class Plan(Step, kw_only=True):
    """The plan as it was from here on."""

    kind: ClassVar[str] = "plan"

    entries: list[PlanEntry]
    last: bool = False  # of its section

    @property
    def done(self) -> int:
        """How many entries are completed."""
        return sum(entry.status == "completed" for entry in self.entries)


class Compaction(Step, kw_only=True):
    """The conversation was summed up for the model."""

    kind: ClassVar[str] = "compaction"

    status: str
    summary: str = ""
    error: str = ""
    ended: int | None = None
    keeps: str = ""  # the anchor of the message that is the first it keeps


class Rewind(Step, kw_only=True):
    """The session went back to `target`, an anchor, "" where that is not in the page.

    `undoes` where that is another rewind, which is so taken back; `title` is then what that one
    went back to.
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
    """Anything else: `what` names the words for it, `values` what stands in them."""

    kind: ClassVar[str] = "note"

    what: str
    values: dict[str, str | int] = field(default_factory=dict)
    text: str = ""
    folded: bool = False
    severity: Severity = "info"
    link: str = ""  # the anchor of what it is about


def every_step(steps: Iterable[Step]) -> Iterator[Step]:
    """The steps, each with those of the child sessions that worked for it behind it."""
    for step in steps:
        yield step
        for child in children_of(step):
            yield from every_step(child.steps)


def children_of(step: Step) -> list[Child]:
    """The child sessions that worked for a step."""
    return step.children if isinstance(step, Call) else []


Lane = Literal["model", "tools", "user"]


class Span(Struct, frozen=True):
    """A time in which a lane was at work."""

    lane: Lane
    start: int
    end: int


class Times(Struct, frozen=True, kw_only=True):
    """How long a section took, and how much of it the model, tools and the user were at work.

    What runs side by side counts once in its lane. `rest` is what belongs to no lane.
    """

    start: int
    end: int
    spans: tuple[Span, ...] = ()
    model: int = 0
    tools: int = 0
    user: int = 0
    rest: int = 0

    @property
    def whole(self) -> int:
        """From the first event to the last."""
        return self.end - self.start


class Section(Struct, kw_only=True):
    """A turn, or what happened between turns (`number` is None).

    What child sessions took is in the `spend`, and their requests are not in the `requests`.
    """

    anchor: str
    number: int | None
    start: int
    title: str = ""
    steps: list[Step] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    outcome: str = "running"  # a stop reason, `error`, `interrupted` or `running`
    error: str = ""
    times: Times | None = None
    spend: Spend = field(default_factory=Spend)
    context_used: int = 0
    context_size: int = 0
    local: bool = False  # a command that the agent answered by itself
    undone: bool = False

    def every_request(self) -> Iterator[Request]:
        """Its requests, and those of the child sessions that worked in it."""
        yield from self.requests
        for step in self.steps:
            for child in children_of(step):
                yield from child.requests


class Page(Struct, kw_only=True):
    """All of a page. `left_out` counts characters and bytes that had no room in it."""

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
    left_out: int = 0

    @property
    def turns(self) -> list[Section]:
        """The sections that are turns."""
        return [section for section in self.sections if section.number is not None]
