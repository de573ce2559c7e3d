from __future__ import annotations

import os
from pathlib import Path

import pytest

from acp_agent.errors import OutsideWorkspaceError, ToolError
from tests.support.tool_calls import ToolUser


@pytest.fixture
def user(tmp_path: Path) -> ToolUser:
    root = tmp_path / "project"
    for name, size in {
        ".gitignore": 0,
        ".git/HEAD": 5,
        "README.md": 1_234,
        "src/a.py": 10,
        "src/deep/b.py": 20,
        "node_modules/x/index.js": 30,
        "big.bin": 2_500_000,
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
    (root / ".gitignore").write_text("node_modules/\n*.tmp\n")
    (root / "empty" / "below").mkdir(parents=True)
    return ToolUser(root.resolve())


async def test_a_folder_is_listed_with_sizes_and_numbers_of_files(user: ToolUser) -> None:
    outcome = await user.call("list")
    assert outcome.text.split("\n") == [
        "empty/ (0 files)",
        "src/ (2 files)",
        ".gitignore (20 B)",
        "README.md (1.2 KB)",
        "big.bin (2.5 MB)",
        "[1 ignored entries are left out]",
    ]


async def test_more_levels_are_shown_as_a_tree(user: ToolUser) -> None:
    outcome = await user.call("list", path="src", depth=3)
    assert outcome.text == "deep/ (1 file)\n  b.py (20 B)\na.py (10 B)"


async def test_a_symlink_is_shown_with_where_it_leads_and_not_followed(user: ToolUser) -> None:
    (user.folder / "src" / "etc").symlink_to("/etc")
    outcome = await user.call("list", path="src", depth=5)
    assert "etc -> /etc" in outcome.text
    assert "passwd" not in outcome.text


async def test_an_ignored_folder_is_listed_when_it_is_named(user: ToolUser) -> None:
    assert (await user.call("list", path="node_modules")).text == "x/ (1 file)"


async def test_strange_names_stay_on_their_line(user: ToolUser) -> None:
    (user.folder / "src" / "a\nb").write_text("")
    Path(os.fsdecode(os.fsencode(user.folder) + b"/src/caf\xe9")).write_text("")
    os.mkfifo(user.folder / "src" / "pipe")
    rows = (await user.call("list", path="src")).text.split("\n")
    assert r"a\nb (0 B)" in rows
    assert "caf\ufffd (0 B)" in rows
    assert "pipe (no file)" in rows


async def test_a_long_list_is_bounded_and_says_so(user: ToolUser) -> None:
    (user.folder / "many").mkdir()
    for n in range(600):
        (user.folder / "many" / f"{n:03}").write_text("")
    rows = (await user.call("list", path="many")).text.split("\n")
    assert rows[0] == "000 (0 B)"
    assert rows[-1] == "[more than 500 entries: list a folder further down]"
    assert len(rows) == 501


async def test_files_missing_folders_and_foreign_folders_cannot_be_listed(user: ToolUser) -> None:
    with pytest.raises(ToolError, match=r"README.md is a file; use `read`"):
        await user.call("list", path="README.md")
    with pytest.raises(ToolError, match="there is no folder absent"):
        await user.call("list", path="absent")
    with pytest.raises(OutsideWorkspaceError):
        await user.prepare("list", path="/")


async def test_an_empty_folder_is_called_empty(user: ToolUser) -> None:
    assert (await user.call("list", path="empty/below")).text == "(empty)"
