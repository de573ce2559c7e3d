"""A process that goes on swapping what is in a project with symlinks that lead out of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SWAP = """
import os, random, sys
root, outside = sys.argv[1:]
os.chdir(root)
print("swapping", flush=True)

def linger():
    for _ in range(random.randrange(60)):
        os.lstat("folder")

for _ in range(10_000_000):
    try:
        os.rename("folder", "away")
        os.symlink(outside, "folder")
        linger()
        os.unlink("folder")
    except OSError:
        pass
    try:
        os.rename("away", "folder")
        linger()
        os.symlink(outside + "/file", "link")
        os.rename("link", "file")
        with open("plain", "w") as file:
            file.write("inside")
        os.rename("plain", "file")
    except OSError:
        pass
"""


@contextmanager
def swapping(root: Path, outside: Path) -> Iterator[None]:
    """While it lasts, `folder` and `file` in `root` are now what they were, now a symlink out."""
    command = [sys.executable, "-c", _SWAP, str(root), str(outside)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"swapping\n"
        yield
    finally:
        process.kill()
        process.communicate()
