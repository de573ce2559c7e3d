"""A folder with checkpoints, by git or without it."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

from acp_agent.workspace.checkpoints.base import Deadline, Rules, Snapshot, path_text
from acp_agent.workspace.checkpoints.folders import FolderCheckpoints, FolderRestore

SESSION = "sess_test"
RULES = Rules()


class Checkpoints:
    """The checkpoints of one folder, made one after the other."""

    def __init__(self, base: Path, root: Path, rules: Rules = RULES, session: str = SESSION):
        self.base, self.root, self.session = base, root, session
        self.folder = base / "home" / "checkpoints"
        self.checkpoints = FolderCheckpoints(self.folder, session, [root], rules)
        self.count = 0

    def save(self, seconds: float = 30) -> str:
        """Save the files; return the checkpoint's id."""
        self.count += 1
        name = f"ckpt_{self.count}"
        self.last: Snapshot = self.checkpoints.save(name, Deadline(seconds))[self.root]
        return name

    def plan(self, checkpoint: str) -> FolderRestore:
        """Save the files, and return what a restore would change."""
        self.save()
        (plan,) = self.checkpoints.plan({self.root: self.last}, checkpoint, Deadline(30))
        return plan

    def restore(self, checkpoint: str) -> FolderRestore:
        """Restore a checkpoint."""
        plan = self.plan(checkpoint)
        (result,) = self.checkpoints.restore([plan], checkpoint, Deadline(30))
        return result

    def unsaved(self) -> dict[str, str]:
        """Return what the last checkpoint could not save, and why."""
        return {path_text(file.path): file.reason for file in self.last.unsaved}

    def skipped_files(self, checkpoint: str) -> dict[str, str]:
        """Return all files that a checkpoint lacks, with the reasons."""
        files = self.checkpoints.unsaved(checkpoint, Deadline(30))
        return {path_text(file.path): file.reason for _, file in files}


def change_kinds(plan: FolderRestore) -> dict[str, str]:
    """Return the kind of change of each path."""
    return {path_text(change.path): change.kind for change in plan.changes}


def skip_reasons(plan: FolderRestore) -> dict[str, str]:
    """Return the unchanged paths with the reasons."""
    return {path_text(file.path): file.reason for file in plan.skipped}


def folder_contents(root: Path) -> dict[bytes, tuple[str, bytes]]:
    """Return the kind and the content of every entry of a folder, without `.git`."""
    contents: dict[bytes, tuple[str, bytes]] = {}
    for parent, folders, files in os.walk(os.fsencode(root)):
        folders[:] = [folder for folder in folders if folder != b".git"]
        for name in (*files, *folders):
            path = os.path.join(parent, name)
            mode = os.lstat(path).st_mode
            key = os.path.relpath(path, os.fsencode(root))
            if stat.S_ISLNK(mode):
                contents[key] = ("link", os.readlink(path))
            elif stat.S_ISREG(mode):
                kind = "program" if mode & 0o100 else "file"
                contents[key] = (kind, Path(os.fsdecode(path)).read_bytes())
    return contents


def write_files(root: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def git(folder: Path, *arguments: str) -> str:
    """A command of git, as the user runs it."""
    completed = subprocess.run(
        ["git", "-c", "user.name=U", "-c", "user.email=u@example.com", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": str(folder.parent), "GIT_CONFIG_NOSYSTEM": "1"},
    )
    return completed.stdout
