"""What an agent leaves that ended or never spoke: its status, last words, garbage, failures."""

from __future__ import annotations

import signal
from typing import Literal

from acp_agent.cli.agent_client import AgentChild
from acp_agent.cli.localization import translate, translate_rendered
from protocol.jsonrpc.errors import RpcError

_SHOWN = 200  # bytes of a line that is no message
_LAST_LINES = 5  # of stderr


class Garbage:
    """Lines of an agent's that are no messages.

    Attributes:
        count: how many there were.
    """

    def __init__(self) -> None:
        self.count = 0
        self._first = b""

    @property
    def first(self) -> str:
        """The beginning of the first."""
        return self._first.decode("utf-8", "replace")

    def look(self, direction: Literal["in", "out"], line: bytes) -> None:
        """See each line as it passes: one that does not even name the protocol is no message."""
        if direction == "in" and b'"jsonrpc"' not in line and line.strip():
            if not self.count:
                self._first = line.strip()[:_SHOWN]
            self.count += 1


def how_it_ended(child: AgentChild, garbage: Garbage) -> str:
    """The exit status or signal, and the end of what it wrote, for people."""
    if child.status is None:
        how = translate("it closed the connection")
    elif child.status < 0:
        how = translate("signal {name}", name=_signal_name(-child.status))
    else:
        how = translate("exit status {status}", status=child.status)
    return f"{how}{what_it_wrote(child, garbage)}"


def what_it_wrote(child: AgentChild, garbage: Garbage) -> str:
    """The end of what it wrote, on lines of its own; empty where it wrote nothing."""
    lines = [line for line in child.stderr_tail.splitlines() if line.strip()]
    told = "\n".join(f"    {line}" for line in lines[-_LAST_LINES:])
    if garbage.count:
        message = translate("it wrote what is not the protocol: {line}", line=garbage.first)
        told = f"    {message}\n{told}".rstrip()
    return f"\n{told}" if told else ""


def why_failed(error: Exception) -> str:
    """Why something that was asked of an agent failed, for people."""
    if isinstance(error, RpcError):
        return translate_rendered(error.message)
    if isinstance(error, TimeoutError):
        return translate("the agent does not answer")
    return translate("the agent ended")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
