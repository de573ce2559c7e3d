"""Claim standard input and output for the protocol before anything else can use them.

Imports only `os`, so that it can run as the first statement of a program.
"""

from __future__ import annotations

import os


def claim_stdio() -> tuple[int, int]:
    """Move standard input and output to private descriptors.

    Afterwards descriptor 0 reads the null device and descriptor 1 is a copy of standard error, so
    that neither a stray print nor a child process can use the protocol's streams.

    Returns:
        The descriptors to read messages from and to write them to; no child inherits them.
    """
    _open_missing()
    incoming = os.dup(0)  # copies made by `dup` are not inheritable (PEP 446)
    outgoing = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    return incoming, outgoing


def _open_missing() -> None:
    """Open the null device for each standard descriptor that the parent left closed.

    Otherwise a private copy could get the number 1 or 2, and prints would go to it.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # The system assigns the lowest free number; all lower ones are open by now.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
