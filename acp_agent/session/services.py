"""What all sessions of a process share: services, concurrency limits, pending requests."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from acp_agent.config.localization import Translator, choose_language, translator_for
from acp_agent.config.types import Config
from acp_agent.events import Usage
from acp_agent.extensions.definitions.locations import (
    PACKAGES,
    DefinitionFolders,
    any_hook_file,
    any_plugin_folder,
    find_folders,
)
from acp_agent.extensions.mcp.config import MARK
from acp_agent.ids import SessionId
from acp_agent.models.registry import Models
from acp_agent.permissions.access import Gate
from acp_agent.platform.programs import outside_folders
from acp_agent.platform.watchdog import Watchdog
from acp_agent.session.account import Account
from acp_agent.session.store.store import Store

if TYPE_CHECKING:  # not before a file is read or changed
    from acp_agent.config.sandbox_types import SandboxConfig
    from acp_agent.language_servers.pool import ServerPool
    from acp_agent.sandbox.launch import Confine, Launch
    from acp_agent.sandbox.policy import SandboxPolicy
    from acp_agent.sandbox.sandbox import Backend, Sandbox, Unavailable
    from acp_agent.session.plugins import LoadedPlugins, PythonPlugins
    from acp_agent.tools.toolset import Toolset
    from acp_agent.trust.store import TrustStore


class ConcurrencyLimit:
    """How many turns, or calls, may run at once in all sessions of a process.

    Within a session waiters are served in order, and the sessions take turns: one that starts many
    calls does not keep the others waiting for all of them.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # the session that is next first

    @property
    def full(self) -> bool:
        """Whether `acquire` has to wait."""
        return self._free == 0

    async def acquire(self, session: str) -> None:
        """Take a slot for a session; waits until it is its turn."""
        if self._free:  # nobody waits then: a released slot goes to a waiter
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(session, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was given to us in the same moment
                self.release()
            else:
                self._forget(session, turn)
            raise

    def release(self) -> None:
        """Give the slot to the next waiter."""
        while self._waiting:
            session = next(iter(self._waiting))
            queue = self._waiting.pop(session)
            turn = queue.popleft()
            if queue:
                self._waiting[session] = queue  # behind the others
            if not turn.done():  # else it was cancelled in this moment
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
    """Tokens sent and received, US dollars, and how many requests have no known price."""

    __slots__ = ("cost", "tokens", "unpriced")

    def __init__(self, tokens: int = 0, cost: float = 0.0, unpriced: int = 0) -> None:
        self.tokens = tokens
        self.cost = cost
        self.unpriced = unpriced

    def __bool__(self) -> bool:
        """Whether anything was sent or answered."""
        return self.tokens > 0

    def add(self, usage: Usage, price: float | None) -> None:
        """Count a request; `price` is in US dollars, None where it is not known."""
        self.tokens += usage.input + usage.output
        self.add_price(price)

    def add_price(self, price: float | None) -> None:
        """Count the price alone of a request whose tokens are counted."""
        if price is None:
            self.unpriced += 1
        else:
            self.cost += price


class PendingAnswer:
    """An answer that is being streamed, so that its length is not known yet.

    It counts as `most` tokens, each of which costs `price`, and as more once more were received.
    """

    def __init__(self, asked: Spending, most: int, price: float) -> None:
        self.takes = Spending(asked.tokens + most, asked.cost + most * price)
        self._most = most
        self._price = price
        self._received = 0

    def receive(self, tokens: int) -> None:
        """Count tokens of it that were received."""
        self._received += tokens
        more = self._received - self._most
        if more > 0:
            self._most = self._received
            self.takes.tokens += more
            self.takes.cost += more * self._price


class PendingRequests:
    """The requests to models that all sessions of a process are making, with what they may take.

    Attributes:
        ended: how many have ended so far.
    """

    def __init__(self) -> None:
        self.ended = 0
        self._requests: dict[PendingAnswer, SessionId] = {}
        self._change = asyncio.Event()  # set, and another put in its place, when a request ends

    @contextmanager
    def track(self, session: SessionId, answer: PendingAnswer) -> Iterator[None]:
        """Count a request of a session inside the `with` block."""
        self._requests[answer] = session
        try:
            yield
        finally:
            del self._requests[answer]
            self.ended += 1
            self._change.set()
            self._change = asyncio.Event()

    def total(self, session: SessionId | None = None) -> Spending:
        """Return what all of them may take together, or those of one session."""
        total = Spending()
        for answer, whose in self._requests.items():
            if session in {None, whose}:
                total.tokens += answer.takes.tokens
                total.cost += answer.takes.cost
        return total

    async def wait_for_end(self) -> None:
        """Wait until one has ended."""
        await self._change.wait()


class KnowsSecrets(Protocol):
    """Where the secrets are stored."""

    def values(self) -> Sequence[str]:
        """Every secret value that is known."""
        ...


class SharedPlugins:
    """The plugins of a process that are Python packages; nothing is imported where there are none.

    Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._plugins: PythonPlugins | None = None

    def load(self, places: DefinitionFolders) -> LoadedPlugins | None:
        """Return those that are enabled; None where there are none. Runs their code.

        Call it in a thread.

        Args:
            places: where plugins are.
        """
        own = places.plugins[0][0]
        return self.of(own).load() if os.path.exists(own / PACKAGES) else None  # noqa: PTH110 - as fast as can be

    def of(self, own: Path) -> PythonPlugins:
        """Return the packages in the folder of the user's plugins."""
        from acp_agent.session.plugins import PythonPlugins  # noqa: PLC0415 - where there are any

        with self._lock:
            if self._plugins is None:
                self._plugins = PythonPlugins(own)
            return self._plugins


class SharedLanguageServers:
    """The language servers of a process; nothing of them is loaded before one is needed."""

    def __init__(self) -> None:
        self._pool: ServerPool | None = None

    def pool(self, environ: Mapping[str, str], confine: Confine) -> ServerPool:
        """Return the servers; the first time this imports what runs them."""
        from acp_agent.language_servers.pool import ServerPool  # noqa: PLC0415 - when first needed

        if self._pool is None:
            self._pool = ServerPool(environ, confine)
        return self._pool

    async def aclose(self) -> None:
        """End all servers."""
        if self._pool is not None:
            await self._pool.aclose()


class SharedSandboxes:
    """The sandboxes of a process; what this machine has for them is found out once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._backend: Backend | Unavailable | None = None
        self._said = False
        # Nobody else can guess it.
        base = os.environ.get("TMPDIR", "/tmp")  # noqa: S108 - it is made with a mode of its own
        self._folder = f"{base}/acp-agent-{os.urandom(8).hex()}"

    def temporary(self, user: SessionId | str) -> str:
        """Return the folder that the programs of a session have as /tmp; not made yet."""
        return f"{self._folder}-{user}"

    def notice(self) -> str:
        """Return, once, that commands are not confined and why, or what does not hold; else ""."""
        if self._said or self._backend is None:
            return ""
        from acp_agent.sandbox.sandbox import Unavailable  # noqa: PLC0415 - when first needed

        self._said = True
        if isinstance(self._backend, Unavailable):
            return str(self._backend)
        return self._backend.notice

    def confine(self, config: SandboxConfig, search_path: str | None) -> Confine:
        """Return what starts this program's own helpers, confined where that is possible.

        Args:
            config: what the user configured.
            search_path: the PATH variable to look for programs in.
        """

        def reader(argv: Sequence[str], environ: Mapping[str, str], cwd: str) -> Launch:
            from acp_agent.sandbox.launch import unconfined  # noqa: PLC0415 - when first needed
            from acp_agent.sandbox.programs import launch_reader  # noqa: PLC0415 - so

            backend = self.find(config, search_path, cwd)
            if backend is None:
                return unconfined(argv, environ, cwd)
            return launch_reader(backend, argv, environ, cwd)

        return reader

    def find(self, config: SandboxConfig, search_path: str | None, cwd: str) -> Backend | None:
        """Return what confines programs; None where nothing can or the user wants nothing to."""
        from acp_agent.sandbox.sandbox import Unavailable  # noqa: PLC0415 - when first needed

        backend = self._find(search_path, (cwd,), config) if config.enabled else None
        return None if isinstance(backend, Unavailable) else backend

    async def aclose(self) -> None:
        """Remove the temporary files of what ran for long."""
        if self._backend is not None:
            import shutil  # noqa: PLC0415 - heavy

            folder = self.temporary("services")
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    def make(self, policy: SandboxPolicy, search_path: str | None) -> Sandbox | Unavailable:
        """Return a session's sandbox, or why there is none. Blocks: call it in a thread.

        Args:
            policy: what the session's programs may do.
            search_path: the PATH variable to look for programs in.
        """
        from acp_agent.sandbox.sandbox import Sandbox, Unavailable  # noqa: PLC0415 - when first needed

        backend = self._find(search_path, policy.roots, policy.config)
        return backend if isinstance(backend, Unavailable) else Sandbox(backend, policy)

    def _find(
        self, search_path: str | None, roots: Sequence[str], config: SandboxConfig
    ) -> Backend | Unavailable:
        from acp_agent.sandbox.sandbox import find_backend  # noqa: PLC0415 - when first needed

        with self._lock:
            if self._backend is None:
                folders = search_path if search_path is not None else os.defpath
                self._backend = find_backend(
                    outside_folders(folders, roots), config.backend, config.image
                )
            return self._backend


def _server_watch() -> Watchdog:
    return Watchdog(f"{MARK}={os.urandom(16).hex()}.")


class Services(Struct, frozen=True, kw_only=True):
    """The parts that sessions are built on, made once and passed in.

    `gate` makes the gate when the first prompt needs it, `trust` the store of what the user trusts
    when a project brings anything along; `outputs` is the folder below which each
    session keeps outputs too long for the model, `checkpoints` the one of saved files,
    `memory` the one of notes;
    `user_folder` is where the user's own AGENTS.md, skills and agents are. `turn_limit` and
    `call_limit` hold for the turns and calls of all sessions together. `own_files` are the
    program's own files and folders, which nothing that is confined sees. `watch` ends the programs
    of MCP servers where this process is killed. `adapt_tools` changes the own tools of each
    session.
    """

    store: Store
    models: Models
    account: Account
    config: Config
    secrets: KnowsSecrets
    environ: Mapping[str, str]
    gate: Callable[[], Gate]
    trust: Callable[[], TrustStore]
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
    sandboxes: SharedSandboxes = field(default_factory=SharedSandboxes)
    own_files: tuple[Path, ...] = ()
    mcp_logins: Path

    @property
    def confine(self) -> Confine:
        """What starts this program's own helpers, confined where that is possible."""
        return self.sandboxes.confine(self.config.sandbox, self.environ.get("PATH"))

    @property
    def home(self) -> Path:
        """The user's home folder, which other programs share."""
        named = self.environ.get("HOME")
        return Path(named) if named else Path.home()

    def may_have_hooks(self, cwd: Path) -> bool:
        """Whether a session in `cwd` may have hooks; looks at the disk."""
        return (
            bool(self.config.hooks)
            or any_hook_file(self.home, cwd)
            or any_plugin_folder(self.places(cwd))
        )

    def places(self, cwd: Path) -> DefinitionFolders:
        """Where the skills and agents of a session in `cwd` are looked for."""
        return find_folders(cwd, user=self.user_folder, home=self.home)

    @property
    def translate(self) -> Translator:
        """Our texts in the user's language."""
        return translator_for(choose_language(self.config.language, self.environ))
