"""Files that only their owner may read."""

from __future__ import annotations

import os
from pathlib import Path


def make_private_folder(folder: Path) -> None:
    """Make `folder` and its parents; those that are new are their owner's alone.

    Raises:
        OSError: it cannot be made.
    """
    if folder.is_dir():
        return
    make_private_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def write_private(path: Path, content: bytes) -> None:
    """Put `content` into `path` in one step: a reader finds the old content or the new, whole.

    The file is readable by its owner alone from its first byte on. A symlink stays one: the file
    that it points to is replaced.

    Raises:
        OSError: it cannot be written; the old content is as it was.
    """
    target = path.resolve()
    make_private_folder(target.parent)
    scratch = target.with_name(f".{target.name}.{os.urandom(8).hex()}")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(target)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
