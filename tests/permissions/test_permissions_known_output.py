"""Lines whose words other commands of the line print: names of files, hashes, numbers, folders."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

import pytest
from msgspec import convert

from acp_agent.config.policy_types import PermissionsConfig
from acp_agent.permissions.access import Allow, CommandAccess, Refuse, Verdict
from acp_agent.permissions.classify import classify
from acp_agent.permissions.gate import PolicyGate
from acp_agent.permissions.grants import GrantStore
from acp_agent.permissions.paths import CommandContext
from acp_agent.permissions.policy.loading import Policies, compile_rules
from acp_agent.permissions.policy.rules import Source

LINES = tomllib.loads(Path(__file__).with_name("known_output.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home").resolve() / "project"
    for name in ("README.md", "list", "src/a.py", "sub/x", "tests/b.py", "docs/i.md"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n")
    git = ["/usr/bin/git", "-C", str(folder)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    return folder


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


def tier(project: Path, line: str) -> str:
    home = str(project.parent)
    return classify(line, CommandContext(cwd=str(project), roots=(str(project),), home=home)).tier


@pytest.mark.parametrize("line", LINES["read_only"])
def test_a_line_that_reads_the_output_of_its_own_commands_needs_no_permission(
    project: Path, line: str
) -> None:
    assert tier(project, line) == "read_only"


@pytest.mark.parametrize("line", LINES["asked"])
def test_a_line_that_may_use_something_else_than_the_project_is_asked_about(
    project: Path, line: str
) -> None:
    assert tier(project, line) != "read_only"


@pytest.mark.parametrize("name", ["a b", "a'b", "a\nb", "a*", "-fx", "@x", "src/a\\b", "sub/é"])
@pytest.mark.parametrize(
    "line", ["find . -type f | xargs cat", "for f in $(find . -mtime 1); do cat $f; done",
             "grep -rl x . | xargs head", "cat $(ls)", "ls | while read f; do cat $f; done"],
)  # fmt: skip
def test_a_name_that_is_read_as_something_else_is_asked_about(
    tmp_path: Path, line: str, name: str
) -> None:
    path = tmp_path.resolve() / "project" / name
    path.parent.mkdir(parents=True)
    assert tier(tmp_path.resolve() / "project", line) == "read_only"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x\n")
    assert tier(tmp_path.resolve() / "project", line) == "standard"


@pytest.mark.parametrize("line", ["find . | xargs cat", "cat $(grep -rl x .)", "cat $(ls)"])
def test_a_link_out_of_the_project_below_the_folder_is_asked_about(
    tmp_path: Path, line: str
) -> None:
    folder = tmp_path.resolve() / "project"
    folder.mkdir()
    (folder / "inside").symlink_to("other")
    assert tier(folder, line) == "read_only"
    (folder / "outside").symlink_to(tmp_path / "secret")
    assert tier(folder, line) == "standard"


def test_a_rule_about_a_file_covers_the_lists_of_files_that_contain_it(project: Path) -> None:
    table = {"deny": ["Read(.env)", "Read(docs/**)"]}
    rules = compile_rules(convert(table, PermissionsConfig), Source(file="config.toml"))
    home = str(project.parent)
    gate = PolicyGate(GrantStore(Path(os.devnull)), home=home, policies=Policies(rules))

    def verdict(line: str) -> Verdict:
        return gate.judge(CommandAccess(line, str(project)), mode="ask", project=str(project))

    for line in ("find . -type f | xargs cat", "git ls-files | xargs cat", "cat $(ls)"):
        assert isinstance(verdict(line), Refuse), line
    for line in ("find src -type f | xargs cat", "find . -name '*.py' | xargs cat"):
        assert isinstance(verdict(line), Allow), line
