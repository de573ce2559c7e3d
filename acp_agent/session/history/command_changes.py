"""What a command changed in the session's folders, shown with its call.

The folders of the checkpoint are watched (inotify), so that the time it takes does not depend on
how many files there are. Where the system has nothing like it, nothing is shown.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from acp_agent.config.localization import Translator
from acp_agent.content import CallContent, DiffPart, text_part
from acp_agent.errors import WorkspaceError
from acp_agent.workspace.checkpoints.base import Deadline, shown
from acp_agent.workspace.checkpoints.folder_watch import FolderWatch, Touched
from acp_agent.workspace.checkpoints.folders import FolderCheckpoints
from acp_agent.workspace.scrub import scrub

SECONDS = 2.0  # for the contents from before
_NAMED = 20  # files that are named
_DIFFS = 10  # of them with their lines
_DIFF_BYTES = 40_000  # of a file whose lines are shown
_ALL_BYTES = 100_000  # of all of them
_READ = 40  # files whose content from before is read
_KNOWN = 400  # files whose content is kept in memory

_log = logging.getLogger(__name__)


class _State(Struct, frozen=True):
    """A file as it is: `mark` tells it from others, None where there is none.

    `text` is set where it is short and text.
    """

    mark: tuple[int, int, int] | None
    text: str | None = None


_ABSENT = _State(None)
_UNKNOWN = _State((0, 0, 0))


class CommandChanges:
    """Finds out what commands change. Everything blocks on the disk: call it in a thread.

    Attributes:
        changed: the files that the last command made, changed or deleted, absolute.
    """

    def __init__(self) -> None:
        self._watches: dict[Path, FolderWatch] = {}
        self._trees: dict[Path, str] = {}
        self._known: dict[tuple[Path, bytes], _State] = {}  # what changed since the trees
        self._off = False
        self.changed: tuple[str, ...] = ()

    def saved(
        self, checkpoints: FolderCheckpoints, trees: Mapping[Path, str], deadline: Deadline
    ) -> None:
        """Take the trees of a checkpoint that was made now for the state before a command."""
        self._trees, self._known = dict(trees), {}
        if self._off:
            return
        try:
            for root in self._watches.keys() - trees.keys():
                self._watches.pop(root).close()
            for root in trees.keys() - self._watches.keys():
                folders = checkpoints.folders(root, trees[root], deadline)
                self._watches[root] = FolderWatch(os.fsencode(root), folders)
        except (OSError, WorkspaceError) as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        _log.info("what commands change is not shown: %s", error)
        self._off = True
        self.close()

    def close(self) -> None:
        """Watch nothing any more."""
        for watch in self._watches.values():
            watch.close()
        self._watches.clear()

    def before(self) -> None:
        """Set aside what others changed before a command begins."""
        for root, touched in self._drained():
            for path in touched.files:
                state = _look(root, path) if len(self._known) < _KNOWN else _UNKNOWN
                self._known[root, path] = state

    def after(
        self, checkpoints: FolderCheckpoints, home: Path, translate: Translator
    ) -> tuple[CallContent, ...]:
        """Return what shows the files that were changed since `before`.

        Args:
            checkpoints: has the contents from before.
            home: the folder that names are relative to.
            translate: into the user's language.
        """
        named: list[str] = []
        diffs: list[DiffPart] = []
        room = _ALL_BYTES
        changed: list[str] = []
        for root, touched in self._drained():
            if not touched.complete:
                named.append(translate("changed more files than can be listed"))
            changes = [(path, _ABSENT, _UNKNOWN) for path in touched.new_folders]
            changes += [(path, _UNKNOWN, _ABSENT) for path in touched.gone_folders]
            changes += self._compared(checkpoints, root, touched)
            for path, old, new in changes:
                named.append(_named(_name(home, root, path), old, new, translate))
                place = os.fsdecode(os.path.join(os.fsencode(root), path))  # noqa: PTH118 - bytes
                changed.append(place)
                size = len(old.text or "") + len(new.text or "")
                both = new.text is not None and (old.text is not None or old.mark is None)
                if both and size <= room and len(diffs) < _DIFFS:
                    room -= size
                    if scrub(place) != place:
                        continue  # its name is a key, and hidden where the files are listed
                    # Nobody reviews it before it is there, so that keys are hidden in it.
                    before = None if old.text is None else scrub(old.text)
                    diffs.append(DiffPart(place, scrub(new.text or ""), before))
        self.changed = tuple(changed)
        if not named:
            return ()
        more = len(named) - _NAMED
        listed = ", ".join(named[:_NAMED])
        if more > 0:
            listed = translate("{files} and {count} more", files=listed, count=more)
        return (text_part(translate("The command {changes}.", changes=listed)), *diffs)

    def _drained(self) -> Iterator[tuple[Path, Touched]]:
        for root, watch in tuple(self._watches.items()):
            try:
                touched = watch.drain()
            except OSError as error:
                self._give_up(error)
                return
            yield root, touched
            if not touched.complete:  # new folders may be missing
                self._watches.pop(root).close()

    def _compared(
        self, checkpoints: FolderCheckpoints, root: Path, touched: Touched
    ) -> Iterator[tuple[bytes, _State, _State]]:
        """Yield the files that are not as they were, with both states."""
        now = {path: _look(root, path) for path in sorted(touched.files)}
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
                old = _of_tree(before.get(path), made=touched.files[path])
            self._known[root, path] = new if len(self._known) < _KNOWN else _UNKNOWN
            if old.mark is None and new.mark is None:
                continue
            if old.text is None or old.text != new.text:
                yield path, old, new


def _of_tree(data: bytes | None, *, made: bool) -> _State:
    """Return the state of a file by its content in a checkpoint, which leaves some files out."""
    if data is None:
        return _ABSENT if made else _UNKNOWN
    return _State((1, len(data), 0), _text(data))


def _look(root: Path, path: bytes) -> _State:
    place = os.path.join(os.fsencode(root), path)  # noqa: PTH118 - bytes
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
