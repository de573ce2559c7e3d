"""Services, concurrency limits and pending requests that the sessions of a process share."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from acp_agent.config.localization import Translator, choose_language, translator_for
from acp_agent.config.types import Config
from acp_agent.events import Usage
from acp_agent.extensions.definitions.locations import PACKAGES, DefinitionFolders, find_folders
from acp_agent.extensions.mcp.config import MARK
from acp_agent.ids import SessionId
from acp_agent.models.registry import Models
from acp_agent.permissions.access import Gate
from acp_agent.platform.watchdog import Watchdog
from acp_agent.session.account import Account
from acp_agent.session.sandboxes import SharedSandboxes
from acp_agent.session.store.store import Store

if TYPE_CHECKING:  # not at start-up
    from acp_agent.hooks.running import HookRunner
    from acp_agent.hooks.types import Hook
    from acp_agent.language_servers.pool import ServerPool
    from acp_agent.sandbox.launch import Confine
    from acp_agent.session.plugins import LoadedPlugins, PythonPlugins
    from acp_agent.tools.toolset import Toolset
    from acp_agent.trust.store import TrustStore
    from acp_agent.workspace.git_repositories import GitRepositories

_to_path = lru_cache(maxsize=1)(Path)  # the home folder is needed several times in each turn


class ConcurrencyLimit:
    """A limit of concurrent turns, or calls, in all sessions of a process.

    Within a session waiters are served in order, and sessions are served round-robin: a session
    that starts many calls does not block the others.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # the next session first

    @property
    def full(self) -> bool:
        """Return whether `acquire` would wait."""
        return self._free == 0

    async def acquire(self, session: str) -> None:
        """Acquire a slot for a session; waits until one is free."""
        if self._free:  # then nobody waits: a released slot goes to a waiter
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(session, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the slot was assigned at the same moment
                self.release()
            else:
                self._forget(session, turn)
            raise

    def release(self) -> None:
        """Release a slot: pass it to the next waiter, if there is one."""
        while self._waiting:
            session = next(iter(self._waiting))
            queue = self._waiting.pop(session)
            turn = queue.popleft()
            if queue:
                self._waiting[session] = queue  # moves the session to the end
            if not turn.done():  # otherwise it was just cancelled
                turn.set_result(None)
                return
        self._free += 1

    def _forget(self, session: str, turn: asyncio.Future[None]) -> None:
        queue = self._waiting.get(session)
        if queue is not None and turn in queue:
            queue.remove(turn)
            if not queue:
                del self._waiting[session]


class Spending:
    """Tokens sent and received, cost in US dollars, and number of requests without known price."""

    __slots__ = ("cost", "tokens", "unpriced")

    def __init__(self, tokens: int = 0, cost: float = 0.0, unpriced: int = 0) -> None:
        self.tokens = tokens
        self.cost = cost
        self.unpriced = unpriced

    def __bool__(self) -> bool:
        """Return whether any tokens were counted."""
        return self.tokens > 0

    def add(self, usage: Usage, price: float | None) -> None:
        """Count a request; `price` is in US dollars, None if it is not known."""
        self.tokens += usage.input + usage.output
        self.add_price(price)

    def add_price(self, price: float | None) -> None:
        """Count only the price of a request."""
        if price is None:
            self.unpriced += 1
        else:
            self.cost += price


class PendingAnswer:
    """The spending of an answer that is being streamed.

    Its length is not known yet. It counts as `max_tokens` tokens at `price` each, and as more once
    more tokens are received.
    """

    def __init__(self, request_spending: Spending, max_tokens: int, price: float) -> None:
        self.expected = Spending(
            request_spending.tokens + max_tokens, request_spending.cost + max_tokens * price
        )
        self._expected_tokens = max_tokens
        self._price = price
        self._received = 0

    def receive(self, tokens: int) -> None:
        """Count received tokens."""
        self._received += tokens
        excess = self._received - self._expected_tokens
        if excess > 0:
            self._expected_tokens = self._received
            self.expected.tokens += excess
            self.expected.cost += excess * self._price


class PendingRequests:
    """The pending model requests of all sessions of a process, with their expected spending."""

    def __init__(self) -> None:
        self.ended = 0
        self._requests: dict[PendingAnswer, SessionId] = {}
        self._change = asyncio.Event()  # set and replaced when a request ends

    @contextmanager
    def track(self, session: SessionId, answer: PendingAnswer) -> Iterator[None]:
        """Count a request of a session as pending inside the `with` block."""
        self._requests[answer] = session
        try:
            yield
        finally:
            del self._requests[answer]
            self.ended += 1
            self._change.set()
            self._change = asyncio.Event()

    def total(self, session: SessionId | None = None) -> Spending:
        """Return the expected spending of all pending requests, or of one session's."""
        total = Spending()
        for answer, owner in self._requests.items():
            if session in {None, owner}:
                total.tokens += answer.expected.tokens
                total.cost += answer.expected.cost
        return total

    async def wait_for_end(self) -> None:
        """Wait until a request ends."""
        await self._change.wait()


class SecretSource(Protocol):
    """A source of secret values."""

    def values(self) -> Sequence[str]:
        """Return every known secret value."""


class RecordedHooks(Protocol):
    """The hooks of a replay, which answer as recorded."""

    hooks: Sequence[Hook]
    runner: HookRunner


class SharedPlugins:
    """The plugins of a process that are Python packages, loaded when first needed. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._plugins: PythonPlugins | None = None

    def load(self, folders: DefinitionFolders) -> LoadedPlugins | None:
        """Return the enabled plugins; None if there are none. Runs their code: call in a thread."""
        user_folder = folders.plugins[0][0]
        return self.importer(user_folder).load() if os.path.exists(user_folder / PACKAGES) else None

    def importer(self, user_folder: Path) -> PythonPlugins:
        """Return the importer of the packages in the user's plugin folder."""
        from acp_agent.session.plugins import PythonPlugins  # noqa: PLC0415 - if there are any

        with self._lock:
            if self._plugins is None:
                self._plugins = PythonPlugins(user_folder)
            return self._plugins


class SharedLanguageServers:
    """The language servers of a process, loaded when first needed."""

    def __init__(self) -> None:
        self._pool: ServerPool | None = None

    def pool(self, environ: Mapping[str, str], confine: Confine) -> ServerPool:
        """Return the pool of servers; the first call imports its modules."""
        from acp_agent.language_servers.pool import ServerPool  # noqa: PLC0415 - when first needed

        if self._pool is None:
            self._pool = ServerPool(environ, confine)
        return self._pool

    async def aclose(self) -> None:
        """End all servers."""
        if self._pool is not None:
            await self._pool.aclose()


def _server_watch() -> Watchdog:
    return Watchdog(f"{MARK}={os.urandom(16).hex()}.")


class Services(Struct, frozen=True, kw_only=True):
    """The services of a process, made once and passed to its sessions.

    `gate` returns the permission gate and `trust` the store of trusted items; both are made when
    first needed. `repositories` returns what finds the repositories of folders for one decision,
    until its argument returns true. `outputs` is the folder for outputs that are too long for the
    model, `checkpoints` the one for saved files and `memory` the one for notes. `user_folder` has
    the user's own AGENTS.md, skills and agents. `turn_limit` and `call_limit` apply to the turns
    and calls of all sessions together. `program_files` are the program's own files and folders,
    which are hidden from confined programs. `watch` stops the programs of MCP servers if this
    process is killed. `adapt_tools` changes the built-in tools of each session. `recorded_hooks`
    runs the hooks of a replay; None: hooks are read from files.
    """

    store: Store
    models: Models
    account: Account
    config: Config
    secrets: SecretSource
    environ: Mapping[str, str]
    gate: Callable[[], Gate]
    trust: Callable[[], TrustStore]
    repositories: Callable[[Callable[[], bool]], GitRepositories]
    outputs: Path
    checkpoints: Path
    memory: Path
    user_folder: Path
    turn_limit: ConcurrencyLimit
    call_limit: ConcurrencyLimit
    pending_requests: PendingRequests = field(default_factory=PendingRequests)
    watch: Watchdog = field(default_factory=_server_watch)
    language_servers: SharedLanguageServers = field(default_factory=SharedLanguageServers)
    plugins: SharedPlugins = field(default_factory=SharedPlugins)
    adapt_tools: Callable[[Toolset], Toolset] = lambda tools: tools
    recorded_hooks: RecordedHooks | None = None
    sandboxes: SharedSandboxes = field(default_factory=SharedSandboxes)
    program_files: tuple[Path, ...] = ()
    mcp_logins: Path

    @property
    def confine(self) -> Confine:
        """The launcher of this program's own helpers, confined if possible."""
        return self.sandboxes.confine(self.config.sandbox, self.environ.get("PATH"))

    @property
    def home(self) -> Path:
        """The user's home folder."""
        home = self.environ.get("HOME")
        return _to_path(home) if home else Path.home()

    def definition_folders(self, cwd: Path) -> DefinitionFolders:
        """Return the folders with definitions for a session in `cwd`."""
        return find_folders(cwd, user=self.user_folder, home=self.home)

    @property
    def translate(self) -> Translator:
        """The translator of this program's texts into the user's language."""
        return translator_for(choose_language(self.config.language, self.environ))
