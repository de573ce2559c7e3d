"""What the agent asked for and did not get, because the question could not be read or answered."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Literal

from msgspec import DecodeError, Struct, json

from acp_agent.cli.localization import translate
from protocol.jsonrpc.errors import REQUEST_CANCELLED

_PERMISSION = "session/request_permission"
_REMEMBERED = 200  # requests that are not answered yet


class _Failure(Struct, frozen=True):
    code: int
    message: str


class _Line(Struct, frozen=True):
    """As much of a message as tells a request from its answer."""

    id: int | str | None = None
    method: str = ""
    error: _Failure | None = None


class Refusals:
    """Sees each line as it passes, and tells when a request of the agent's gets an error.

    A method is told once, until `again`: an agent that asks a thousand times is one that asks.

    Args:
        tell: takes what is to be said.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._asked: OrderedDict[int | str, str] = OrderedDict()
        self._told: set[str] = set()

    def again(self) -> None:
        """Tell what was told already when it comes once more."""
        self._told.clear()

    def look(self, direction: Literal["in", "out"], line: bytes) -> None:
        """See a line."""
        if b'"id"' not in line:
            return
        try:
            message = json.decode(line, type=_Line)
        except DecodeError:
            return
        if message.id is None:
            return
        if direction == "in":
            if message.method:
                self._asked[message.id] = message.method
                if len(self._asked) > _REMEMBERED:
                    self._asked.popitem(last=False)
        elif not message.method:
            method = self._asked.pop(message.id, "")
            if message.error is not None and message.error.code != REQUEST_CANCELLED:
                self._refused(method, message.error.message)

    def _refused(self, method: str, why: str) -> None:
        if not method or method in self._told:
            return
        self._told.add(method)
        if method == _PERMISSION:
            text = translate(
                "The agent's question for permission could not be read: {why}", why=why
            )
        else:
            text = translate("The agent asked for {method} and did not get it: {why}",
                         method=method, why=why)  # fmt: skip
        self._tell(text)
