"""What the system refuses is told with what helps, which is not always a folder's permissions."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path

import pytest

from acp_agent.config.localization import translator_for
from acp_agent.errors import StoreError
from acp_agent.ids import SessionId
from acp_agent.session.store.database import open_database
from acp_agent.session.store.lease import Lease, take_lease
from acp_agent.session.store.sqlite_errors import describe_system_error


def test_too_many_open_sessions_are_reported_as_such(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    next_free = os.dup(0)
    os.close(next_free)
    leases: list[Lease] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_free + 8, before[1]))
    try:
        with pytest.raises(StoreError) as locked:
            leases.extend(take_lease(tmp_path, SessionId(f"s{number}")) for number in range(99))
        with pytest.raises(StoreError) as opened:
            open_database(tmp_path / "journal.db")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for lease in leases:
            lease.release()
    for caught in (locked, opened):
        assert "close sessions, or raise the limit of open files (ulimit -n)" in str(caught.value)
        assert "permissions" not in str(caught.value)
        assert "请关闭会话" in translator_for("zh").rendered(str(caught.value))


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENFILE, "close programs, or raise the system's limit of open files"),
        (errno.ENOSPC, "free some space and try again"),
        (errno.EDQUOT, "free some space and try again"),
        (errno.EROFS, "set ACP_AGENT_HOME to a folder that can be written"),
        (errno.EACCES, "check the folder and its permissions"),
    ],
)
def test_each_of_the_systems_reasons_has_its_own_remedy(number: int, remedy: str) -> None:
    said = os.strerror(number)
    assert describe_system_error(OSError(number, said)) == f"{said}; {remedy}"
