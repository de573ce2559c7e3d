"""What a command changed is shown with its call: which files, and the lines of short texts."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from acp_agent.agent.scrub_events import scrub_content
from acp_agent.config.localization import Translator
from acp_agent.content import ContentPart, DiffPart, TextBlock
from acp_agent.session.history.command_changes import CommandChanges
from acp_agent.workspace.checkpoints.base import Deadline, Rules
from acp_agent.workspace.checkpoints.folders import FolderCheckpoints
from tests.server.either_version import EitherClient
from tests.server.server_session import OPENAI
from tests.support.agent_process import StartAgent
from tests.support.model_server import Call, ModelServer, answer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")

# A command, what is said of it, and the files whose lines are shown, with those from before.
CASES = [
    ("true", "", {}),
    ("cat f.py > /dev/null; touch f.py", "", {}),
    ("echo new > f.py", "changed `f.py`", {"f.py": ("old\n", "new\n")}),
    ("sed -i s/old/new/ f.py", "changed `f.py`", {"f.py": ("old\n", "new\n")}),
    ("mkdir -p a/b; echo x > a/b/c", "created `a/b/c`", {"a/b/c": (None, "x\n")}),
    ("mv f.py g.py", "deleted `f.py`, created `g.py`", {"g.py": (None, "old\n")}),
    ("mv sub moved", "deleted `sub/`, created `moved/s.txt`", {"moved/s.txt": (None, "sub\n")}),
    ("rm -r sub", "deleted `sub/`", {}),
    ("rm -r sub; mkdir sub; echo sub > sub/s.txt", "", {}),
    ("echo a > t; rm t", "", {}),
    ("echo more >> seen.log", "changed `seen.log`", {}),  # git ignores it: not in the checkpoint
    ("printf 'a\\0' > f.py; ln -s f.py link", "changed `f.py`, created `link`", {}),
    ("mkdir n; for i in $(seq 200); do : > n/$i; done", "created `n/`", {}),
    ("for i in $(seq 21); do : > $i; done", "", None),
    ("head -c 50000 /dev/zero | tr '\\0' a > f.py", "changed `f.py`", {}),
    ("git init -q inner; mkdir .git; : > .git/x", "", {}),
    ("rm big.txt", "deleted `big.txt`", {}),
    ("mv big.txt large.txt; mv large.txt big.txt", "changed `big.txt`", {}),
]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a few files."""
    folder = tmp_path_factory.mktemp("kept") / "project"
    (folder / "sub").mkdir(parents=True)
    for name, text in {
        "f.py": "old\n",
        "sub/s.txt": "sub\n",
        "seen.log": "1\n",
        ".gitignore": "*.log\n",
        "big.txt": "b" * 50_000,
    }.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def watched(kept: Path, tmp_path: Path) -> Callable[[str], tuple[str, list[DiffPart]]]:
    """Runs a command; returns what is said of it and the lines that are shown."""
    root = Path(shutil.copytree(kept, tmp_path / "project"))
    checkpoints = FolderCheckpoints(tmp_path / "data" / "checkpoints", "s", (root,), Rules())
    changes, limit = CommandChanges(), Deadline(30)
    trees = {root: snapshot.tree for root, snapshot in checkpoints.save("a", limit).items()}
    changes.set_trees(checkpoints, trees, limit)

    def run(command: str) -> tuple[str, list[DiffPart]]:
        changes.before(checkpoints)
        subprocess.run(["/bin/sh", "-c", command], cwd=root, check=True)
        first, *others = changes.after(checkpoints, root, Translator("en", {})) or [None]
        if first is None:
            return "", []
        assert isinstance(first, ContentPart)
        assert isinstance(first.content, TextBlock)
        text = first.content.text.removeprefix("The command ").removesuffix(".")
        return text, [part for part in others if isinstance(part, DiffPart)]

    return run


@pytest.mark.parametrize(("command", "said", "lines"), CASES)
def test_changes_of_a_command_are_shown_with_the_lines_of_short_texts(
    watched: Callable[[str], tuple[str, list[DiffPart]]],
    tmp_path: Path,
    command: str,
    said: str,
    lines: dict[str, tuple[str | None, str]] | None,
) -> None:
    text, diffs = watched(command)
    if lines is None:
        assert text.count(", ") == 19
        assert text.endswith(" and 1 more")
        assert len(diffs) == 10
        return
    assert text == said
    root = tmp_path / "project"
    shown = {str(Path(one.path).relative_to(root)): (one.old_text, one.new_text) for one in diffs}
    assert shown == lines


def test_neither_contents_nor_names_that_are_keys_are_in_what_is_compared(
    watched: Callable[[str], tuple[str, list[DiffPart]]],
) -> None:
    key = "ghp_" + "0aB1cD2eF3" * 4
    _, diffs = watched(f"echo x > {key}; mkdir d-{key}; echo x > d-{key}/x; echo 'A={key}' > f.py")
    assert [one.new_text for one in diffs] == ["A=[secret]\n"]
    known = DiffPart("/project/open-sesame/a", "x", None)
    (shown,) = scrub_content((known,), ["open-sesame"]) or ()
    assert isinstance(shown, DiffPart)
    assert shown.path == "/project/[secret]/a"


def test_each_command_is_compared_with_what_was_there_right_before_it(
    watched: Callable[[str], tuple[str, list[DiffPart]]], tmp_path: Path
) -> None:
    assert watched("echo 1 > f.py; mkdir d; echo d > d/x")[0] == "created `d/x`, changed `f.py`"
    (tmp_path / "project" / "f.py").write_text("the user's\n")
    (tmp_path / "project" / "other").write_text("the user's\n")
    said, (diff, _) = watched("echo 2 > f.py; echo e > d/x")
    assert said == "changed `d/x`, changed `f.py`"
    assert (diff.old_text, diff.new_text) == ("d\n", "e\n")
    said, diffs = watched("echo 3 > f.py")
    assert [(diff.old_text, diff.new_text) for diff in diffs] == [("2\n", "3\n")]


@pytest.mark.parametrize("version", [1, 2])
async def test_the_call_of_a_command_shows_it(
    agent: StartAgent, workspace_repo: Path, model_server: ModelServer, version: int
) -> None:
    commands = ("echo hi; echo new >> README.md", "echo nothing")
    calls = [answer(Call("shell", {"command": command})) for command in commands]
    model_server.add(*calls, answer("Done."))
    environ = dict(model_server.environ()) | {"ACP_AGENT_MODE": "full"}
    client = await EitherClient.start(agent, version, *OPENAI, environ=environ)
    session = await client.new(workspace_repo)
    await client.say(session, "go")
    ended = [one for one in client.wire.updates(session) if one.get("status") == "completed"]
    texts = [str(one.get("content", "")) for one in ended]
    assert "The command changed `README.md`." in texts[0]
    assert "new\\n'" in texts[0]  # a whole text, or a patch
    assert "The command" not in texts[1]
    told = [str(request.json["messages"]) for request in model_server.requests]
    assert "The command changed" not in "".join(told)
