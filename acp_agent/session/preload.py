"""Import the modules for the first prompt in a thread while the process answers requests."""

from __future__ import annotations

import builtins
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from acp_agent.workspace.threads import in_daemon_thread

# The modules that the first prompt of a process imports; a test checks this list. Small modules
# come first, the slowest ones last.
PROMPT_MODULES = (
    "acp_agent.session.folder_trust",
    "acp_agent.server.prompts",
    "acp_agent.server.session_requests",
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
    "acp_agent.agent.turn",
    "acp_agent.session.turns.parts",
)

# Seconds for which the imports pause at most while one request after the other is answered: it may
# wait for the module that is being imported.
_MAX_PAUSE = 0.2
_STEP = 0.0005  # seconds
_SHORT_INTERVAL = 0.0005  # seconds
_USUAL_INTERVAL = sys.getswitchinterval()
_USUAL_IMPORT = builtins.__import__


class Preload:
    """Imports modules in a thread that pauses before each import, nested or not, for requests.

    Python switches threads every 5 ms (`sys.setswitchinterval`), and the event loop needs several
    switches to answer a request, because it waits for the journal's thread. So this class also
    shortens the interval.

    Args:
        first: modules that other requests import, too; their imports never pause.
        modules: what to import then.
        busy: whether a request is being answered that does not need the modules; called in the
            thread.
    """

    def __init__(
        self, first: Sequence[str], modules: Sequence[str], busy: Callable[[], bool]
    ) -> None:
        self._first = first
        self._modules = modules
        self._busy = busy
        self._thread: int | None = None
        self._paused = 0.0  # seconds since requests are being answered

    async def run(self) -> None:
        """Import the modules. If the call is cancelled, the thread continues."""

        def import_with_pause(name: str, *args: Any, **kwargs: Any) -> ModuleType:
            if name not in sys.modules and threading.get_ident() == self._thread:
                self._pause()
            return _USUAL_IMPORT(name, *args, **kwargs)

        # Not a finder on `sys.meta_path`: those are called under a lock that all imports take.
        builtins.__import__ = import_with_pause
        sys.setswitchinterval(_SHORT_INTERVAL)
        try:
            await in_daemon_thread(self._import, name="preload")
        finally:
            sys.setswitchinterval(_USUAL_INTERVAL)
            builtins.__import__ = _USUAL_IMPORT

    def stop_pausing(self) -> None:
        """Stop pausing, because a prompt waits for the modules."""
        self._busy = lambda: False

    def _import(self) -> None:
        for module in self._first:
            import_module(module)
        self._thread = threading.get_ident()
        for module in self._modules:
            self._pause()
            import_module(module)

    def _pause(self) -> None:
        """Wait while a request is answered, which may wait for a module that is being imported."""
        while self._busy():
            if self._paused >= _MAX_PAUSE:
                return
            began = time.monotonic()
            time.sleep(_STEP)
            self._paused += time.monotonic() - began
        self._paused = 0.0
