from __future__ import annotations

import json
import logging
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from acp_agent.errors import StoreError, StoreNewerError
from acp_agent.permissions.access import Grant
from acp_agent.permissions.grants import GrantStore
from acp_agent.platform.posix import try_lock


def grant(pattern: str, *, project: str = "/p", allow: bool = True) -> Grant:
    return Grant(project=project, kind="command", pattern=pattern, allow=allow)


def test_a_grant_survives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "data" / "grants.json"
    GrantStore(path).add([grant("npm test")])
    assert GrantStore(path).for_project("/p") == (grant("npm test"),)


def test_a_grant_of_one_project_does_not_apply_to_another(tmp_path: Path) -> None:
    store = GrantStore(tmp_path / "grants.json")
    store.add([grant("npm test"), grant("make test", project="/q")])
    assert store.for_project("/q") == (grant("make test", project="/q"),)
    assert store.for_project("/p/sub") == ()


def test_nobody_but_the_owner_may_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "data" / "grants.json"
    GrantStore(path).add([grant("npm test")])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_last_decision_about_a_command_applies(tmp_path: Path) -> None:
    store = GrantStore(tmp_path / "grants.json")
    store.add([grant("npm test")])
    store.add([grant("npm test", allow=False)])
    assert store.for_project("/p") == (grant("npm test", allow=False),)


def test_grants_of_another_process_apply_at_once(tmp_path: Path) -> None:
    path = tmp_path / "grants.json"
    mine, other = GrantStore(path), GrantStore(path)
    assert mine.all() == ()
    other.add([grant("npm test")])
    assert mine.all() == (grant("npm test"),)
    other.add([grant("make test")])
    mine.add([grant("cargo test")])
    assert [each.pattern for each in other.all()] == ["npm test", "make test", "cargo test"]


WRITER = """
import sys
from pathlib import Path
from acp_agent.permissions.access import Grant
from acp_agent.permissions.grants import GrantStore

store = GrantStore(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for number in range(20):
    pattern = f"{sys.argv[2]} {number}"
    store.add([Grant(project="/p", kind="command", pattern=pattern)])
"""


def test_processes_that_remember_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "grants.json"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "two")
    ]
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("go\n")
            writer.stdin.close()
        assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    finally:
        for writer in writers:
            writer.kill()
            writer.wait(timeout=60)
            if writer.stdout is not None:
                writer.stdout.close()
    patterns = {each.pattern for each in GrantStore(path).all()}
    assert patterns == {f"{name} {number}" for name in ("one", "two") for number in range(20)}


def test_threads_that_remember_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    store = GrantStore(tmp_path / "grants.json")
    threads = [
        threading.Thread(target=store.add, args=([grant(f"npm run {number}")],))
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(store.all()) == 8


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not json",
        b"[]",
        b'{"grants":[]}',
        b'{"version":1,"grants":[{}]}',
        b"\xff",
        b'{"version":1,"grants":[{"project":"\xff"}]}',
    ],
)
def test_a_damaged_file_grants_nothing_and_is_preserved(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "grants.json"
    path.write_bytes(content)
    store = GrantStore(path)
    with caplog.at_level(logging.WARNING):
        assert store.all() == ()
        assert store.all() == ()
    assert len(caplog.records) == 1
    assert str(path) in store.problem
    assert path.read_bytes() == content
    store.add([grant("npm test")])
    assert store.all() == (grant("npm test"),)
    assert store.problem == ""
    (aside,) = tmp_path.glob("grants.json.damaged-*")
    assert aside.read_bytes() == content


def test_a_file_of_a_newer_version_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "grants.json"
    content = json.dumps({"version": 5, "rules": ["x"]})
    path.write_text(content)
    store = GrantStore(path)
    assert store.all() == ()
    with pytest.raises(StoreNewerError, match="newer version"):
        store.add([grant("npm test")])
    assert path.read_text() == content
    assert [each.name for each in tmp_path.iterdir() if "damaged" in each.name] == []


def test_a_repaired_file_is_used_again(tmp_path: Path) -> None:
    path = tmp_path / "grants.json"
    GrantStore(path).add([grant("npm test")])
    good = path.read_bytes()
    path.write_bytes(b"broken")
    store = GrantStore(path)
    assert store.all() == ()
    path.write_bytes(good)
    assert store.all() == (grant("npm test"),)


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = GrantStore(tmp_path / "file" / "grants.json")
    with pytest.raises(StoreError, match="cannot remember the permission") as caught:
        store.add([grant("npm test")])
    assert "\n" not in str(caught.value)


def test_a_lock_that_is_never_released_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acp_agent.permissions.grants._LOCK_SECONDS", 0.05)
    with (tmp_path / "grants.json.lock").open("w") as placeholders:
        assert try_lock(placeholders.fileno())
        with pytest.raises(StoreError, match="too long"):
            GrantStore(tmp_path / "grants.json").add([grant("npm test")])
    assert not (tmp_path / "grants.json").exists()
