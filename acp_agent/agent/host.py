"""What a turn needs from the session that it runs in, and from the editor behind that."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from acp_agent.agent.context import Context
from acp_agent.config.localization import Translator
from acp_agent.config.types import ContextConfig
from acp_agent.content import CallContent, Location
from acp_agent.events import AnyEvent, ToolKind, Usage
from acp_agent.ids import CallId, SessionId
from acp_agent.models.base import Driver, ModelInfo, ModelRequest, StreamEvent, ThoughtLevel
from acp_agent.permissions.access import Access, Ask, Decision, Gate, Mode

if TYPE_CHECKING:  # the tools bring pydantic, which is not needed before a prompt runs
    from acp_agent.agent.loop_guard import LoopGuard
    from acp_agent.agent.open_calls import OpenCalls
    from acp_agent.tools.base import Answer, Question
    from acp_agent.tools.toolset import Toolset
    from acp_agent.workspace.workspace import Workspace


class Asking(Struct, frozen=True, kw_only=True):
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
    `loop_rounds` after how many rounds of a loop the model is told, the user asked, the turn ended
    (0: never).
    """

    model_requests: int = 100
    retries: int = 4
    first_byte: float = 120.0
    stall: float = 60.0
    max_concurrent_calls: int = 8
    refusal_ends_turn: bool = False
    loop_rounds: tuple[int, int, int] = (3, 5, 8)


class TurnHost(Protocol):
    """The session as the turn sees it.

    Attributes:
        over_budget: whether a request was not made for lack of a budget, which ends the turn.
    """

    over_budget: bool

    @property
    def session(self) -> SessionId:
        """The session's id."""
        ...

    @property
    def translate(self) -> Translator:
        """What is said to the user, in the user's language."""
        ...

    @property
    def context(self) -> Context:
        """What the model is sent, kept up with every event that was emitted."""
        ...

    @property
    def is_prompted(self) -> bool:
        """Whether the user answers with the next prompt what they are asked in words."""
        ...

    @property
    def mode(self) -> Mode:
        """The permission mode as it is now; the user may switch it at any moment."""
        ...

    @property
    def model(self) -> ModelInfo:
        """The chosen model as it is now."""
        ...

    @property
    def thought_level(self) -> ThoughtLevel | None:
        """How much the model is to reason."""
        ...

    @property
    def workspace(self) -> Workspace:
        """What the tools may touch."""
        ...

    @property
    def toolset(self) -> Toolset:
        """The tools of the session."""
        ...

    @property
    def gate(self) -> Gate:
        """What decides about side effects."""
        ...

    @property
    def open_calls(self) -> OpenCalls:
        """The turn's calls that have not ended."""
        ...

    @property
    def loop_guard(self) -> LoopGuard:
        """Whether the model goes round in circles, kept up with every event."""
        ...

    @property
    def limits(self) -> Limits:
        """How far a turn may go."""
        ...

    @property
    def context_settings(self) -> ContextConfig:
        """How full the context may get, and what happens then."""
        ...

    @property
    def small_model(self) -> ModelInfo:
        """The model for side work; the session's own where there is no other."""
        ...

    @property
    def vision_model(self) -> ModelInfo | None:
        """The model that looks at pictures for one that cannot; None where there is none.

        Raises:
            InvalidInputError, AuthRequiredError, ConfigError: it cannot be used.
        """
        ...

    @property
    def cost(self) -> float | None:
        """What the session cost so far, in US dollars; None where no price is known."""
        ...

    @property
    def secrets(self) -> Sequence[str]:
        """Values that must never reach a model, an editor or a journal."""
        ...

    def fallbacks(self, model: ModelInfo) -> Sequence[ModelInfo]:
        """The models to ask, in this order, when `model` cannot be had."""
        ...

    async def driver(self, model: ModelInfo) -> Driver:
        """The way to a model's provider; the first time this loads its SDK, in a thread."""
        ...

    async def history(self) -> Sequence[AnyEvent]:
        """Every event of the session so far."""
        ...

    def take_compaction_wish(self) -> str | None:
        """What the user asked to be compacted in the turn, once: what matters to them, or ""."""
        ...

    async def emit(self, *events: AnyEvent) -> None:
        """Write events to the journal, take them into the context, and show them.

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

    def charge(self, model: ModelInfo, usage: Usage) -> float | None:
        """Add a request's cost; gives the session's total in US dollars, None where unknown."""
        ...

    async def out_of_budget(self, aside: ModelRequest | None = None) -> str | None:
        """Why no further request may be made to the model, in words for the user; None: it may.

        Args:
            aside: a request beside the conversation; None: the next one of the conversation.

        Raises:
            StoreError: what was spent could not be read.
        """
        ...

    def within_budget(
        self, aside: ModelRequest | None = None
    ) -> AbstractAsyncContextManager[str | None]:
        """A place for a request within the budgets, to be kept until what it took is counted.

        It gives why there is none, in words for the user, and None where there is. Requests that
        may exceed a budget together are made one after the other.

        Args:
            aside: a request beside the conversation; None: the next one of the conversation.

        Raises:
            StoreError: what was spent could not be read.
        """
        ...

    def streamed(self, batch: Sequence[StreamEvent]) -> None:
        """Part of the answer for which there is a place has come."""
        ...

    async def warn_of_budget(self) -> None:
        """Let the user know of budgets that are nearly used up, each once.

        Raises:
            StoreError: what was spent could not be read, or the warning not be written.
        """
        ...

    def call_slot(self) -> AbstractAsyncContextManager[None]:
        """A place among the calls that run in the process, as soon as there is one."""
        ...

    async def keep_files(self, access: Access) -> None:
        """Keep the files as they are, once a turn, before the first call that may change any runs.

        Raises:
            StoreError: the journal could not be written.
        """
        ...

    async def ask_permission(self, asking: Asking, ask: Ask) -> Decision:
        """Let the user decide."""
        ...

    async def ask_question(self, call: CallId, question: Question) -> Answer | None:
        """Ask the user something. None: the editor cannot show it."""
        ...
