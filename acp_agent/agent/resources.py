"""Interfaces through which a turn uses its session, one for each concern."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
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

if TYPE_CHECKING:  # the tools import pydantic, which is not needed before a prompt runs
    from acp_agent.agent.loop_detection import LoopDetector
    from acp_agent.agent.tool_calls import OpenCalls
    from acp_agent.hooks.session_hooks import SessionHooks
    from acp_agent.models.roles import ProviderSearch
    from acp_agent.tools.base import Answer, Question
    from acp_agent.tools.toolset import Toolset
    from acp_agent.workspace.workspace import Workspace


class PermissionRequest(Struct, frozen=True, kw_only=True):
    """A tool call that needs the user's permission, as the question shows it.

    `command` is the command line that the call would run in the folder `cwd`, or None.
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
    """The limits of a turn; times are in seconds.

    If `refusal_ends_turn` is true, the turn ends when the user refuses a call. `loop_rounds` are
    the numbers of rounds of a loop after which the model gets a note, the user is asked and the
    turn is ended; 0 means never. `context` limits the size of the context.
    `output_folder` is the only folder in which files may be edited, relative to the session's.
    """

    model_requests: int = 100
    retries: int = 4
    first_byte: float = 120.0
    stall: float = 60.0
    max_concurrent_calls: int = 8
    refusal_ends_turn: bool = False
    loop_rounds: tuple[int, int, int] = (3, 5, 8)
    context: ContextConfig = field(default_factory=ContextConfig)
    output_folder: str | None = None


class Journal(Protocol):
    """The session's journal, and the state that is computed from its events."""

    @property
    def id(self) -> SessionId:
        """Return the session's id."""

    @property
    def context(self) -> Context:
        """Return the messages for the model; every emitted event updates them."""

    @property
    def loop_detector(self) -> LoopDetector:
        """Return the detector of repeated calls; every emitted event updates it."""

    @property
    def secrets(self) -> Sequence[str]:
        """Return values that must never reach a model, a client or a journal."""

    async def history(self) -> Sequence[AnyEvent]:
        """Return every event of the session so far."""

    async def emit(self, *events: AnyEvent) -> None:
        """Write events to the journal, apply them to the context, and show them.

        The events are written and shown in order, even if the caller is cancelled.

        Raises:
            StoreError: the events could not be written; they were neither applied nor shown.
        """

    def write(self, *events: AnyEvent) -> Awaitable[None]:
        """Queue events as `emit` does, without waiting; the result waits, and raises its errors."""

    async def flush(self) -> None:
        """Wait until all emitted events are in the context.

        The context contains every message of the user until the caller awaits something else.
        """


class Models(Protocol):
    """The models that a turn can use, and the drivers of their providers."""

    @property
    def current(self) -> ModelInfo:
        """Return the model that is selected now."""

    @property
    def thought_level(self) -> ThoughtLevel | None:
        """Return how much the model should reason."""

    @property
    def small(self) -> ModelInfo:
        """Return the model for side requests; the session's model if no other is configured."""

    @property
    def vision(self) -> ModelInfo | None:
        """Return the model that describes pictures for models without vision, if there is one.

        Raises:
            InvalidInputError, AuthRequiredError, ConfigError: the model cannot be used.
        """

    def web_search(self, model: ModelInfo) -> ProviderSearch | None:
        """Return the web search of a model's provider, or None if it cannot be used."""

    def fallbacks(self, model: ModelInfo) -> Sequence[ModelInfo]:
        """Return the models to ask when `model` is not available, in this order."""

    async def driver(self, model: ModelInfo) -> Driver:
        """Return the driver of a model. The first call loads the provider's SDK in a thread."""


class User(Protocol):
    """The user of the session."""

    @property
    def translate(self) -> Translator:
        """Return the translator to the user's language."""

    @property
    def mode(self) -> Mode:
        """Return the current permission mode; the user may change it at any time."""

    @property
    def can_reply(self) -> bool:
        """Return whether the user can answer the agent's text with another prompt."""

    def take_compaction_request(self) -> str | None:
        """Return and clear the user's request for a compaction: its focus, "" or None."""

    async def ask_permission(self, request: PermissionRequest, ask: Ask) -> Decision:
        """Ask the user for permission and return the decision."""

    async def ask_question(self, call: CallId, question: Question) -> Answer | None:
        """Ask the user a question. Return None if the client cannot show it."""


class Budget(Protocol):
    """The budgets and the cost of a turn.

    Attributes:
        exhausted: true if a budget did not allow a request, which ends the turn.
    """

    exhausted: bool

    @property
    def cost(self) -> float | None:
        """Return the session's cost so far in US dollars, or None if no price is known."""

    def charge(self, model: ModelInfo, usage: Usage) -> float | None:
        """Add a request's cost; return the session's total in US dollars, or None if unknown."""

    async def refusal(self, side_request: ModelRequest | None = None) -> str | None:
        """Return None if a further request is within the budgets, else the reason for the user.

        Args:
            side_request: a request outside the conversation; None: the conversation's next one.

        Raises:
            StoreError: the amounts spent could not be read.
        """

    def reserve(
        self, side_request: ModelRequest | None = None
    ) -> AbstractAsyncContextManager[str | None]:
        """Reserve a request's cost in the budgets until its usage is counted.

        Yields None, or the reason why the budgets do not allow the request, for the user. Requests
        that together may exceed a budget wait for each other.

        Args:
            side_request: a request outside the conversation; None: the conversation's next one.

        Raises:
            StoreError: the amounts spent could not be read.
        """

    def streamed(self, batch: Sequence[StreamEvent]) -> None:
        """Count a streamed part of an answer whose cost is reserved."""

    async def warn(self) -> None:
        """Warn the user of budgets that are nearly used up, once for each budget.

        Raises:
            StoreError: the amounts spent could not be read, or the warning could not be written.
        """


class EditChecks(Protocol):
    """Finds problems that edits cause, with language servers and syntax checks."""

    @property
    def has_changes(self) -> bool:
        """Return whether changed files have not been checked yet."""

    def record_read(self, path: Path) -> None:
        """Note that a file was read. Never waits."""

    def record_change(self, path: Path, old: str | None) -> None:
        """Note that a file was changed; `old` is the text before, or None for a new file."""

    def record_command(self) -> None:
        """Note that a command may have changed files. Never waits."""

    async def problems(self) -> str:
        """Check the changed files; return the new problems, one per line. Waits a limited time."""

    def late_problems(self) -> str:
        """Return the new problems that were found after a report. Never waits."""


class Tools(Protocol):
    """The tools that the model can call, and the objects that check and run the calls."""

    @property
    def workspace(self) -> Workspace:
        """Return the workspace that the tools use."""

    @property
    def toolset(self) -> Toolset:
        """Return the tools that are available now."""

    @property
    def gate(self) -> Gate:
        """Return the gate that decides about side effects."""

    @property
    def edit_checks(self) -> EditChecks:
        """Return the checks that find problems caused by edits."""

    @property
    def open_calls(self) -> OpenCalls:
        """Return the turn's calls that have not ended."""

    def slot(self) -> AbstractAsyncContextManager[None]:
        """Wait for one of the process's slots for calls, and hold it."""

    async def save_files(self, access: Access) -> None:
        """Save the files once per turn, before the first call that may change files.

        Raises:
            StoreError: the journal could not be written.
        """

    async def command_diffs(self, access: Access) -> tuple[CallContent, ...]:
        """Return content that shows the files a command changed since they were saved."""


class TurnResources(Struct, frozen=True, kw_only=True):
    """The resources of a turn. Functions that need one of them take only that one.

    `agent` is the name of the agent that runs the turn, or empty for the session's main agent.
    `hooks` is None if no hooks are configured. `take_changed_resources` returns mentions of the
    attached MCP resources that changed since its last call. `skills_for` returns a file's path and
    a text for each skill that belongs to a file, given relative to its folder of the session.
    """

    journal: Journal
    models: Models
    user: User
    budget: Budget
    tools: Tools
    limits: Limits
    agent: str = ""
    hooks: SessionHooks | None = None
    take_changed_resources: Callable[[], Sequence[str]] = tuple
    skills_for: Callable[[str], Sequence[tuple[Path, str]]] = lambda _: ()
