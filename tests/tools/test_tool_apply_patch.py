"""A patch changes all the files that it names, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.content import DiffPart
from acp_agent.errors import ToolError, WorkspaceError
from acp_agent.permissions.access import WriteAccess
from acp_agent.workspace.checkpoints.base import DELETED
from tests.support.tool_calls import RecordedProgress, ToolUser

PATCH = """*** Begin Patch
*** Update File: a.txt
@@
 one
-two
+2
*** Update File: src/b.py
@@ def g():
-    return 1
+    return 2
*** Add File: new/c.txt
+hello
*** End Patch
"""


@pytest.fixture
def user(tmp_path: Path) -> ToolUser:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    (project / "src" / "b.py").write_text("def f():\n    return 1\n\n\ndef g():\n    return 1\n")
    return ToolUser(project)


async def test_all_files_of_a_patch_are_confirmed_and_written_in_one_call(user: ToolUser) -> None:
    prepared = await user.prepare("apply_patch", input=PATCH)
    assert isinstance(prepared.access, WriteAccess)
    assert [Path(path).name for path in prepared.access.paths] == ["a.txt", "b.py", "c.txt"]
    assert len(prepared.content) == 3
    assert prepared.title == "Edit a.txt and 2 more files"
    outcome = await prepared.run(RecordedProgress())
    assert (user.folder / "a.txt").read_bytes() == b"one\r\n2\r\nthree\r\n"
    code = (user.folder / "src" / "b.py").read_text()
    assert code == "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
    assert (user.folder / "new" / "c.txt").read_text() == "hello\n"
    assert len(outcome.wrote) == 3


async def test_nothing_is_written_if_one_of_the_files_changed_meanwhile(user: ToolUser) -> None:
    prepared = await user.prepare("apply_patch", input=PATCH)
    (user.folder / "src" / "b.py").write_text("def g():\n    return 7\n")
    with pytest.raises(ToolError, match=r"src/b\.py changed while this was prepared"):
        await prepared.run(RecordedProgress())
    assert b"two" in (user.folder / "a.txt").read_bytes()
    assert not (user.folder / "new").exists()


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ("*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+2\n", "cut off"),
        ("*** Begin Patch\n*** Update File: ../a.txt\n@@\n-two\n+2\n*** End Patch", "outside"),
        ("*** Begin Patch\n*** Update File: a.txt\n@@\n-wo\n+2\n*** End Patch", "no line 'wo'"),
        ("*** Begin Patch\n*** Update File: a.txt\n@@\n+2\n*** End Patch", "only adds"),
        ("*** Begin Patch\n*** Update File: a.txt\n@@ four\n-two\n+2\n*** End Patch", "four"),
        ("*** Begin Patch\n*** Add File: a.txt\n+2\n*** End Patch", "exists already"),
        ("*** Begin Patch\n*** Delete File: b.txt\n*** End Patch", "no such file"),
        (
            "*** Begin Patch\n*** Update File: a.txt\n*** Move to: src/b.py\n*** End Patch",
            "exists already",
        ),
        ("*** Begin Patch\n@@\n-two\n+2\n*** End Patch", "which file"),
        ("*** Begin Patch\n*** Add File: c.py\n+# ... rest unchanged ...\n*** End Patch", "rest"),
    ],
)
async def test_a_patch_that_cannot_be_applied_is_refused_with_the_reason(
    user: ToolUser, patch: str, why: str
) -> None:
    before = (user.folder / "a.txt").read_bytes()
    with pytest.raises((ToolError, WorkspaceError), match=why):
        await (await user.prepare("apply_patch", input=patch)).run(RecordedProgress())
    assert (user.folder / "a.txt").read_bytes() == before


def test_no_model_is_offered_it_and_it_needs_both_tools_that_it_replaces(user: ToolUser) -> None:
    assert "apply_patch" not in [spec.name for spec in user.tools.specs()]
    both = user.tools.filtered({"edit", "write"}.__contains__)
    assert both.get("apply_patch").name == "apply_patch"
    with pytest.raises(ToolError, match="no tool 'apply_patch'"):
        user.tools.filtered({"edit", "read"}.__contains__).get("apply_patch")


async def test_a_file_is_deleted_once_the_user_has_seen_its_text(user: ToolUser) -> None:
    patch = "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch"
    prepared = await user.prepare("apply_patch", input=patch)
    assert isinstance(prepared.access, WriteAccess)
    assert prepared.access.deletes
    assert prepared.title == "Delete a.txt"
    assert isinstance(prepared.content[0], DiffPart)
    diff = prepared.content[0]
    assert (diff.old_text, diff.new_text) == ("one\r\ntwo\r\nthree\r\n", "")
    outcome = await prepared.run(RecordedProgress())
    assert not (user.folder / "a.txt").exists()
    assert outcome.text == "a.txt deleted."
    assert outcome.wrote == ((str(user.folder / "a.txt"), DELETED),)


async def test_a_file_that_changed_meanwhile_is_not_deleted(user: ToolUser) -> None:
    patch = "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch"
    prepared = await user.prepare("apply_patch", input=patch)
    (user.folder / "a.txt").write_text("other\n")
    with pytest.raises(ToolError, match="changed while this was prepared"):
        await prepared.run(RecordedProgress())
    assert (user.folder / "a.txt").read_text() == "other\n"


@pytest.mark.parametrize("hunk", ["", "@@\n-two\n+2\n"])
async def test_a_file_is_renamed_and_edited_in_one_call(user: ToolUser, hunk: str) -> None:
    (user.folder / "a.txt").chmod(0o755)
    patch = f"*** Begin Patch\n*** Update File: a.txt\n*** Move to: new/d.txt\n{hunk}*** End Patch"
    prepared = await user.prepare("apply_patch", input=patch)
    assert isinstance(prepared.access, WriteAccess)
    assert prepared.access.deletes
    assert [Path(path).name for path in prepared.access.paths] == ["a.txt", "d.txt"]
    outcome = await prepared.run(RecordedProgress())
    assert not (user.folder / "a.txt").exists()
    renamed = user.folder / "new" / "d.txt"
    assert renamed.read_bytes() == (
        b"one\r\n2\r\nthree\r\n" if hunk else b"one\r\ntwo\r\nthree\r\n"
    )
    assert renamed.stat().st_mode & 0o777 == 0o755
    assert outcome.text.startswith("a.txt renamed to new/d.txt.")
    assert outcome.wrote[0] == (str(user.folder / "a.txt"), DELETED)


async def test_a_rename_does_not_replace_a_file_that_was_made_meanwhile(user: ToolUser) -> None:
    patch = "*** Begin Patch\n*** Update File: a.txt\n*** Move to: d.txt\n*** End Patch"
    prepared = await user.prepare("apply_patch", input=patch)
    (user.folder / "d.txt").write_text("mine\n")
    with pytest.raises(ToolError, match=r"d\.txt exists already"):
        await prepared.run(RecordedProgress())
    assert (user.folder / "d.txt").read_text() == "mine\n"
    assert (user.folder / "a.txt").exists()
