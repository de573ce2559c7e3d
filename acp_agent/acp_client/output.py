"""The output of another agent, read as long as it is valid and within its limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from protocol.transports.base import Oversize
from protocol.transports.stdio import StdioTransport

LINE_LIMIT: Final = 16_000_000  # bytes of one message
TOTAL_LIMIT: Final = 64_000_000  # bytes of all messages of a task
_MAX_NOISE_LINES = 1_000  # lines that are no message, before the agent is ended
_MAX_SHOWN_BYTES = 200  # bytes of such a line


class AgentOutput(StdioTransport):
    """Carries the messages of an agent that nobody vouches for.

    Lines that are no message are dropped, as agents and their package managers print some. Reading
    ends at a line that is too long, at too many lines that are no message, and at too much of all.

    Args:
        out_fd: where ours go.
        has_room: waits until more may be read.

    Attributes:
        fault: why reading ended, in words that follow the agent's name; empty while it did not.
        first_noise: the beginning of the first line that was no message.
    """

    def __init__(
        self, in_fd: int, out_fd: int, wait_for_room: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(in_fd, out_fd, limit=LINE_LIMIT, ends_at_long_line=True)
        self.fault = ""
        self.first_noise = ""
        self._wait_for_room = wait_for_room
        self._noise = 0
        self._received = 0

    async def read_message(self) -> bytes | Oversize | None:
        """The next message; None at the end, and from a fault on."""
        while not self.fault:
            await self._wait_for_room()
            line = await super().read_message()
            if line is None:
                return None
            if isinstance(line, Oversize):
                self.fault = f"wrote a line of more than {line.limit:,} bytes"
                break
            self._received += len(line)
            if self._received > TOTAL_LIMIT:
                self.fault = f"wrote more than {TOTAL_LIMIT:,} bytes"
                break
            if line.lstrip()[:1] == b"{" and b'"jsonrpc"' in line:
                return line
            self._drop(line)
        return None

    def _drop(self, line: bytes) -> None:
        if not self.first_noise:
            self.first_noise = line.strip()[:_MAX_SHOWN_BYTES].decode("utf-8", "replace")
        self._noise += 1
        if self._noise > _MAX_NOISE_LINES:
            self.fault = "writes output that is no message of the Agent Client Protocol"
