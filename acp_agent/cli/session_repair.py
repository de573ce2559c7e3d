"""`acp-agent sessions check|repair`: report and repair damage to the journal."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import shutil
import sqlite3
import tempfile
import time
from pathlib import Path

from acp_agent.cli.doctor_checks import check_store
from acp_agent.cli.localization import translate
from acp_agent.cli.output import FAILED, say, say_json
from acp_agent.config.paths import find_paths
from acp_agent.errors import (
    InvalidInputError,
    SessionBusyError,
    StoreDamagedError,
    StoreError,
    StoreNewerError,
)
from acp_agent.session.store.database import has_log, is_foreign_database, is_missing, open_database
from acp_agent.session.store.database_recovery import RecoveredSessions, recover_sessions
from acp_agent.session.store.lease import any_lease_held
from acp_agent.session.store.sqlite_errors import store_error
from acp_agent.session.store.store import Store

_SIDE_SUFFIXES = ("-wal", "-shm")  # suffixes of SQLite's files next to a database


def check(options: argparse.Namespace) -> int:
    """Report damage, as `acp-agent doctor` does; return 1 if there is any."""
    findings = asyncio.run(check_store(find_paths(os.environ)))
    if options.json:
        say_json(
            [
                {"state": result.state, "what": result.text, "remedy": result.remedy}
                for result in findings
            ]
        )
    else:
        for finding in findings:
            say(finding.text)
            if finding.remedy:
                say(f"  -> {finding.remedy}")
    return FAILED if any(result.state in {"broken", "missing"} for result in findings) else 0


def repair(options: argparse.Namespace) -> int:
    """Rename a damaged journal and create a new one with its readable contents.

    If a file is given, recover from it what the journal lacks.
    """
    file = Path(os.path.realpath(find_paths(os.environ).sessions_file))
    source: Path | None = options.file
    if source is not None and not (file.exists() and source.exists() and source.samefile(file)):
        _report_recovery(_recover(source, file), source)
        return 0
    missing = is_missing(file) and has_log(file, "-wal")
    if not missing and not file.exists():
        say(
            translate(
                "There are no sessions yet; start one with `acp-agent chat` or in your editor."
            )
        )
        return 0
    if not missing and asyncio.run(_is_sound(file)):
        say(translate("{file} is intact; nothing to repair", file=file))
        return 0
    if any_lease_held(file.parent / "locks"):
        raise SessionBusyError(
            "the journal cannot be repaired while a session is open; end the agents that run, and "
            "the editors with them"
        )
    new_file = file.with_name(f"{file.name}.repaired-{os.getpid()}")
    try:
        recovered = _recover(file, new_file)
        if not recovered.sessions and is_foreign_database(file):
            asyncio.run(Store.open(file))  # raises an error that says what it is
        renamed = _rename_damaged(file)
        new_file.rename(file)
    finally:
        for suffix in ("", *_SIDE_SUFFIXES):
            new_file.with_name(new_file.name + suffix).unlink(missing_ok=True)
    _report_recovery(recovered, file)
    if missing:
        say(translate("The log is saved as {file}.", file=f"{renamed}-wal"))
    else:
        say(translate("The damaged journal is saved as {file}.", file=renamed))
    return 0


async def _is_sound(file: Path) -> bool:
    """Return whether a repair would recover nothing.

    Checks a copy, because opening a database may delete a log that seems useless.

    Raises:
        StoreNewerError: a newer version of the program wrote it.
        InvalidInputError: it cannot be read, or there is no room for a copy.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="check-", dir=file.parent) as folder:
            copy = Path(folder, file.name)
            for suffix in ("", "-wal"):
                with contextlib.suppress(FileNotFoundError):
                    shutil.copyfile(f"{file}{suffix}", f"{copy}{suffix}")
            store = await Store.open(copy)
            try:
                return not await store.check() and not (await store.check_sessions()).strays
            finally:
                await store.close()
    except StoreNewerError:
        await Store.open(file)  # raises the same error with the original file name
        raise
    except StoreDamagedError:
        return False
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidInputError(f"cannot read {file} ({reason})", field="file") from None


def _recover(damaged: Path, into: Path) -> RecoveredSessions:
    """Copy readable sessions from one file to another, which is created if missing.

    Raises:
        InvalidInputError: the first cannot be read.
        StoreError: the second cannot be written; it is unchanged.
    """
    database = open_database(into)
    try:
        return recover_sessions(damaged, database.connection)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidInputError(f"cannot read {damaged} ({reason})", field="file") from None
    except sqlite3.Error as error:
        raise store_error(error, into) from error
    finally:
        with contextlib.suppress(sqlite3.Error):
            database.connection.close()


def _rename_damaged(file: Path) -> Path:
    """Rename a journal and its log to an unused name; return the new path. Raises StoreError."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    renamed = file.with_name(f"{file.name}.damaged-{stamp}")
    number = 1
    while any(
        renamed.with_name(renamed.name + suffix).exists() for suffix in ("", *_SIDE_SUFFIXES)
    ):
        number += 1
        renamed = file.with_name(f"{file.name}.damaged-{stamp}-{number}")
    try:
        for suffix in ("", *_SIDE_SUFFIXES):
            with contextlib.suppress(FileNotFoundError):
                file.with_name(file.name + suffix).rename(renamed.with_name(renamed.name + suffix))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StoreError(
            f"the journal {file} cannot be opened: {reason}; check the folder and its permissions"
        ) from error
    return renamed


def _report_recovery(recovered: RecoveredSessions, file: Path) -> None:
    say(
        translate(
            "Recovered {sessions} sessions with {events} events from {file}.",
            sessions=recovered.sessions,
            events=recovered.events,
            file=file,
        )
    )
    if recovered.existing:
        say(translate("{count} sessions already existed.", count=recovered.existing))
