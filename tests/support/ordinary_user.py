"""What permissions forbid, also where the tests run as root."""

from __future__ import annotations

import concurrent.futures.thread  # loaded while we may read where the packages lie
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiofiles  # likewise

# Named so that nobody takes them for unused.
LOADED_EARLY = (aiofiles, concurrent.futures.thread)
NOBODY = 65534

# What starts a program without the rights by which root may look into every process.
POWERLESS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.geteuid() == 0 else ()


def may_inspect(process: int) -> bool:
    """Whether another process of the same user can read a process's environment."""
    command = [*POWERLESS, "cat", f"/proc/{process}/environ"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@contextmanager
def shared_folder() -> Iterator[Path]:
    """A folder in which every user may do everything; those of pytest are for the owner alone."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name).resolve()


@contextmanager
def without_root() -> Iterator[None]:
    """Run as an ordinary user, whom permissions bind."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
