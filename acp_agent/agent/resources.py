"""What a turn needs from the session that it runs in, one interface for each concern."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from acp_agent.agent.context import Context
from acp_agent.config.localization import Translator
from acp_agent.config.types import ContextConfig
from acp_agent.content import CallContent, Location
from acp_agent.events import AnyEvent, ToolKind, Usage
from acp_agent.ids import CallId, SessionId
from acp_agent.models.base import Driver, ModelInfo, ModelRequest, StreamEvent, ThoughtLevel
from acp_agent.permissions.access import Access, Ask, Decision, Gate, Mode

if TYPE_CHECKING:  # the tools bring pydantic, which is not needed before a prompt runs
    from acp_agent.agent.loop_detection import LoopDetector
    from acp_agent.agent.tool_calls import OpenCalls
    from acp_agent.hooks.session_hooks import SessionHooks
    from acp_agent.models.roles import ProviderSearch
    from acp_agent.tools.base import Answer, Question
    from acp_agent.tools.toolset import Toolset
    from acp_agent.workspace.workspace import Workspace


class PermissionRequest(Struct, frozen=True, kw_only=True):
    """A tool call about which the user is asked, as the question shows it.

    `command` is the command line that it would run in the folder `cwd`; None where it runs none.
    """

    call: CallId
    title: str
    kind: ToolKind
    arguments: str
    content: tuple[CallContent, ...] = ()
    locations: tuple[Location, ...] = ()
    command: str | None = None
    cwd: str | None = None


class Limits(Struct, frozen=True, kw_only=True):
    """How far a turn may go; the times are in seconds.

    `refusal_ends_turn` says whether a call that the user refused ends the turn that it is in, and
    `loop_rounds` after how many rounds of a loop the model is told, the user asked and the turn
    ended (0: never). `context` says how full the context may get, and what happens then.
    """

    model_requests: int = 100
    retries: int = 4
    first_byte: float = 120.0
    stall: float = 60.0
    max_concurrent_calls: int = 8
    refusal_ends_turn: bool = False
    loop_rounds: tuple[int, int, int] = (3, 5, 8)
    context: ContextConfig = field(default_factory=ContextConfig)


class Journal(Protocol):
    """The session's journal, and what follows from it."""

    @property
    def id(self) -> SessionId:
        """The session's id."""
        ...

    @property
    def context(self) -> Context:
        """What the model is sent, kept up with every event that was emitted."""
        ...

    @property
    def loop_detector(self) -> LoopDetector:
        """Detects that the model repeats itself; kept up with every event."""
        ...

    @property
    def secrets(self) -> Sequence[str]:
        """Values that must never reach a model, a client or a journal."""
        ...

    async def history(self) -> Sequence[AnyEvent]:
        """Return every event of the session so far."""
        ...

    async def emit(self, *events: AnyEvent) -> None:
        """Write events to the journal, apply them to the context, and show them.

        Once called, the events are written and shown in order even if the caller is cancelled.

        Raises:
            StoreError: they could not be written; they are not in the context and were not shown.
        """
        ...

    async def settled(self) -> None:
        """Wait until everything that anyone emitted is in the context.

        Until the next wait after it, nothing that the user said is missing there.
        """
        ...


class Models(Protocol):
    """The models of a turn, and the way to their providers."""

    @property
    def current(self) -> ModelInfo:
        """The chosen model as it is now."""
        ...

    @property
    def thought_level(self) -> ThoughtLevel | None:
        """How much the model is to reason."""
        ...

    @property
    def small(self) -> ModelInfo:
        """The model for side work; the session's own where there is no other."""
        ...

    @property
    def vision(self) -> ModelInfo | None:
        """The model that describes pictures for one that cannot see them; None: there is none.

        Raises:
            InvalidInputError, AuthRequiredError, ConfigError: it cannot be used.
        """
        ...

    def web_search(self, model: ModelInfo) -> ProviderSearch | None:
        """Return the search of the web by a model's provider; None: it has none to use."""
        ...

    def fallbacks(self, model: ModelInfo) -> Sequence[ModelInfo]:
        """Return the models to ask, in this order, when `model` is not available."""
        ...

    async def driver(self, model: ModelInfo) -> Driver:
        """Return the driver of a model; the first time this loads its SDK, in a thread."""
        ...


class User(Protocol):
    """The user of the session."""

    @property
    def translate(self) -> Translator:
        """Our texts in the user's language."""
        ...

    @property
    def mode(self) -> Mode:
        """The permission mode as it is now; the user may switch it at any moment."""
        ...

    @property
    def can_reply(self) -> bool:
        """Whether a question that the agent asks in its text is answered by the next prompt."""
        ...

    def take_compaction_request(self) -> str | None:
        """Return once that the user asked for a compaction: what matters to them, or ""."""
        ...

    async def ask_permission(self, asking: PermissionRequest, ask: Ask) -> Decision:
        """Let the user decide."""
        ...

    async def ask_question(self, call: CallId, question: Question) -> Answer | None:
        """Ask the user something. None: the client cannot show it."""
        ...


class Budget(Protocol):
    """What the turn may spend, and what it cost.

    Attributes:
        exhausted: whether a request was not made for lack of a budget, which ends the turn.
    """

    exhausted: bool

    @property
    def cost(self) -> float | None:
        """What the session cost so far, in US dollars; None where no price is known."""
        ...

    def charge(self, model: ModelInfo, usage: Usage) -> float | None:
        """Add a request's cost; return the session's total in US dollars, None where unknown."""
        ...

    async def refusal(self, side_request: ModelRequest | None = None) -> str | None:
        """Return why no further request may be made to the model, for the user; None: it may.

        Args:
            side_request: a request outside the conversation; None: the conversation's next one.

        Raises:
            StoreError: what was spent could not be read.
        """
        ...

    def reserve(
        self, side_request: ModelRequest | None = None
    ) -> AbstractAsyncContextManager[str | None]:
        """Reserve room in the budgets for a request until its usage is counted.

        Yields None, or why there is no room, in words for the user. Requests that may exceed a
        budget together are made one after the other.

        Args:
            side_request: a request outside the conversation; None: the conversation's next one.

        Raises:
            StoreError: what was spent could not be read.
        """
        ...

    def streamed(self, batch: Sequence[StreamEvent]) -> None:
        """Count a part of the answer for which room is reserved."""
        ...

    async def warn(self) -> None:
        """Warn the user of budgets that are nearly used up, once each.

        Raises:
            StoreError: what was spent could not be read, or the warning not be written.
        """
        ...


class EditChecks(Protocol):
    """Finds the problems that edits cause; language servers and syntax checks do."""

    @property
    def due(self) -> bool:
        """Whether files were changed and not checked yet."""
        ...

    def touched(self, path: Path) -> None:
        """Note that a file was read. Never waits."""
        ...

    def changed(self, path: Path, old: str | None) -> None:
        """Note that a file was changed; `old` is its text before, None where there was none."""
        ...

    def command_ran(self) -> None:
        """Note that a command may have changed files. Never waits."""
        ...

    async def problems(self) -> str:
        """Check what was changed; return the new problems, a line each. Waits within a bound."""
        ...

    def late(self) -> str:
        """Return the new problems that were found after a report. Never waits."""
        ...


class Tools(Protocol):
    """What the model may call, and what decides about it."""

    @property
    def workspace(self) -> Workspace:
        """What the tools may touch."""
        ...

    @property
    def toolset(self) -> Toolset:
        """The tools as they are at the moment."""
        ...

    @property
    def gate(self) -> Gate:
        """What decides about side effects."""
        ...

    @property
    def edit_checks(self) -> EditChecks:
        """What finds the problems that edits cause."""
        ...

    @property
    def open_calls(self) -> OpenCalls:
        """The turn's calls that have not ended."""
        ...

    def slot(self) -> AbstractAsyncContextManager[None]:
        """Wait until one more call may run in the process, and hold its slot."""
        ...

    async def save_files(self, access: Access) -> None:
        """Save the files, once a turn, before the first call that may change any runs.

        Raises:
            StoreError: the journal could not be written.
        """
        ...

    async def changed_by(self, access: Access) -> tuple[CallContent, ...]:
        """Return what shows the files that a command changed since its files were saved."""
        ...


class TurnResources(Struct, frozen=True, kw_only=True):
    """What a turn works with. Functions that need one part of it take only that part.

    `agent` is the name of the agent whose turn it is, empty for the session's own. `hooks` are
    None where there are none.
    """

    journal: Journal
    models: Models
    user: User
    budget: Budget
    tools: Tools
    limits: Limits
    agent: str = ""
    hooks: SessionHooks | None = None
