"""Diffs of version 2: patches that real Git applies, with the paths that the protocol asks for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from acp_agent.content import DiffPart
from acp_agent.diffs import MAX_EDITS, changed_blocks
from acp_agent.server.v2.diffs import git_patch, to_diff
from protocol.codec import typed_json
from protocol.v2 import types as acp

NAMES = ["plain.py", "with space.py", 'quo"te', "back\\slash", "tab\there", "naïve 好.txt", "a\nb"]
TEXTS = [
    ("one\ntwo\nthree\n", "one\n2\nthree\n"),
    ("one\ntwo", "one\ntwo\n"),
    ("one\ntwo\n", "one\ntwo"),
    ("one\r\ntwo\r\n", "one\r\n2\r\n"),
    ("one\r\ntwo\r\n", "one\ntwo\n"),
    ("", "begun\n"),
    ("all\n", ""),
    ("a\n" * 50, "a\n" * 20 + "b\n" + "a\n" * 30),
    (
        "".join(f"{n}\n" for n in range(40)),
        "".join(f"{n}\n" for n in range(40) if n not in (3, 30)),
    ),
    ("one\x0ctwo\x0b\x1c\u2028\n", "one\x0ctwo\x0b\x1c\u2029\n"),
]


def apply(patch: str) -> None:
    """Apply a patch to files anywhere, as somebody would who trusts it."""
    done = subprocess.run(
        ["git", "apply", "--unsafe-paths", "-p0", "--whitespace=nowarn", "-"],
        input=patch.encode(),
        cwd="/",
        capture_output=True,
        env={"GIT_CONFIG_NOSYSTEM": "1", "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
        check=False,
    )
    assert done.returncode == 0, (done.stderr.decode(), patch)


def apply_below(root: Path, patch: str) -> None:
    """Apply a patch after taking the first slash off its paths, which Git itself does not write.

    Git refuses it where a section has its path in its first line alone: that of an empty file.
    """
    assert str(root) in patch
    apply(patch.replace(str(root), str(root)[1:]))


def write_text(path: Path, text: str) -> None:
    path.write_bytes(text.encode())


@pytest.mark.parametrize(("old", "new"), TEXTS)
def test_git_applies_the_patch_to_the_old_text(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "file"
    write_text(path, old)
    apply(git_patch(str(path), old, new))
    assert path.read_bytes() == new.encode()
    apply(git_patch(str(path), new, old))
    assert path.read_bytes() == old.encode()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", ["one\ntwo\n", "no end", "", "\n"])
def test_git_adds_files_of_any_name(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / "new" / "folder of it" / name
    apply_below(tmp_path, git_patch(str(path), None, text))
    assert path.read_bytes() == text.encode()


LINE = st.text(alphabet="ab \r好", max_size=3)
TEXT = st.lists(LINE, max_size=25).map("\n".join)


@given(pairs=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=20))
def test_git_applies_every_patch(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("files")
    patch = ""
    for number, (old, new) in enumerate(pairs):
        path = folder / str(number)
        write_text(path, old)
        patch += git_patch(str(path), old, new)
    if patch:
        apply(patch)
    for number, (_, new) in enumerate(pairs):
        assert (folder / str(number)).read_bytes() == new.encode()


@given(old=st.lists(st.sampled_from("abc"), max_size=30), new=st.lists(st.sampled_from("abc")))
def test_the_lines_between_two_blocks_are_equal(old: list[str], new: list[str]) -> None:
    created_ids: list[str] = []
    at = 0
    for block in changed_blocks(old, new):
        assert old[at : block.old_start] == new[len(created_ids) : block.new_start]
        created_ids += old[at : block.old_start] + new[block.new_start : block.new_end]
        at = block.old_end
    assert created_ids + old[at:] == new


def test_the_script_is_the_shortest() -> None:
    blocks = changed_blocks(list("abcabba"), list("cbabac"))  # the example of Myers' paper
    edits = sum(b.old_end - b.old_start + b.new_end - b.new_start for b in blocks)
    assert edits == 5


def test_a_rewritten_text_is_one_block_and_takes_no_time() -> None:
    old = [f"old {n}" for n in range(30_000)]
    new = [f"new {n}" for n in range(30_000)]
    (block,) = changed_blocks(["same", *old, "same"], ["same", *new, "same"])
    assert (block.old_start, block.old_end) == (1, 30_001)
    assert MAX_EDITS < 1_000


def test_a_modified_file_looks_as_git_shows_it_with_its_absolute_path(tmp_path: Path) -> None:
    old = "".join(f"line {n}\n" for n in range(1, 31))
    new = old.replace("line 5\n", "line five\n").replace("line 25\n", "")
    (tmp_path / "old").mkdir()
    path = tmp_path / "old" / "it"
    write_text(path, old)
    write_text(tmp_path / "changed", new)
    git = subprocess.run(
        ["git", "diff", "--no-index", "--no-prefix", str(path), str(tmp_path / "changed")],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    patch = git_patch(str(path), old, new)
    # Git names a function after the second @@, which nobody needs to apply it.
    hunks = [
        line.split(" @@ ")[0].removesuffix(" @@") for line in git.splitlines() if line[:2] != "in"
    ]
    assert [line.removesuffix(" @@") for line in patch.splitlines()[3:]] == hunks[3:]
    assert patch.splitlines()[:3] == [f"diff --git {path} {path}", f"--- {path}", f"+++ {path}"]


@pytest.mark.parametrize("name", [*NAMES, "\x07\x08\x0b\x0c\r\x01\x7f", "é"])
def test_names_are_quoted_as_git_quotes_them(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_text(path, "x\n")
    git = subprocess.run(
        [
            "git",
            "-c",
            "core.quotePath=true",
            "diff",
            "--no-index",
            "--no-prefix",
            "/dev/null",
            path,
        ],
        capture_output=True,
        check=False,
    ).stdout.decode()
    (line,) = [line for line in git.split("\n") if line.startswith("+++ ")]
    patch = git_patch(str(path), None, "x\n")
    (header,) = [line for line in patch.split("\n") if line.startswith("+++ ")]
    assert header.replace("/", "", 1) == line  # Git leaves the first slash out even here


def test_a_text_that_stays_the_same_has_no_patch() -> None:
    assert to_diff(DiffPart("/a/b", "x\n", "x\n")).patch is None


def test_a_change_is_an_added_or_a_modified_file() -> None:
    assert msgspec.json.decode(typed_json.encode(to_diff(DiffPart("/a/b", "new\n")))) == {
        "type": "diff",
        "changes": [{"operation": "add", "path": "/a/b", "fileType": "text"}],
        "patch": {
            "format": "git_patch",
            "text": "diff --git /a/b /a/b\nnew file mode 100644\n"
            "--- /dev/null\n+++ /a/b\n@@ -0,0 +1 @@\n+new\n",
        },
    }
    modified = to_diff(DiffPart("/a/b", "new\n", "old\n"))
    assert isinstance(modified.changes[0], acp.DiffModifyChange)
    assert modified.patch is not None
    assert modified.patch.text == (
        "diff --git /a/b /a/b\n--- /a/b\n+++ /a/b\n@@ -1 +1 @@\n-old\n+new\n"
    )
