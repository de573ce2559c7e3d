"""The journal of a run. It records finished steps, so that a crash loses none of them.

Each run has one file with one JSON object per line. A line is on disk before its content is
shown. The file is locked during the run, so that no other process continues it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct, field

from acp_agent.errors import ConfigError, StoreError
from acp_agent.extensions.workflows.types import Status
from acp_agent.platform.decoding import json_decoder
from acp_agent.platform.posix import make_private_folder, try_lock

_SUFFIX = ".jsonl"
_MAX_RUNS = 200  # runs that are stored
_MAX_BYTES = 200_000_000  # bytes; larger journals are not read


class _Record(Struct, frozen=True, kw_only=True, tag_field="event", omit_defaults=True):
    at: int = field(default_factory=lambda: time.time_ns() // 1_000_000)  # ms since 1970 (UTC)


class RunStarted(_Record, frozen=True, kw_only=True, tag="run_started"):
    """A run started, or was resumed (`resumed`).

    Attributes:
        named: the name it was found by; "" if the user gave the path.
        digest: SHA-256 of the file's content.
        trigger: what started it: `manual`, `files` or `schedule`.
    """

    run: str
    file: str
    digest: str
    cwd: str
    named: str = ""
    inputs: dict[str, str] = {}
    model: str | None = None
    agent: str | None = None
    mode: str | None = None
    trigger: str = "manual"
    changed: list[str] = []
    resumed: bool = False


class SessionOpened(_Record, frozen=True, kw_only=True, tag="session_opened"):
    """A session was created for a step; `step` is "" for the one that steps share.

    `settings` are the initial values of its options.
    """

    session: str
    step: str = ""
    settings: dict[str, str] = {}


class StepStarted(_Record, frozen=True, kw_only=True, tag="step_started"):
    """An attempt started; `before` is the number of earlier prompts in the session."""

    step: str
    session: str
    before: int
    attempt: int = 1


class StepEnded(_Record, frozen=True, kw_only=True, tag="step_ended"):
    """A step ended; `done` means that it never runs again."""

    step: str
    status: Status
    done: bool
    output: str = ""
    error: str = ""


class RunEnded(_Record, frozen=True, kw_only=True, tag="run_ended"):
    """A run ended with an exit status; it cannot be continued after 0."""

    status: int


Record: TypeAlias = RunStarted | SessionOpened | StepStarted | StepEnded | RunEnded


class RunRecord(Struct, kw_only=True):
    """The content of a run's journal."""

    started: RunStarted
    last: RunStarted
    sessions: dict[str, SessionOpened] = {}  # by step
    open_steps: dict[str, StepStarted] = {}
    prompts: dict[str, int] = {}  # of each session
    steps: dict[str, StepEnded] = {}
    status: int | None = None

    def add(self, record: Record) -> None:
        """Apply a record."""
        match record:
            case RunStarted():
                self.last, self.status = record, None
            case SessionOpened():
                self.sessions[record.step] = record
            case StepStarted():
                self.open_steps[record.step] = record
            case StepEnded():
                self.open_steps.pop(record.step, None)
                self.steps[record.step] = record
            case RunEnded():
                self.status = record.status


class RunJournal:
    """The open journal of a run. Open it with `create` or `reopen`, and close it with `close`.

    Attributes:
        record: its content so far.
    """

    def __init__(self, descriptor: int, record: RunRecord) -> None:
        self.record = record
        self._descriptor = descriptor

    @classmethod
    def create(cls, folder: Path, started: RunStarted) -> RunJournal:
        """Create the journal of a new run. Raises StoreError if it cannot be written."""
        try:
            make_private_folder(folder)
            _remove_oldest(folder)
            path = folder / f"{started.run}{_SUFFIX}"
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
            descriptor = os.open(path, flags, 0o600)
        except OSError as error:
            raise _journal_error(folder, error) from error
        try_lock(descriptor)
        journal = cls(descriptor, RunRecord(started=started, last=started))
        journal.write(started)
        _sync_folder(folder)
        return journal

    @classmethod
    def reopen(cls, path: Path) -> RunJournal:
        """Open the journal of a run to continue it. Raises ConfigError, StoreError."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise _journal_error(path, error) from error
        try:
            _lock(descriptor, path)
            record, size = _read(path)
            os.ftruncate(descriptor, size)  # removes a line that a crash cut off
        except BaseException:
            os.close(descriptor)
            raise
        return cls(descriptor, record)

    def write(self, record: Record) -> None:
        """Append a record and sync it to disk. Blocks for a moment. Raises StoreError."""
        line = msgspec.json.encode(record) + b"\n"
        try:
            while line:
                line = line[os.write(self._descriptor, line) :]
            os.fsync(self._descriptor)
        except OSError as error:
            raise StoreError(
                f"cannot write the run's journal: {error.strerror}; check the disk"
            ) from error
        self.record.add(record)

    def close(self) -> None:
        """Close and unlock the file."""
        os.close(self._descriptor)


def read_runs(folder: Path) -> Sequence[RunRecord]:
    """Return the runs with readable journals, the latest first. Blocks."""
    runs = []
    for path in _journals(folder):
        try:
            runs.append(_read(path)[0])
        except (ConfigError, StoreError):
            continue
    return runs


def journal_path(folder: Path, run: str) -> Path:
    """Return the path of a run's journal."""
    return folder / f"{run}{_SUFFIX}"


def is_running(folder: Path, run: str) -> bool:
    """Return whether a process works on a run."""
    try:
        descriptor = os.open(journal_path(folder, run), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not try_lock(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path) -> None:
    if not try_lock(descriptor):
        raise StoreError(f"the run {path.stem} goes on in another process; wait until it has ended")


_decoder: msgspec.json.Decoder[Record] = json_decoder(Record)


def _read(path: Path) -> tuple[RunRecord, int]:
    """Return the content of a journal and the size of its complete lines."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise _journal_error(path, error) from error
    if len(content) > _MAX_BYTES:
        raise ConfigError(f"{path}: the journal is too large to be read; start the run again")
    complete_lines = content[: content.rfind(b"\n") + 1]
    record: RunRecord | None = None
    for number, line in enumerate(complete_lines.splitlines(), 1):
        try:
            entry = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise ConfigError(
                f"{path}: line {number} is damaged, so the run cannot be continued; start it again"
            ) from None
        if record is None and isinstance(entry, RunStarted):
            record = RunRecord(started=entry, last=entry)
        elif record is None:
            break
        else:
            record.add(entry)
    if record is None:
        raise ConfigError(f"{path}: the journal has no beginning; start the run again")
    return record, len(complete_lines)


def _journals(folder: Path) -> Sequence[Path]:
    """Return the journals, newest first: their names begin with the time."""
    try:
        return sorted(folder.glob(f"flow_*{_SUFFIX}"), reverse=True)
    except OSError:
        return ()


def _remove_oldest(folder: Path) -> None:
    for path in _journals(folder)[_MAX_RUNS - 1 :]:
        if not is_running(folder, path.stem):
            path.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _journal_error(path: Path, error: OSError) -> StoreError:
    return StoreError(f"{path} cannot be used: {error.strerror}; check who may write there")
