"""Looks at what a repository keeps: what differs between trees, and what is in files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from acp_agent.errors import WorkspaceError
from acp_agent.workspace.checkpoints.contract import Blob, Change, Deadline
from acp_agent.workspace.checkpoints.sealed_git import Answers, SealedGit, end


def changes(git: SealedGit, old: str, new: str, deadline: Deadline) -> Sequence[Change]:
    """What is different between two trees; see `Repository.changes`."""
    out = git.run("diff-tree", "-r", "-z", "--no-renames", old, new, deadline=deadline)
    fields = out.split(b"\0")
    return [_change(fields[at], fields[at + 1]) for at in range(0, len(fields) - 1, 2)]


def contents(git: SealedGit, blobs: Iterable[str], deadline: Deadline) -> Iterator[bytes]:
    """The contents of files by their ids, in their order; see `Repository.contents`."""
    process = git.start("cat-file", "--batch")
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        answers = Answers(process.stdout, deadline)
        for blob in blobs:
            deadline.check()
            process.stdin.write(f"{blob}\n".encode())
            process.stdin.flush()
            head = answers.line().split()
            if len(head) != 3 or head[1] != b"blob":
                raise WorkspaceError(f"the checkpoint has lost a file's content ({blob})")
            data = answers.take(int(head[2]))
            answers.take(1)
            yield data
    except OSError as error:
        raise WorkspaceError(f"the checkpoint cannot be read: {error}") from None
    finally:
        end(process)


def ignore_files(git: SealedGit, tree: str, deadline: Deadline) -> dict[bytes, str]:
    """The ignore files that a tree has: the folder of each, and the id of its content."""
    out = git.run("ls-tree", "-r", "-z", tree, deadline=deadline)
    found: dict[bytes, str] = {}
    for line in split(out):
        head, _, path = line.partition(b"\t")
        folder, _, name = path.rpartition(b"/")
        if name == b".gitignore" and head.startswith(b"100"):
            found[folder] = head.split()[2].decode()
    return found


def split(out: bytes) -> list[bytes]:
    """The fields that git ends with a zero byte each."""
    return [path for path in out.split(b"\0") if path]


def _change(head: bytes, path: bytes) -> Change:
    """A pair of fields of `git diff-tree -z` (git-diff-tree(1), Raw output format)."""
    old_mode, new_mode, old, new, _ = head.lstrip(b":").split()
    return Change(path, _blob(old_mode, old), _blob(new_mode, new))


def _blob(mode: bytes, name: bytes) -> Blob | None:
    number = int(mode, 8)
    return Blob(number, name.decode()) if number else None
