"""One call may name several files: they are read in order, and edited all or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.errors import ToolError
from acp_agent.permissions.access import ReadAccess, WriteAccess
from tests.support.tool_calls import ToolUser


@pytest.fixture
def user(tmp_path: Path) -> ToolUser:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.py").write_text("x = 1\n")
    (project / "b.py").write_text("y = 2\n")
    return ToolUser(project)


async def test_each_file_is_read_in_order_and_a_missing_one_says_so(user: ToolUser) -> None:
    outcome = await user.call("read", paths=["b.py", "no.py", "a.py"])
    assert outcome.text == (
        "b.py:\n1\ty = 2\n\n"
        "no.py:\nError: no such file: no.py; did you mean b.py or a.py?\n\n"
        "a.py:\n1\tx = 1\n"
    )
    assert not outcome.failed


async def test_the_gate_judges_every_file_of_the_call(user: ToolUser) -> None:
    prepared = await user.prepare("read", paths=["a.py", "b.py"])
    assert isinstance(prepared.access, ReadAccess)
    assert [Path(path).name for path in prepared.access.paths] == ["a.py", "b.py"]
    assert prepared.access.requested_names == ("a.py", "b.py")
    assert prepared.title == "Read a.py and 1 more"


async def test_a_call_whose_files_are_all_missing_fails(user: ToolUser) -> None:
    outcome = await user.call("read", paths=["no.py", "none.py"])
    assert outcome.failed


async def test_a_full_result_names_the_files_that_are_left(user: ToolUser) -> None:
    for name in ("big.txt", "big2.txt"):
        (user.folder / name).write_text("some words in a line\n" * 1_900)
    outcome = await user.call("read", paths=["big.txt", "big2.txt", "a.py", "b.py"])
    assert "[the result is full; make another call for: a.py, b.py]" in outcome.text
    assert "x = 1" not in outcome.text


async def test_a_call_for_too_many_files_is_refused(user: ToolUser) -> None:
    with pytest.raises(ToolError, match="names 51 files"):
        await user.prepare("read", paths=[f"{number}.py" for number in range(51)])


async def test_several_files_are_edited_in_one_call(user: ToolUser) -> None:
    edits = [{"path": "a.py", "old": "1", "new": "3"}, {"path": "b.py", "old": "2", "new": "4"}]
    prepared = await user.prepare("edit", edits=edits)
    assert isinstance(prepared.access, WriteAccess)
    assert [Path(path).name for path in prepared.access.paths] == ["a.py", "b.py"]
    await user.call("edit", edits=edits)
    texts = [(user.folder / name).read_text() for name in ("a.py", "b.py")]
    assert texts == ["x = 3\n", "y = 4\n"]


async def test_no_file_changes_if_one_edit_cannot_be_made(user: ToolUser) -> None:
    edits = [{"path": "a.py", "old": "1", "new": "3"}, {"path": "b.py", "old": "z", "new": "4"}]
    with pytest.raises(ToolError, match="no file was changed"):
        await user.call("edit", edits=edits)
    assert (user.folder / "a.py").read_text() == "x = 1\n"


async def test_two_names_of_one_file_are_refused(user: ToolUser) -> None:
    edits = [{"path": "a.py", "old": "1", "new": "3"}, {"path": "./a.py", "old": "x", "new": "4"}]
    with pytest.raises(ToolError, match="two paths name one file"):
        await user.call("edit", edits=edits)


async def test_a_line_number_decides_between_two_places(user: ToolUser) -> None:
    (user.folder / "a.py").write_text("x = 1\ny = 1\nx = 1\n")
    await user.call("edit", path="a.py", old="x = 1\n", new="x = 2\n", start_line=3)
    assert (user.folder / "a.py").read_text() == "x = 1\ny = 1\nx = 2\n"
    (user.folder / "a.py").write_text("x = 1\ny = 1\nx = 1\n")
    with pytest.raises(ToolError, match="2 times"):
        await user.call("edit", path="a.py", old="x = 1\n", new="x = 2\n", start_line=2)
