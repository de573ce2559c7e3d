"""A patch changes all the files that it names, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.errors import ToolError, WorkspaceError
from acp_agent.permissions.access import WriteAccess
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


async def test_all_files_of_a_patch_are_asked_about_and_written_in_one_call(user: ToolUser) -> None:
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
        ("*** Begin Patch\n*** Delete File: a.txt\n*** End Patch", "deletes no files"),
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


def test_no_model_is_offered_it_and_it_needs_both_tools_that_it_stands_for(user: ToolUser) -> None:
    assert "apply_patch" not in [spec.name for spec in user.tools.specs()]
    both = user.tools.filtered({"edit", "write"}.__contains__)
    assert both.get("apply_patch").name == "apply_patch"
    with pytest.raises(ToolError, match="no tool 'apply_patch'"):
        user.tools.filtered({"edit", "read"}.__contains__).get("apply_patch")
