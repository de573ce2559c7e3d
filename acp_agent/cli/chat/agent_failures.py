"""Describe an agent's failures: its exit, invalid output and failed requests."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Literal

from msgspec import DecodeError, Struct

from acp_agent.acp_client.process import AgentChild
from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.platform import posix
from acp_agent.platform.decoding import decode_json
from protocol.jsonrpc.messages import REQUEST_CANCELLED, RpcError

_MAX_SHOWN_BYTES = 200  # bytes of an invalid line
_MAX_STDERR_LINES = 5  # of stderr
_PERMISSION = "session/request_permission"
_MAX_PENDING = 200  # requests of the agent that are remembered until they are answered


class _Error(Struct, frozen=True):
    code: int
    message: str


class _Line(Struct, frozen=True):
    """The members of a message that distinguish a request from its response."""

    id: int | str | None = None
    method: str = ""
    error: _Error | None = None


class WireMonitor:
    """Watches the lines between chat and agent for failed requests.

    Args:
        report: called when a request of the agent fails. Called once per method until `reset`,
            because a faulty agent may repeat a request a thousand times.

    Attributes:
        invalid_line: the beginning of the first line that is not a message; empty if none.
    """

    def __init__(self, report: Callable[[str], None]) -> None:
        self.invalid_line = ""
        self._report = report
        self._pending: OrderedDict[int | str, str] = OrderedDict()
        self._reported: set[str] = set()

    def reset(self) -> None:
        """Forget which methods were reported."""
        self._reported.clear()

    def trace(self, direction: Literal["in", "out"], line: bytes) -> None:
        """Inspect a line."""
        if direction == "in" and b'"jsonrpc"' not in line and not self.invalid_line:
            self.invalid_line = line.strip()[:_MAX_SHOWN_BYTES].decode("utf-8", "replace")
        if b'"id"' not in line:
            return
        try:
            message = decode_json(line, _Line)
        except DecodeError:
            return
        if message.id is None:
            return
        if direction == "in":
            if message.method:
                self._pending[message.id] = message.method
                if len(self._pending) > _MAX_PENDING:
                    self._pending.popitem(last=False)
        elif not message.method:
            method = self._pending.pop(message.id, "")
            if message.error is not None and message.error.code != REQUEST_CANCELLED:
                self._request_failed(method, message.error.message)

    def _request_failed(self, method: str, reason: str) -> None:
        if not method or method in self._reported:
            return
        self._reported.add(method)
        if method == _PERMISSION:
            text = translate("The agent's permission request could not be read: {why}", why=reason)
        else:
            text = translate(
                "The agent's request {method} failed: {why}", method=method, why=reason
            )
        self._report(text)


def exit_text(child: AgentChild, invalid_line: str) -> str:
    """Return the exit status or signal, and the end of the agent's output."""
    if child.status is None:
        description = translate("it closed the connection")
    elif child.status < 0:
        description = translate("signal {name}", name=posix.signal_name(-child.status))
    else:
        description = translate("exit status {status}", status=child.status)
    return description + output_text(child, invalid_line)


def output_text(child: AgentChild, invalid_line: str) -> str:
    """Return the end of the agent's output on separate lines; empty if there is none."""
    lines = [line for line in child.stderr_tail.splitlines() if line.strip()][-_MAX_STDERR_LINES:]
    if invalid_line:
        lines.insert(
            0, translate("its output is not a protocol message: {line}", line=invalid_line)
        )
    return "".join(f"\n    {line}" for line in lines)


def failure_text(error: Exception) -> str:
    """Return why a request to the agent failed."""
    if isinstance(error, RpcError):
        return translate_rendered(error.message)
    if isinstance(error, TimeoutError):
        return translate("the agent does not answer")
    return translate("the agent exited")
