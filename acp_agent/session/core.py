"""The core of a session that its parts share: journal, state and attached client."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acp_agent.agent.context import Context
from acp_agent.config.localization import Translator
from acp_agent.errors import AcpAgentError
from acp_agent.events import EXTERNAL_TEXT_EVENTS, AnyEvent, DirectoriesChanged, unwrap_child_event
from acp_agent.ids import SessionId
from acp_agent.models.base import ModelInfo
from acp_agent.session.client import AttachedClient
from acp_agent.session.journal import JournalWriter
from acp_agent.session.services import Services
from acp_agent.session.settings import Settings
from acp_agent.session.state import SessionState

if TYPE_CHECKING:  # first needed when a prompt runs
    from acp_agent.agent.loop_detection import LoopDetector

_log = logging.getLogger(__name__)


class BackgroundTasks:
    """Tasks that nobody awaits. Their errors are logged, and they end with their owner.

    Args:
        owner: the name of their owner, for the log.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._tasks: set[asyncio.Task[None]] = set()
        self._cancelled = False

    def __len__(self) -> int:
        """Return the number of running tasks."""
        return len(self._tasks)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` in a task; drop it if the owner has ended."""
        if self._cancelled:
            work.close()
            return
        task = asyncio.create_task(self._run(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # no warning if it never started

    async def _run(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except AcpAgentError as error:
            _log.info("background task of %s failed: %s", self._owner, error)
        except Exception:  # noqa: BLE001 - nobody awaits the task
            _log.exception("background task of %s broke", self._owner)

    def cancel(self) -> None:
        """Cancel all tasks, and refuse further ones."""
        self._cancelled = True
        for task in self._tasks:
            task.cancel()

    async def wait(self) -> None:
        """Wait until no task runs."""
        await asyncio.gather(*self._tasks, return_exceptions=True)


class SessionCore:
    """The journal, state and client of a session (`acp_agent.agent.resources.Journal`).

    Events are written to the journal first, then applied to the state, then shown to the client.

    Args:
        model: the model, if one is already chosen.

    Attributes:
        background: tasks that nobody awaits.
        journal: writes the events.
        server_secrets: secret values that MCP servers were given.
        closing: whether the session is being closed, or is closed.
    """

    def __init__(
        self,
        session: SessionId,
        *,
        cwd: Path,
        directories: Sequence[Path],
        model: ModelInfo | None,
        services: Services,
        client: AttachedClient,
    ) -> None:
        self.id = session
        self.cwd = cwd
        self.directories = tuple(directories)
        self.services = services
        self.client = client
        self.state = SessionState(services, model)
        self.background = BackgroundTasks(f"session {session}")
        self.server_secrets: Sequence[str] = ()
        self.closing = False
        self.journal = JournalWriter(session, services.store, apply=self.apply, show=self._show)
        self._subscribers: list[tuple[Callable[[Sequence[AnyEvent]], None], frozenset[type]]] = []

    # -- journal -------------------------------------------------------------------------------

    def apply(self, events: Sequence[AnyEvent]) -> None:
        """Apply events that are in the journal to the state."""
        self.state.apply(events)
        for subscriber, kinds in self._subscribers:
            if any(type(event) in kinds for event in events):
                subscriber(events)

    def subscribe(
        self, subscriber: Callable[[Sequence[AnyEvent]], None], *kinds: type[AnyEvent]
    ) -> None:
        """Call `subscriber` with each further batch of events that has one of these kinds."""
        self._subscribers.append((subscriber, frozenset(kinds)))

    def restore(self, events: Sequence[AnyEvent]) -> None:
        """Apply the whole journal of a session that is being opened."""
        self.state.restore(events)
        self.journal.cache_history(events)

    @property
    def settings(self) -> Settings:
        """The session's settings."""
        return self.state.settings

    @property
    def context(self) -> Context:
        """The conversation that the model is sent."""
        return self.state.context

    @property
    def loop_detector(self) -> LoopDetector:
        """The detector of repeated calls of the model."""
        return self.state.loop_detector

    async def history(self) -> Sequence[AnyEvent]:
        """Return every event so far."""
        return await self.journal.history()

    async def emit(self, *events: AnyEvent) -> None:
        """Write events to the journal, apply and show them; see `agent.resources.Journal`."""
        if events:
            await self.write(*events)

    def write(self, *events: AnyEvent) -> asyncio.Future[None]:
        """Queue events to be written, applied and shown, without waiting for it.

        Raises:
            SessionNotFoundError: the session is closed; another process may have opened it.
        """
        return self.journal.write(self._without_secrets(events))

    async def flush(self) -> None:
        """Wait until all queued events are applied and shown."""
        await self.journal.flush()

    async def notify(self, *events: AnyEvent) -> None:
        """Show events without writing them to the journal."""
        clean_events = self._without_secrets(events)
        await self.journal.run_exclusively(lambda: self._show(clean_events))

    async def _show(self, events: Sequence[AnyEvent]) -> None:
        await self.client.show(self.id, events)

    async def move(self, cwd: Path, directories: Sequence[Path]) -> bool:
        """Change the session's folders; return whether they differ from the previous ones."""
        if (cwd, tuple(directories)) == (self.cwd, self.directories):
            return False
        await self.emit(
            DirectoriesChanged(cwd=str(cwd), directories=tuple(str(path) for path in directories))
        )
        self.cwd, self.directories = cwd, tuple(directories)
        return True

    # -- texts ---------------------------------------------------------------------------------

    @property
    def translate(self) -> Translator:
        """The translator of this program's texts into the user's language."""
        return self.services.translate

    @property
    def secrets(self) -> Sequence[str]:
        """Values that must not be shown, sent or stored."""
        secrets = self.services.secrets.values()
        return (*secrets, *self.server_secrets) if self.server_secrets else secrets

    def clean(self, text: str) -> str:
        """Return `text` without secrets."""
        from acp_agent.workspace.scrub import scrub  # noqa: PLC0415 - compiling its patterns takes time

        return scrub(text, self.secrets)

    def _without_secrets(self, events: tuple[AnyEvent, ...]) -> tuple[AnyEvent, ...]:
        """Return events without secrets in texts from the user, models and tools."""
        if not any(isinstance(unwrap_child_event(event), EXTERNAL_TEXT_EVENTS) for event in events):
            return events
        from acp_agent.agent.scrub_events import scrub_event  # noqa: PLC0415 - as with `clean`

        secrets = self.secrets
        return tuple(scrub_event(event, secrets) for event in events)
