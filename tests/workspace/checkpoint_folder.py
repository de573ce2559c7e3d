"""A folder with checkpoints, by git or without it."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

from acp_agent.workspace.checkpoints.base import Deadline, Rules, Snapshot, path_text
from acp_agent.workspace.checkpoints.folders import FolderCheckpoints, RestorePlan, RestoreResult

SESSION = "sess_test"
RULES = Rules()


class Checkpoints:
    """The checkpoints of one folder, made one after the other."""

    def __init__(self, base: Path, root: Path, rules: Rules = RULES, session: str = SESSION):
        self.base, self.root, self.session = base, root, session
        self.folder = base / "home" / "checkpoints"
        self.checkpoints = FolderCheckpoints(self.folder, session, [root], rules)
        self.count = 0

    def keep(self, seconds: float = 30) -> str:
        """Keep the files as they are; the checkpoint's id."""
        self.count += 1
        name = f"ckpt_{self.count}"
        self.last: Snapshot = self.checkpoints.save(name, Deadline(seconds))[self.root]
        return name

    def plan(self, checkpoint: str) -> RestorePlan:
        """What going back would change; the files are kept first."""
        self.keep()
        (plan,) = self.checkpoints.plan({self.root: self.last}, checkpoint, Deadline(30))
        return plan

    def back(self, checkpoint: str) -> RestoreResult:
        """Go back."""
        plan = self.plan(checkpoint)
        (result,) = self.checkpoints.restore([plan], checkpoint, Deadline(30))
        return result

    def unsaved(self) -> dict[str, str]:
        """What the last checkpoint could not keep, and why."""
        return {path_text(one.path): one.reason for one in self.last.unsaved}

    def without(self, checkpoint: str) -> dict[str, str]:
        """What a checkpoint does not have, for whatever reason."""
        found = self.checkpoints.unsaved(checkpoint, Deadline(30))
        return {path_text(one.path): one.reason for _, one in found}


def kinds(plan: RestorePlan | RestoreResult) -> dict[str, str]:
    """What is done to which path."""
    changes = plan.changes if isinstance(plan, RestorePlan) else plan.applied
    return {path_text(change.path): change.kind for change in changes}


def skipped(plan: RestorePlan | RestoreResult) -> dict[str, str]:
    """What is left as it is, and why."""
    return {path_text(one.path): one.reason for one in plan.skipped}


def picture(root: Path) -> dict[bytes, tuple[str, bytes]]:
    """Everything in a folder but repositories' own: what it is, and what is in it."""
    found: dict[bytes, tuple[str, bytes]] = {}
    for parent, folders, files in os.walk(os.fsencode(root)):
        folders[:] = [folder for folder in folders if folder != b".git"]
        for name in (*files, *folders):
            path = os.path.join(parent, name)
            mode = os.lstat(path).st_mode
            key = os.path.relpath(path, os.fsencode(root))
            if stat.S_ISLNK(mode):
                found[key] = ("link", os.readlink(path))
            elif stat.S_ISREG(mode):
                kind = "program" if mode & 0o100 else "file"
                found[key] = (kind, Path(os.fsdecode(path)).read_bytes())
    return found


def put(root: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def git(folder: Path, *arguments: str) -> str:
    """A command of git, as the user runs it."""
    done = subprocess.run(
        ["git", "-c", "user.name=U", "-c", "user.email=u@example.com", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": str(folder.parent), "GIT_CONFIG_NOSYSTEM": "1"},
    )
    return done.stdout
