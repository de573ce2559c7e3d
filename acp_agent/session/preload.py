"""Import the modules for the first prompt in a thread while the process answers requests."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

from acp_agent.workspace.threads import in_daemon_thread

# The modules that the first prompt of a process imports; a test checks this list. Small modules
# come first, the slowest ones last.
PROMPT_MODULES = (
    "acp_agent.session.folder_trust",
    "acp_agent.session.turns.plan",
    "acp_agent.session.turns.environment",
    "acp_agent.session.turns.system_prompt",
    "acp_agent.session.memory",
    "acp_agent.session.hooks",
    "acp_agent.tools.task",
    "acp_agent.agent.system_prompt",
    "acp_agent.workspace.instructions.files",
    "acp_agent.agent.loop_detection",
    "acp_agent.session.turns.budget",
    "acp_agent.session.turns.added_tools",
    "acp_agent.agent.turn",
    "acp_agent.session.turns.parts",
)

_PAUSE = 0.005  # seconds for which an import waits at most: a request may wait for the import
_STEP = 0.0005  # seconds
_SHORT_INTERVAL = 0.0005  # seconds
_USUAL_INTERVAL = sys.getswitchinterval()


class Preload:
    """Imports modules in a thread that pauses before each import while a request is answered.

    Python switches threads every 5 ms (`sys.setswitchinterval`), and the event loop needs several
    switches to answer a request, because it waits for the journal's thread. So this class shortens
    the interval and pauses imports. As a finder on `sys.meta_path`, it also sees nested imports.

    Args:
        first: modules that requests may import, too; their imports never pause.
        busy: whether a request is being answered; called in the thread.
    """

    def __init__(
        self, first: Sequence[str], modules: Sequence[str], busy: Callable[[], bool]
    ) -> None:
        self._first = first
        self._modules = modules
        self._busy = busy
        self._thread: int | None = None

    async def run(self) -> None:
        """Import the modules. If the call is cancelled, the thread continues."""
        sys.meta_path.insert(0, self)
        sys.setswitchinterval(_SHORT_INTERVAL)
        try:
            await in_daemon_thread(self._import, name="preload")
        finally:
            sys.setswitchinterval(_USUAL_INTERVAL)
            sys.meta_path.remove(self)

    def hurry(self) -> None:
        """Stop pausing, because a prompt waits for the modules."""
        self._busy = lambda: False

    def _import(self) -> None:
        for module in self._first:
            import_module(module)
        self._thread = threading.get_ident()
        for module in self._modules:
            import_module(module)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Pause if the import is the thread's, and return None so that other finders are used."""
        del fullname, path, target
        if threading.get_ident() == self._thread:
            deadline = time.monotonic() + _PAUSE
            while self._busy() and time.monotonic() < deadline:
                time.sleep(_STEP)
        return None
