"""Starting `store_child.py`, for the tests beside it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CHILD = Path(__file__).with_name("store_child.py")
ROOT = Path(__file__).parents[2]


def command(*arguments: object) -> list[str]:
    return [sys.executable, str(CHILD), *(str(argument) for argument in arguments)]


def begin(*arguments: object) -> subprocess.Popen[str]:
    """A child that runs on; its lines come from `stdout`."""
    return subprocess.Popen(
        command(*arguments),
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def finish(*arguments: object, prefix: tuple[str, ...] = ()) -> list[str]:
    """The lines of a child that ran to its end."""
    done = subprocess.run(
        [*prefix, *command(*arguments)],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()


def kill(child: subprocess.Popen[str]) -> list[str]:
    """End a child as `kill -9` does; the whole lines that it had still said."""
    child.kill()
    assert child.stdout is not None
    assert child.stdin is not None
    rest = child.stdout.read()
    child.wait(timeout=30)
    child.stdout.close()
    child.stdin.close()
    return rest[: rest.rfind("\n") + 1].splitlines()
