"""The store of one folder's checkpoints: its layout, lock and records.

It is a git repository without a work tree, so that any git can read it:

    config, HEAD, objects, info          as in any git repository
    refs/checkpoints/SESSION/ID          the tree of a checkpoint
    checkpoints/SESSION/ID.json          the record of a checkpoint
    index, state.json                    the state of the files at the last snapshot
    root                                 the path of the saved folder
    restoring.json                       exists during a restore: its temporary files
    unswept                              exists while objects of a deleted session may remain
    lock                                 locked while the store is in use
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from acp_agent.errors import WorkspaceError
from acp_agent.platform.decoding import decode_json
from acp_agent.platform.descriptor_limit import describe_os_error
from acp_agent.platform.nofollow import opened_folder
from acp_agent.platform.posix import try_lock
from acp_agent.workspace.checkpoints.base import Deadline, OuterRules, Snapshot, UnsavedFile

_CONFIG = """[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tignorecase = {ignorecase}
\tautocrlf = false
\tsafecrlf = false
\tsymlinks = true
\tprotectNTFS = false
\tprotectHFS = false
\tlogAllRefUpdates = false
[index]
\tversion = 2
[gc]
\tauto = 0
"""
# Takes precedence over every .gitattributes of the project (gitattributes(5)), so that git stores
# files byte for byte.
_ATTRIBUTES = "* -text -crlf -eol -filter -ident -working-tree-encoding\n"

_RETRY_SECONDS = 0.01  # seconds between attempts to take the lock
_REQUIRED_FILES = ("HEAD", "config", "objects", "refs", "info/attributes", "checkpoints", "root")
_TEMPORARY_PREFIX = "passing-"  # prefix of temporary folders


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of a checkpoint. Paths and ignore rules are in hex, since they may be any bytes.

    Older records have no ignore rules.
    """

    tree: str
    at: float  # seconds since 1970
    left_out: tuple[tuple[str, str], ...] = ()
    private: tuple[str, ...] = ()
    below: str = ""
    outer: tuple[tuple[str, str], ...] = ()

    def snapshot(self) -> Snapshot:
        """Return the snapshot that was saved."""
        return Snapshot(
            tree=self.tree,
            unsaved=tuple(
                UnsavedFile(bytes.fromhex(path), reason)  # type: ignore[arg-type]  # written by `save`
                for path, reason in self.left_out
            ),
            private=frozenset(map(bytes.fromhex, self.private)),
            outer=OuterRules(
                below=bytes.fromhex(self.below),
                files=tuple(
                    (bytes.fromhex(folder), bytes.fromhex(text)) for folder, text in self.outer
                ),
            ),
        )


class CheckpointStore:
    """The checkpoints of one folder.

    Args:
        root: the session's folder, resolved.
    """

    def __init__(self, folder: Path, root: Path) -> None:
        name = hashlib.sha256(os.fsencode(root)).hexdigest()[:32]
        self.root = root
        self.path = folder / f"{name}.git"
        self.data = folder.parent
        self.lock: tuple[int, ...] = ()  # the descriptor of the lock, while it is held

    @property
    def index(self) -> Path:
        """The git index, with the files of the last snapshot."""
        return self.path / "index"

    @property
    def needs_sweep(self) -> Path:
        """A file that exists while objects of a deleted session may remain."""
        return self.path / "unswept"

    @contextmanager
    def locked(self, deadline: Deadline) -> Iterator[None]:
        """Lock the store across processes; create it if it is missing.

        Raises:
            CheckpointTooSlowError: others held the lock for too long.
            WorkspaceError: the data folder cannot be written, or the disk failed.
        """
        descriptor = self._lock(deadline)
        self.lock = (descriptor,)
        try:
            self._clean_up()
            yield
        except OSError as error:
            raise self._os_error(error) from None
        finally:
            self.lock = ()
            os.close(descriptor)

    def _lock(self, deadline: Deadline) -> int:
        while True:
            descriptor = None
            try:
                if not self.path.exists():
                    self._create()
                descriptor = os.open(self.path / "lock", os.O_CREAT | os.O_RDWR, 0o600)
                while not try_lock(descriptor):
                    deadline.sleep(_RETRY_SECONDS)
                # The previous holder may have removed the whole store because it was empty.
                if os.path.samestat(os.fstat(descriptor), (self.path / "lock").stat()):
                    self._repair()
                    locked_descriptor, descriptor = descriptor, None
                    return locked_descriptor
            except FileNotFoundError:
                deadline.check()
            except OSError as error:
                raise self._os_error(error) from None
            finally:
                if descriptor is not None:
                    os.close(descriptor)

    def _os_error(self, error: OSError) -> WorkspaceError:
        name = error.filename if isinstance(error.filename, str | bytes) else ""
        path = Path(os.fsdecode(name))
        is_in_store = path.is_relative_to(self.path) or not path.is_relative_to(self.root)
        folder = self.path if is_in_store else self.root
        return WorkspaceError(f"{folder}: {describe_os_error(error)}; check the folder")

    def _create(self) -> None:
        """Create the store atomically: it has no lock yet, and others may be creating it too."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _temporary_folder(self.path.parent) as folder:
            new_store = folder / self.path.name
            self._fill(new_store)
            try:
                new_store.rename(self.path)
            except OSError:
                if not self.path.exists():  # otherwise another process has created it
                    raise

    def _repair(self) -> None:
        """Repair a store that was created or removed only in part."""
        if all((self.path / name).exists() for name in _REQUIRED_FILES):
            return
        # They may refer to missing objects.
        for stale_file in (self.index, self.path / "state.json"):
            stale_file.unlink(missing_ok=True)
        self._fill(self.path)

    def _fill(self, path: Path) -> None:
        for name in ("objects/info", "objects/pack", "refs", "info", "checkpoints"):
            (path / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        path.chmod(0o700)
        temporary = path / "writing"
        _write(path / "root", os.fsencode(self.root), temporary)
        _write(path / "info" / "attributes", _ATTRIBUTES.encode(), temporary)
        # Check whether the file system ignores case.
        ignorecase = "true" if (path / "ROOT").exists() else "false"
        _write(path / "config", _CONFIG.format(ignorecase=ignorecase).encode(), temporary)
        _write(path / "HEAD", b"ref: refs/heads/none\n", temporary)

    def remove(self) -> None:
        """Remove the store, which must be locked.

        It is renamed first, so that no process uses a part of it.
        """
        with contextlib.suppress(OSError), _temporary_folder(self.path.parent) as folder:
            self.path.rename(folder / self.path.name)

    def _clean_up(self) -> None:
        """Remove temporary files of a killed process. The store must be locked."""
        for lock_file in self.path.glob("index*.lock"):
            lock_file.unlink(missing_ok=True)
        state = self.path / "restoring.json"
        if state.exists():
            with contextlib.suppress(OSError, msgspec.DecodeError, ValueError):
                for hex_path in msgspec.json.decode(state.read_bytes(), type=list[str]):
                    parent, name = os.path.split(bytes.fromhex(hex_path))
                    with contextlib.suppress(OSError), opened_folder(parent) as folder:
                        os.unlink(name, dir_fd=folder)
            state.unlink(missing_ok=True)

    def record_temporary_files(self, temporary: list[bytes]) -> None:
        """Record the temporary files of a restore, so that they are removed if it is killed."""
        state = self.path / "restoring.json"
        if temporary:
            self.write(state, msgspec.json.encode([path.hex() for path in temporary]))
        else:
            state.unlink(missing_ok=True)

    def write(self, path: Path, data: bytes) -> None:
        """Write a file of the store atomically."""
        _write(path, data, self.path / "writing")  # not in refs, which git reads

    # -- records -----------------------------------------------------------------------------

    def save(self, session: str, checkpoint: str, snapshot: Snapshot) -> None:
        """Save a snapshot as a checkpoint of a session."""
        record = Record(
            tree=snapshot.tree,
            at=time.time(),
            left_out=tuple((file.path.hex(), file.reason) for file in snapshot.unsaved),
            private=tuple(sorted(path.hex() for path in snapshot.private)),
            below=snapshot.outer.below.hex(),
            outer=tuple((folder.hex(), text.hex()) for folder, text in snapshot.outer.files),
        )
        self._write_record(session, checkpoint, record)

    def _write_record(self, session: str, checkpoint: str, record: Record) -> None:
        # The record comes first: `find` needs both, and the reference completes the checkpoint.
        self.write(self._record(session, checkpoint), msgspec.json.encode(record))
        self.write(self._reference(session, checkpoint), f"{record.tree}\n".encode())

    def find(self, session: str, checkpoint: str) -> Snapshot | None:
        """Return the snapshot of a checkpoint, or None if it no longer exists."""
        try:
            text = self._record(session, checkpoint).read_bytes()
            self._reference(session, checkpoint).stat()
            return decode_json(text, Record).snapshot()
        except (OSError, msgspec.DecodeError, ValueError):
            return None

    def records(self) -> list[tuple[float, str, str]]:
        """Return the time, session and id of each checkpoint, oldest first."""
        result = []
        for file in self.path.glob("checkpoints/*/*.json"):
            with contextlib.suppress(OSError):
                result.append((file.stat().st_mtime, file.parent.name, file.stem))
        return sorted(result)

    def sessions(self) -> set[str]:
        """Return the sessions that have checkpoints."""
        return {folder.name for folder in self.path.glob("checkpoints/*") if folder.is_dir()}

    def copy(self, source: str, target: str) -> None:
        """Copy the checkpoints of a session to another session."""
        for file in self.path.glob(f"checkpoints/{source}/*.json"):
            with contextlib.suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
                record = decode_json(file.read_bytes(), Record)
                self._write_record(target, file.stem, record)

    def drop(self, session: str, checkpoint: str) -> None:
        """Remove a checkpoint."""
        self._reference(session, checkpoint).unlink(missing_ok=True)
        self._record(session, checkpoint).unlink(missing_ok=True)

    def drop_session(self, session: str) -> None:
        """Remove the checkpoints of a session."""
        for folder in ("refs/checkpoints", "checkpoints"):
            shutil.rmtree(self.path / folder / session, ignore_errors=True)

    def _record(self, session: str, checkpoint: str) -> Path:
        return self.path / "checkpoints" / session / f"{checkpoint}.json"

    def _reference(self, session: str, checkpoint: str) -> Path:
        return self.path / "refs" / "checkpoints" / session / checkpoint


def all_stores(folder: Path) -> list[CheckpointStore]:
    """Return the stores of all folders."""
    stores = []
    for path in sorted(folder.glob("*.git")):
        with contextlib.suppress(OSError):
            stores.append(CheckpointStore(folder, Path(os.fsdecode((path / "root").read_bytes()))))
    return stores


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary folders of killed processes, but not those in use."""
    for path in folder.glob(f"{_TEMPORARY_PREFIX}*"):
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                if try_lock(descriptor):
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(descriptor)


@contextmanager
def _temporary_folder(folder: Path) -> Iterator[Path]:
    """Create a locked temporary folder, which is removed at the end with its content.

    Raises:
        FileNotFoundError: another process removed it as a leftover before it was locked.
    """
    with tempfile.TemporaryDirectory(
        dir=folder, prefix=_TEMPORARY_PREFIX, ignore_cleanup_errors=True
    ) as name:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if not try_lock(descriptor):
                raise FileNotFoundError(name)
            yield Path(name)
        finally:
            os.close(descriptor)


def _write(path: Path, data: bytes, temporary: Path) -> None:
    """Write a file atomically, readable only by its owner."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    temporary.replace(path)
