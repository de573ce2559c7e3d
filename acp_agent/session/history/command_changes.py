"""Find the files that a command changes in the session's folders, to show them with its call.

The folders of the checkpoint are watched with inotify, so that the time does not depend on the
number of files. On systems without inotify nothing is shown.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from acp_agent.config.localization import Translator
from acp_agent.content import CallContent, DiffPart, text_part
from acp_agent.errors import WorkspaceError
from acp_agent.session.history.checkpoint_files import path_name
from acp_agent.workspace.checkpoints.base import Deadline, absolute_path
from acp_agent.workspace.checkpoints.folder_watch import FolderChanges, FolderWatch, folders_below
from acp_agent.workspace.checkpoints.folders import FolderCheckpoints
from acp_agent.workspace.scrub import scrub

READ_SECONDS = 2.0  # to read the previous contents
_MAX_NAMES = 20  # files that are listed
_MAX_DIFFS = 10  # files that are shown with a diff
_MAX_DIFF_BYTES = 40_000  # of a file with a diff
_MAX_TOTAL_BYTES = 100_000  # of all diffs
_MAX_READ_FILES = 40  # files whose previous content is read
_MAX_STATES = 400  # files whose content is cached
# Folders for agents that are watched although a checkpoint leaves them out.
_MAX_AGENT_FOLDERS = 500
_MAX_NEW_FOLDERS = 5_000  # folders below a new one that are searched for files that steer agents

_log = logging.getLogger(__name__)


class _State(Struct, frozen=True):
    """The state of a file: `mark` identifies the version, and is None for a missing file.

    `text` is the content of a short text file.
    """

    mark: tuple[int, int, int] | None
    text: str | None = None


_ABSENT = _State(None)
_UNKNOWN = _State((0, 0, 0))


class CommandChanges:
    """Finds the files that commands change. All methods block: call them in a thread.

    Args:
        steers: returns whether a file, given by its absolute path, steers agents.

    Attributes:
        steering: the absolute paths of files that steer agents and that the last call of `before`
            or `after` found to be created, changed or deleted.
        complete: whether that call found all of them.
    """

    def __init__(self, steers: Callable[[str], bool] = lambda _: False) -> None:
        self._steers = steers
        self._watches: dict[Path, FolderWatch] = {}
        self._trees: dict[Path, str] = {}
        self._states: dict[tuple[Path, bytes], _State] = {}  # files that changed since `_trees`
        self._disabled = False
        self.steering: list[str] = []
        self.complete = True

    def set_trees(
        self, checkpoints: FolderCheckpoints, trees: Mapping[Path, str], deadline: Deadline
    ) -> None:
        """Set the trees of a new checkpoint as the state before a command."""
        self._trees, self._states = dict(trees), {}
        if self._disabled:
            return
        try:
            for root in self._watches.keys() - trees.keys():
                self._watches.pop(root).close()
            for root in trees.keys() - self._watches.keys():
                folders = checkpoints.folders(root, trees[root], deadline)
                agent_folders = self._steering_folders(root)
                self._watches[root] = FolderWatch(os.fsencode(root), (*folders, *agent_folders))
        except (OSError, WorkspaceError) as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        _log.info("what commands change is not shown: %s", error)
        self._disabled = True
        self.close()

    def close(self) -> None:
        """Stop watching."""
        for watch in self._watches.values():
            watch.close()
        self._watches.clear()

    def before(self, checkpoints: FolderCheckpoints) -> None:
        """Record the changes by others before a command begins, so that `after` ignores them.

        Args:
            checkpoints: has the previous contents.
        """
        for root, touched in self._drain():
            steering = {
                path: created
                for path, created in touched.files.items()
                if self._steers(absolute_path(root, path))
            }
            changes = self._compare(checkpoints, root, steering)
            self.steering += [absolute_path(root, path) for path, _, _ in changes]
            for path in touched.files.keys() - steering.keys():
                state = _read_state(root, path) if len(self._states) < _MAX_STATES else _UNKNOWN
                self._states[root, path] = state

    def after(
        self, checkpoints: FolderCheckpoints, home: Path, translate: Translator
    ) -> tuple[CallContent, ...]:
        """Return content that shows the files that were changed since `before`.

        Args:
            home: the folder to which names are relative.
        """
        names: list[str] = []
        diffs: list[DiffPart] = []
        remaining = _MAX_TOTAL_BYTES
        for root, touched in self._drain():
            if not touched.complete:
                names.append(translate("changed too many files to list"))
            changes = [(path, _ABSENT, _UNKNOWN) for path in touched.new_folders]
            changes += [(path, _UNKNOWN, _ABSENT) for path in touched.deleted_folders]
            changes += self._compare(checkpoints, root, touched.files)
            for path, old, new in changes:
                name = f"`{path_name(home, root, path)}`"
                names.append(_describe(name, old, new, translate))
                absolute = absolute_path(root, path)
                if self._steers(absolute):
                    self.steering.append(absolute)
                size = len(old.text or "") + len(new.text or "")
                has_texts = new.text is not None and (old.text is not None or old.mark is None)
                if has_texts and size <= remaining and len(diffs) < _MAX_DIFFS:
                    remaining -= size
                    if scrub(absolute) != absolute:
                        continue  # its name contains a secret, which the list hides
                    # The diff is shown without review, so hide secrets in it.
                    old_text = None if old.text is None else scrub(old.text)
                    diffs.append(DiffPart(absolute, scrub(new.text or ""), old_text))
        if not names:
            return ()
        excess = len(names) - _MAX_NAMES
        file_list = ", ".join(names[:_MAX_NAMES])
        if excess > 0:
            file_list = translate("{files} and {count} more", files=file_list, count=excess)
        return (text_part(translate("The command {changes}.", changes=file_list)), *diffs)

    def _steering_folders(self, root: Path) -> list[bytes]:
        """Return the folders for agents in a folder; checkpoints leave out ignored ones."""
        with suppress(OSError), os.scandir(root) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
            steering = [os.fsencode(name) for name in names if self._steers(f"{root}/{name}")]
            return [
                folder
                for folder_name in steering
                for folder, _ in folders_below(root, folder_name, max_folders=_MAX_AGENT_FOLDERS)
            ]
        return []

    def _drain(self) -> Iterator[tuple[Path, FolderChanges]]:
        self.steering = []
        self.complete = not self._disabled and self._watches.keys() == self._trees.keys()
        for root, watch in tuple(self._watches.items()):
            try:
                touched = watch.drain()
            except OSError as error:
                self._give_up(error)
                self.complete = False
                return
            for folder in touched.new_folders:  # `touched.files` does not have its files
                for inner, names in folders_below(root, folder[:-1], max_folders=_MAX_NEW_FOLDERS):
                    paths = (absolute_path(root, inner + b"/" + name) for name in names)
                    self.steering += filter(self._steers, paths)
            yield root, touched
            if not touched.complete:  # the watch may lack new folders
                self._watches.pop(root).close()
                self.complete = False

    def _compare(
        self, checkpoints: FolderCheckpoints, root: Path, files: Mapping[bytes, bool]
    ) -> Iterator[tuple[bytes, _State, _State]]:
        """Yield the files that have changed, with their old and new states.

        Args:
            checkpoints: has the previous contents.
            files: the files, and whether each was created, as far as known.
        """
        new_states = {path: _read_state(root, path) for path in sorted(files)}
        set_trees: dict[bytes, bytes] = {}
        for contents in (True, False):  # large files are not read
            missing = [
                path
                for path, new in new_states.items()
                if (root, path) not in self._states and contents == (new.text is not None)
            ]
            with suppress(WorkspaceError):
                tree, limit = self._trees[root], Deadline(READ_SECONDS)
                if missing := missing[:_MAX_READ_FILES]:
                    set_trees |= checkpoints.read_files(
                        root, tree, missing, limit, contents=contents
                    )
        for path, new in new_states.items():
            old = self._states.get((root, path))
            if old is None:
                old = _saved_state(set_trees.get(path), created=files[path])
            self._states[root, path] = new if len(self._states) < _MAX_STATES else _UNKNOWN
            if old.mark is None and new.mark is None:
                continue
            if old.text is None or old.text != new.text:
                yield path, old, new


def _saved_state(data: bytes | None, *, created: bool) -> _State:
    """Return the state of a file with this content in a checkpoint, which may leave it out."""
    if data is None:
        return _ABSENT if created else _UNKNOWN
    return _State((1, len(data), 0), _text(data))


def _read_state(root: Path, path: bytes) -> _State:
    absolute = absolute_path(root, path)
    try:
        status = os.lstat(absolute)
        data = b"\0"
        if stat.S_ISREG(status.st_mode) and status.st_size <= _MAX_DIFF_BYTES:
            descriptor = os.open(absolute, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
                data = file.read(_MAX_DIFF_BYTES + 1)
    except FileNotFoundError:
        return _ABSENT
    except OSError:
        return _UNKNOWN
    return _State((status.st_ino, status.st_size, status.st_mtime_ns), _text(data))


def _text(data: bytes) -> str | None:
    if b"\0" in data or len(data) > _MAX_DIFF_BYTES:
        return None
    with suppress(UnicodeDecodeError):
        return data.decode()
    return None


def _describe(name: str, old: _State, new: _State, translate: Translator) -> str:
    if old.mark is None:
        return translate("created {file}", file=name)
    if new.mark is None:
        return translate("deleted {file}", file=name)
    return translate("changed {file}", file=name)
