"""The user's configuration file is written as a whole or not at all, and stays the user's."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from acp_agent.cli.editors import config_file
from acp_agent.cli.editors.config_file import BACKUP_SUFFIX, read, write
from acp_agent.errors import InvalidInputError
from tests.support.ordinary_user import NOBODY, shared_folder, without_root


def refusal(path: Path) -> str:
    with pytest.raises(InvalidInputError) as refused:
        read(path)
    return str(refused.value)


def test_permissions_stay_and_a_copy_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b"before")
    path.chmod(0o640)
    write(read(path), b"after", keep=True)
    backup = path.with_name(path.name + BACKUP_SUFFIX)
    assert path.read_bytes() == b"after"
    assert backup.read_bytes() == b"before"
    assert {stat.S_IMODE(file.stat().st_mode) for file in (path, backup)} == {0o640}
    assert sorted(tmp_path.iterdir()) == sorted([path, backup])


def test_a_link_stays_a_link_and_its_target_is_written(tmp_path: Path) -> None:
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "zed.json").write_bytes(b"before")
    link = tmp_path / "settings.json"
    link.symlink_to("dotfiles/zed.json")
    write(read(link), b"after", keep=True)
    assert link.is_symlink()
    assert (dotfiles / "zed.json").read_bytes() == b"after"
    assert (dotfiles / f"zed.json{BACKUP_SUFFIX}").read_bytes() == b"before"


def test_a_link_to_a_missing_file_creates_the_file(tmp_path: Path) -> None:
    link = tmp_path / "settings.json"
    link.symlink_to(tmp_path / "dotfiles" / "zed.json")
    file = read(link)
    assert file.data is None
    write(file, b"new", keep=True)
    assert link.is_symlink()
    assert link.read_bytes() == b"new"


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "settings.json"
    umask = os.umask(0o027)
    try:
        write(read(path), b"new", keep=True)
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b"before")
    file = read(path)
    path.write_bytes(b"since")
    with pytest.raises(InvalidInputError, match="changed meanwhile"):
        write(file, b"after", keep=True)
    assert path.read_bytes() == b"since"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_everything_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b"before")
    file = read(path)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InvalidInputError, match="no space left"):
        write(file, b"after", keep=True)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


KILLED = """
import os, signal, sys
from pathlib import Path
from acp_agent.cli.editors.config_file import read, write
calls = []
def fsync(descriptor):
    calls.append(descriptor)
    if len(calls) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
os.fsync = fsync
write(read(Path(sys.argv[1])), b"after", keep=True)
"""


@pytest.mark.parametrize("write_that_is_cut", ["1", "2"])
def test_a_killed_setup_leaves_the_file_as_it_was_and_can_be_repeated(
    tmp_path: Path, write_that_is_cut: str
) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b"before")
    command = [sys.executable, "-c", KILLED, str(path), write_that_is_cut]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    file = read(path)
    assert file.data == b"before"
    write(file, b"after", keep=True)
    assert path.read_bytes() == b"after"
    assert file.backup.read_bytes() == b"before"


def test_a_special_file_is_not_changed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "round").symlink_to(tmp_path / "round")
    (tmp_path / "one").write_bytes(b"")
    os.link(tmp_path / "one", tmp_path / "two")
    (tmp_path / "closed").write_bytes(b"")
    (tmp_path / "closed").chmod(0o444)
    assert "no ordinary file" in refusal(tmp_path / "fifo")
    assert "no ordinary file" in refusal(tmp_path)
    assert "circular" in refusal(tmp_path / "round")
    assert "several hard links" in refusal(tmp_path / "two")
    assert "read-only" in refusal(tmp_path / "closed")
    (tmp_path / "One").write_bytes(b"")
    inside = tmp_path / "One" / "settings.json"
    assert refusal(inside) == f"not a directory ({inside})"


def test_a_file_that_nix_writes_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / "settings.json").write_bytes(b"{}")
    (tmp_path / "settings.json").symlink_to(store / "settings.json")
    monkeypatch.setattr(config_file, "_READ_ONLY_STORES", (store,))
    assert "Nix" in refusal(tmp_path / "settings.json")


def test_files_of_another_user_or_in_a_closed_folder_are_not_changed() -> None:
    with shared_folder() as folder:
        closed = folder / "closed"
        closed.mkdir()
        (closed / "settings.json").write_bytes(b"{}")
        if os.geteuid() == 0:
            with without_root():
                assert "another user" in refusal(closed / "settings.json")
            os.chown(closed / "settings.json", NOBODY, -1)
        else:
            closed.chmod(0o500)
        with without_root():
            assert "cannot be written" in refusal(closed / "settings.json")
            assert "cannot be written" in refusal(closed / "new.json")
        closed.chmod(0o700)
        secret = folder / "secret.json"
        secret.write_bytes(b"{}")
        if os.geteuid() == 0:
            os.chown(secret, NOBODY, -1)
        secret.chmod(0o200)
        with without_root():
            assert "permission denied" in refusal(secret)
