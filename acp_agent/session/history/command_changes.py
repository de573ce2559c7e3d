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
from acp_agent.workspace.checkpoints.base import Deadline, shown
from acp_agent.workspace.checkpoints.folder_watch import FolderWatch, Touched, folders_below
from acp_agent.workspace.checkpoints.folders import FolderCheckpoints
from acp_agent.workspace.scrub import scrub

SECONDS = 2.0  # to read the previous contents
_NAMED = 20  # files that are listed
_DIFFS = 10  # files that are shown with a diff
_DIFF_BYTES = 40_000  # of a file with a diff
_ALL_BYTES = 100_000  # of all diffs
_READ = 40  # files whose previous content is read
_KNOWN = 400  # files whose content is cached
_FOLDERS = 500  # folders for agents that are watched although a checkpoint leaves them out
_NEW_FOLDERS = 5_000  # folders below a new one that are searched for files that steer agents

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
        self._known: dict[tuple[Path, bytes], _State] = {}  # files that changed since `_trees`
        self._off = False
        self.steering: list[str] = []
        self.complete = True

    def saved(
        self, checkpoints: FolderCheckpoints, trees: Mapping[Path, str], deadline: Deadline
    ) -> None:
        """Set the trees of a new checkpoint as the state before a command."""
        self._trees, self._known = dict(trees), {}
        if self._off:
            return
        try:
            for root in self._watches.keys() - trees.keys():
                self._watches.pop(root).close()
            for root in trees.keys() - self._watches.keys():
                folders = checkpoints.folders(root, trees[root], deadline)
                more = self._steering_folders(root)
                self._watches[root] = FolderWatch(os.fsencode(root), (*folders, *more))
        except (OSError, WorkspaceError) as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        _log.info("what commands change is not shown: %s", error)
        self._off = True
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
        for root, touched in self._drained():
            mine = {path: made for path, made in touched.files.items() if self._steer(root, path)}
            for path, _, _ in self._compared(checkpoints, root, mine):
                self.steering.append(_place(root, path))
            for path in touched.files.keys() - mine.keys():
                state = _look(root, path) if len(self._known) < _KNOWN else _UNKNOWN
                self._known[root, path] = state

    def after(
        self, checkpoints: FolderCheckpoints, home: Path, translate: Translator
    ) -> tuple[CallContent, ...]:
        """Return content that shows the files that were changed since `before`.

        Args:
            checkpoints: has the previous contents.
            home: the folder to which names are relative.
            translate: the translator into the user's language.
        """
        named: list[str] = []
        diffs: list[DiffPart] = []
        room = _ALL_BYTES
        for root, touched in self._drained():
            if not touched.complete:
                named.append(translate("changed too many files to list"))
            changes = [(path, _ABSENT, _UNKNOWN) for path in touched.new_folders]
            changes += [(path, _UNKNOWN, _ABSENT) for path in touched.gone_folders]
            changes += self._compared(checkpoints, root, touched.files)
            for path, old, new in changes:
                named.append(_named(_name(home, root, path), old, new, translate))
                place = _place(root, path)
                if self._steers(place):
                    self.steering.append(place)
                size = len(old.text or "") + len(new.text or "")
                both = new.text is not None and (old.text is not None or old.mark is None)
                if both and size <= room and len(diffs) < _DIFFS:
                    room -= size
                    if scrub(place) != place:
                        continue  # its name contains a secret, which the list hides
                    # The diff is shown without review, so hide secrets in it.
                    before = None if old.text is None else scrub(old.text)
                    diffs.append(DiffPart(place, scrub(new.text or ""), before))
        if not named:
            return ()
        more = len(named) - _NAMED
        listed = ", ".join(named[:_NAMED])
        if more > 0:
            listed = translate("{files} and {count} more", files=listed, count=more)
        return (text_part(translate("The command {changes}.", changes=listed)), *diffs)

    def _steering_folders(self, root: Path) -> list[bytes]:
        """Return the folders for agents in a folder; checkpoints leave out ignored ones."""
        with suppress(OSError), os.scandir(root) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
            steering = [os.fsencode(one) for one in names if self._steers(f"{root}/{one}")]
            return [
                folder for one in steering for folder, _ in folders_below(root, one, most=_FOLDERS)
            ]
        return []

    def _steer(self, root: Path, path: bytes) -> bool:
        return self._steers(_place(root, path))

    def _drained(self) -> Iterator[tuple[Path, Touched]]:
        self.steering = []
        self.complete = not self._off and self._watches.keys() == self._trees.keys()
        for root, watch in tuple(self._watches.items()):
            try:
                touched = watch.drain()
            except OSError as error:
                self._give_up(error)
                self.complete = False
                return
            for folder in touched.new_folders:  # `touched.files` does not have its files
                for inner, names in folders_below(root, folder[:-1], most=_NEW_FOLDERS):
                    places = (_place(root, inner + b"/" + name) for name in names)
                    self.steering += filter(self._steers, places)
            yield root, touched
            if not touched.complete:  # the watch may lack new folders
                self._watches.pop(root).close()
                self.complete = False

    def _compared(
        self, checkpoints: FolderCheckpoints, root: Path, files: Mapping[bytes, bool]
    ) -> Iterator[tuple[bytes, _State, _State]]:
        """Yield the files that have changed, with their old and new states.

        Args:
            checkpoints: has the previous contents.
            root: the folder of the files.
            files: the files, and whether each was created, as far as known.
        """
        now = {path: _look(root, path) for path in sorted(files)}
        before: dict[bytes, bytes] = {}
        for contents in (True, False):  # large files are not read
            wanted = [
                path
                for path, new in now.items()
                if (root, path) not in self._known and contents == (new.text is not None)
            ]
            with suppress(WorkspaceError):
                tree, limit = self._trees[root], Deadline(SECONDS)
                if wanted := wanted[:_READ]:
                    before |= checkpoints.files_of(root, tree, wanted, limit, contents=contents)
        for path, new in now.items():
            old = self._known.get((root, path))
            if old is None:
                old = _of_tree(before.get(path), made=files[path])
            self._known[root, path] = new if len(self._known) < _KNOWN else _UNKNOWN
            if old.mark is None and new.mark is None:
                continue
            if old.text is None or old.text != new.text:
                yield path, old, new


def _of_tree(data: bytes | None, *, made: bool) -> _State:
    """Return the state of a file with this content in a checkpoint, which may leave it out."""
    if data is None:
        return _ABSENT if made else _UNKNOWN
    return _State((1, len(data), 0), _text(data))


def _place(root: Path, path: bytes) -> str:
    return os.fsdecode(os.path.join(os.fsencode(root), path))  # noqa: PTH118 - bytes


def _look(root: Path, path: bytes) -> _State:
    place = _place(root, path)
    try:
        found = os.lstat(place)
        data = b"\0"
        if stat.S_ISREG(found.st_mode) and found.st_size <= _DIFF_BYTES:
            descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
                data = file.read(_DIFF_BYTES + 1)
    except FileNotFoundError:
        return _ABSENT
    except OSError:
        return _UNKNOWN
    return _State((found.st_ino, found.st_size, found.st_mtime_ns), _text(data))


def _text(data: bytes) -> str | None:
    if b"\0" in data or len(data) > _DIFF_BYTES:
        return None
    with suppress(UnicodeDecodeError):
        return data.decode()
    return None


def _named(name: str, old: _State, new: _State, translate: Translator) -> str:
    if old.mark is None:
        return translate("created {file}", file=name)
    if new.mark is None:
        return translate("deleted {file}", file=name)
    return translate("changed {file}", file=name)


def _name(home: Path, root: Path, path: bytes) -> str:
    place = shown(path) if root == home else f"{root}/{shown(path)}"
    return f"`{place}`"
