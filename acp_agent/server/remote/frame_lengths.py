"""The lengths of HTTP/2 frames, read as they come (RFC 9113, section 4.1).

The library refuses a frame that is too long once all of it is there: by then 16 MiB are kept, for
a client that nobody has let in.
"""

from __future__ import annotations

from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"  # RFC 9113, section 3.4
_HEADER = 9  # bytes; the first three are the length of what follows it


class FrameLengths:
    """Follows the frames of one direction.

    Args:
        first: bytes before the first frame.
        most: the longest that a frame may be.
    """

    def __init__(self, *, first: int, most: int) -> None:
        self._skip = first
        self._most = most
        self._header = b""

    def too_long(self, data: bytes) -> bool:
        """Whether a frame begins in `data` that is too long."""
        at = 0
        while at < len(data):
            if self._skip:
                step = min(self._skip, len(data) - at)
                self._skip -= step
                at += step
                continue
            wanted = _HEADER - len(self._header)
            self._header += data[at : at + wanted]
            at += wanted
            if len(self._header) < _HEADER:
                return False
            self._skip = int.from_bytes(self._header[:3], "big")
            self._header = b""
            if self._skip > self._most:
                return True
        return False
