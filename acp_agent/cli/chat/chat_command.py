"""What a command of the chat's is."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import Struct

# Takes what was typed behind the name. Raises RpcError, ConnectionError, TimeoutError.
Run = Callable[[str], Coroutine[Any, Any, None]]


def _always() -> bool:
    return True


class ChatCommand(Struct, frozen=True, kw_only=True):
    """One command.

    Attributes:
        name: what is typed after the slash.
        description: what it does, in a few words.
        run: does it.
        idle: whether it waits until no turn runs.
        there: whether the agent has what it takes.
    """

    name: str
    description: str
    run: Run
    idle: bool = False
    there: Callable[[], bool] = _always
