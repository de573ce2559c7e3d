"""Run git, with a chance to cancel; read the branch and the changed files of a repository."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence

from msgspec import Struct

from acp_agent.content import printable_line
from acp_agent.errors import WorkspaceError
from acp_agent.platform.posix import end_group, find_git
from acp_agent.sandbox.launch import Confine, unconfined
from acp_agent.workspace.environment import added_variables

_ARGUMENTS = ("status", "--porcelain", "-z", "--branch", "--ignore-submodules=all", "--", ".")
_MAX_OUTPUT = 1_000_000  # bytes of output
_POLL_SECONDS = 0.02  # seconds between checks for cancellation
_UNBORN_PREFIX = "No commits yet on "
_DETACHED_HEAD = "HEAD (no branch)"


class GitStatus(Struct, frozen=True, kw_only=True):
    """A repository's branch ("" if none is checked out) and its changed files.

    Each file has the letters of `git status --short` and its path from the top of the repository.
    """

    branch: str
    changed: tuple[tuple[str, str], ...]
    has_commits: bool = True


def git_status(
    folder: str, is_cancelled: Callable[[], bool], confine: Confine = unconfined
) -> GitStatus | None:
    """Return the git status of a folder; None if git fails, is missing or is cancelled.

    Starts a process: call it in a thread, and only if the repository's settings make git run no
    program (`acp_agent.permissions.git_reads.runs_no_program`).

    Args:
        confine: wraps git's command line.
    """
    try:
        output = run_git(_ARGUMENTS, folder, is_cancelled, confine)
    except WorkspaceError:
        return None
    return None if len(output) > _MAX_OUTPUT else parse_status(output)


def run_git(
    arguments: Sequence[str],
    folder: str,
    is_cancelled: Callable[[], bool],
    confine: Confine = unconfined,
) -> bytes:
    """Return the output of a git command that runs no hooks; see `git_status`.

    Raises:
        WorkspaceError: git failed, is missing or was cancelled.
    """
    program = find_git(folder)
    if program is None or is_cancelled():
        raise WorkspaceError("git is missing" if program is None else "git was stopped")
    environ = {**os.environ, **added_variables(os.environ, only_reads=True), "LC_ALL": "C"}
    process = confine([program, *arguments], environ, folder).start(
        folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        output, errors = _output(process, is_cancelled)
    finally:
        if process.poll() is None:
            end_group(process.pid, at_once=True)
            process.communicate()
    if process.returncode:
        lines = errors.decode("utf-8", "replace").strip().splitlines() or ["it gave no reason"]
        raise WorkspaceError(f"git {arguments[0]} failed: {printable_line(lines[-1], 300)}")
    return output


def _output(
    process: subprocess.Popen[bytes], is_cancelled: Callable[[], bool]
) -> tuple[bytes, bytes]:
    while not is_cancelled():
        try:
            return process.communicate(timeout=_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            continue
    raise WorkspaceError("git was stopped")


def parse_status(output: bytes) -> GitStatus | None:
    """Parse the output of `git status --porcelain -z --branch`; return None if it is malformed."""
    head, *records = os.fsdecode(output).split("\0")
    if not head.startswith("## "):
        return None
    head = head[3:]
    is_unborn = head.startswith(_UNBORN_PREFIX)
    branch = "" if head == _DETACHED_HEAD else head.removeprefix(_UNBORN_PREFIX).partition("...")[0]
    changed = []
    remaining_records = iter(records)
    for record in remaining_records:
        if len(record) > 3:
            changed.append((record[:2].strip(), record[3:]))
            if "R" in record[:2] or "C" in record[:2]:
                next(remaining_records, "")  # the previous name
    return GitStatus(branch=branch, changed=tuple(changed), has_commits=not is_unborn)
