"""Disks that are full, and programs that hang, while files are kept or put back."""

from __future__ import annotations

import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from acp_agent.errors import CheckpointTooSlowError, WorkspaceError
from acp_agent.workspace.checkpoints.base import Deadline
from acp_agent.workspace.checkpoints.folders import FolderCheckpoints
from tests.support.ordinary_user import shared_folder, without_root
from tests.workspace.checkpoint_folder import (
    RULES,
    Checkpoints,
    folder_contents,
    skip_reasons,
    write_files,
)


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file can be written that is larger."""
    most, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))


def test_a_file_that_does_not_fit_on_the_disk_leaves_no_temporary_file(
    history: Checkpoints, root: Path
) -> None:
    write_files(root, {"large": "1" * 5_000, "a": "1"})
    name = history.save()
    (root / "large").unlink()
    (root / "a").unlink()
    plan = history.plan(name)
    with room_for(2_000):
        (result,) = history.checkpoints.restore([plan], name, Deadline(30))
    assert list(skip_reasons(result)) == ["large"]
    assert folder_contents(root).keys() == {b"a"}
    history.restore(name)
    assert folder_contents(root).keys() == {b"large", b"a"}


def test_a_full_disk_is_an_error_that_names_the_folder(history: Checkpoints, root: Path) -> None:
    write_files(root, {"a": "1"})
    history.save()
    with room_for(0), pytest.raises(WorkspaceError, match=r"\.git: .*; check the folder"):
        history.save()
    history.save()


def test_an_unreadable_folder_is_reported_and_does_not_count_as_deleted() -> None:
    with shared_folder() as base, without_root():
        root = base / "above" / "project"
        write_files(root, {"a": "1"})
        history = Checkpoints(base, root)
        history.save()
        root.parent.chmod(0)
        with pytest.raises(WorkspaceError) as raised:
            history.save()
        root.parent.chmod(0o700)
    assert str(raised.value) == f"{root}: Permission denied; check the folder"


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_a_git_that_hangs_during_a_restore_is_killed(
    is_cancelled: bool, tmp_path: Path, root: Path
) -> None:
    program = tmp_path / "git"
    program.write_text(
        '#!/bin/sh\ncase "$*" in *cat-file*) exec sleep 1000;; esac\nexec git "$@"\n'
    )
    program.chmod(0o755)
    checkpoints = FolderCheckpoints(
        tmp_path / "home" / "checkpoints", "s", [root], RULES, str(program)
    )
    write_files(root, {"a": "1"})
    checkpoints.save("then", Deadline(30))
    write_files(root, {"a": "2"})
    plans = checkpoints.plan(checkpoints.save(None, Deadline(30)), "then", Deadline(30))
    deadline = Deadline(30 if is_cancelled else 0.5)
    if is_cancelled:
        threading.Timer(0.5, deadline.cancel).start()
    raised: list[Exception] = []

    def restore() -> None:
        try:
            checkpoints.restore(plans, "then", deadline)
        except CheckpointTooSlowError as error:
            raised.append(error)

    working = threading.Thread(target=restore, daemon=True)  # it may never end
    working.start()
    working.join(10)
    assert raised
    assert (root / "a").read_text() == "2"
    checkpoints.save(None, Deadline(30))  # nobody has the lock any more
