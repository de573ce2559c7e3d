"""An event loop that lets tasks go on later, and in another order, than they were woken in.

    with asyncio.Runner(loop_factory=lambda: ShuffledLoop(seed=7)) as runner:
        runner.run(scenario())

    ACP_AGENT_TEST_ORDER=7 python -m pytest -p tests.session.shuffled_loop tests/session

Which of two tasks that could both go on goes on first is nothing that code may rely on, nor how
soon. So steps of tasks are held back for a round now and then, as if what they waited for had come
a little later, and others overtake them. What asyncio does promise stays as it is: a callback of a
transport, a timer or `call_soon` runs when it would, and no step comes before its time.

What runs in threads has an order of its own: a seed gives the same one only where they are quick.
As a plugin this is for looking, not for `make test`: tests that count rounds fail with it.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import deque

import pytest

VARIABLE = "ACP_AGENT_TEST_ORDER"  # the seed; without it the order is the usual one
_HELD = (0.05, 0.3, 0.6)  # of the steps, the part that waits for a round


class ShuffledLoop(asyncio.SelectorEventLoop):
    """See the module.

    Args:
        seed: what the order is drawn from.
    """

    _ready: deque[asyncio.Handle]  # asyncio's own: what runs in the next round

    def __init__(self, seed: int | str) -> None:
        super().__init__()
        self._random = random.Random(seed)
        self._held = self._random.choice(_HELD)

    def _run_once(self) -> None:
        run: list[asyncio.Handle] = []
        held: list[asyncio.Handle] = []
        for _ in range(len(self._ready)):  # threads may add to it meanwhile
            handle = self._ready.popleft()
            late = _is_step(handle) and self._random.random() < self._held
            (held if late else run).append(handle)
        self._ready.extendleft(reversed(run))
        if held:
            self.call_soon(_nothing)  # else a round without anything to run waits for the world
            self._random.shuffle(held)
        super()._run_once()  # type: ignore[misc]  # asyncio's own, which typeshed does not name
        self._ready.extend(held)


def _is_step(handle: asyncio.Handle) -> bool:
    """Whether a handle lets a task go on."""
    callback: object = handle._callback  # type: ignore[attr-defined]  # likewise
    return isinstance(getattr(callback, "__self__", None), asyncio.Task)


def _nothing() -> None:
    pass


class _Policy(asyncio.DefaultEventLoopPolicy):
    def __init__(self, seed: str) -> None:
        super().__init__()
        self._seed = seed

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        return ShuffledLoop(self._seed)


def pytest_configure(config: pytest.Config) -> None:
    """Let every test of a run have such a loop, where a seed is given."""
    del config
    seed = os.environ.get(VARIABLE)
    if seed is not None:
        asyncio.set_event_loop_policy(_Policy(seed))
