from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from acp_agent.content import Location
from acp_agent.errors import OutsideWorkspaceError, ToolError, WorkspaceError
from acp_agent.permissions.access import ReadAccess
from acp_agent.tools.base import RESULT_LIMIT
from tests.support.tool_calls import ToolUser


@pytest.fixture
def user(tmp_path: Path) -> ToolUser:
    """A folder with ignored, hidden and nested files."""
    root = tmp_path / "project"
    for name, text in {
        ".gitignore": "build/\n*.log\n",
        ".github/ci.yml": "steps: greet\n",
        ".git/config": "greet\n",
        "build/out.py": "greet\n",
        "run.log": "greet\n",
        "src/a.py": "def greet():\n    return 1\n",
        "src/deep/b.py": "import a\n\na.greet()\na.GREET\n",
        "notes.txt": "nothing\n",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return ToolUser(root.resolve())


async def test_glob_finds_files_at_every_depth_except_ignored_ones(user: ToolUser) -> None:
    outcome = await user.call("glob", pattern="*.py")
    assert sorted(outcome.text.split("\n")) == ["src/a.py", "src/deep/b.py"]
    assert (await user.call("glob", pattern="*.yml")).text == ".github/ci.yml"
    everything = (await user.call("glob", pattern="**/*")).text
    assert "run.log" not in everything
    assert ".git/" not in everything
    assert "notes.txt" in everything


async def test_ignore_files_count_outside_of_a_repository_as_well(user: ToolUser) -> None:
    shutil.rmtree(user.folder / ".git")
    assert "run.log" not in (await user.call("glob", pattern="**")).text
    assert "run.log" not in (await user.call("grep", pattern="greet")).text


async def test_an_ignored_file_is_not_found_by_its_own_name_either(user: ToolUser) -> None:
    outcome = await user.call("glob", pattern="*.log")
    assert outcome.text.startswith("No files match.")


async def test_glob_lists_the_latest_changes_first(user: ToolUser) -> None:
    for age, name in enumerate(["src/deep/b.py", "src/a.py"]):
        os.utime(user.folder / name, (1_000_000 - age * 1000, 1_000_000 - age * 1000))
    assert (await user.call("glob", pattern="*.py")).text == "src/deep/b.py\nsrc/a.py"


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("src/*.py", ["src/a.py"]),
        ("./src/*.py", ["src/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/deep/b.py"]),
        ("/*.txt", ["notes.txt"]),
        ("*.{txt,yml}", [".github/ci.yml", "notes.txt"]),
    ],
)
async def test_patterns_are_those_of_gitignore(
    user: ToolUser, pattern: str, names: list[str]
) -> None:
    assert sorted((await user.call("glob", pattern=pattern)).text.split("\n")) == names


async def test_an_absolute_pattern_is_understood(user: ToolUser) -> None:
    outcome = await user.call("glob", pattern=f"{user.folder}/src/*.py")
    assert outcome.text == "src/a.py"


async def test_glob_searches_below_the_folder_named(user: ToolUser) -> None:
    prepared = await user.prepare("glob", pattern="*.py", path="src/deep")
    assert prepared.title == "Find `*.py` in src/deep"
    assert prepared.access == ReadAccess(paths=(str(user.folder / "src/deep"),))
    assert (await user.call("glob", pattern="*.py", path="src/deep")).text == "src/deep/b.py"


async def test_glob_says_how_many_more_files_match(user: ToolUser) -> None:
    (user.folder / "many").mkdir()
    for n in range(230):
        (user.folder / "many" / f"{n}.md").write_text("")
    outcome = await user.call("glob", pattern="*.md")
    assert outcome.text.count(".md") == 200
    assert outcome.text.endswith("[30 older files more: narrow the pattern]")


async def test_grep_gives_matches_with_their_lines_by_file(user: ToolUser) -> None:
    outcome = await user.call("grep", pattern=r"greet\(")
    assert outcome.text == "src/a.py\n1:def greet():\n\nsrc/deep/b.py\n3:a.greet()"


async def test_grep_tells_the_editor_where_the_first_match_of_each_file_is(user: ToolUser) -> None:
    outcome = await user.call("grep", pattern="greet", ignore_case=True, context=1)
    assert outcome.locations == (
        Location(path=str(user.folder / ".github/ci.yml"), line=1),
        Location(path=str(user.folder / "src/a.py"), line=1),
        Location(path=str(user.folder / "src/deep/b.py"), line=3),
    )
    assert (await user.call("grep", pattern="nothing like it")).locations is None


async def test_grep_shows_lines_around_a_match_on_request(user: ToolUser) -> None:
    (user.folder / "long.txt").write_text("".join(f"n{n}\n" for n in range(1, 21)))
    outcome = await user.call("grep", pattern="^n(5|15)$", path="long.txt", context=1)
    assert outcome.text == "long.txt\n4-n4\n5:n5\n6-n6\n--\n14-n14\n15:n15\n16-n16"


async def test_grep_can_ignore_case_and_count_by_file(user: ToolUser) -> None:
    outcome = await user.call("grep", pattern="greet", ignore_case=True, mode="files")
    assert outcome.text == ".github/ci.yml: 1\nsrc/a.py: 1\nsrc/deep/b.py: 2"


async def test_grep_with_a_glob_skips_ignored_files(user: ToolUser) -> None:
    for mode in ("lines", "files"):
        outcome = await user.call("grep", pattern="greet", glob="*.log", mode=mode)
        assert outcome.text.startswith("Nothing matches; ")
        outcome = await user.call("grep", pattern="greet", glob="src/*.py", mode=mode)
        assert "src/a.py" in outcome.text
        assert "b.py" not in outcome.text


async def test_grep_takes_look_around_and_patterns_over_several_lines(user: ToolUser) -> None:
    assert "1:def greet" in (await user.call("grep", pattern=r"(?<=def )greet")).text
    outcome = await user.call("grep", pattern=r"greet\(\):\n    return")
    assert outcome.text == "src/a.py\n1:def greet():\n2:    return 1"


async def test_a_file_named_is_searched_even_if_it_is_ignored(user: ToolUser) -> None:
    assert (await user.call("grep", pattern="greet", path="run.log")).text == "run.log\n1:greet"


async def test_the_unsent_part_of_a_result_can_be_searched(user: ToolUser) -> None:
    user.workspace.outputs.mkdir()
    output = user.workspace.outputs / "call.txt"
    output.write_text("needle\n")
    assert (await user.call("grep", pattern="needle", path=str(output))).text.endswith("1:needle")


@pytest.mark.parametrize("mode", ["lines", "files"])
async def test_an_invalid_regular_expression_is_searched_as_text(user: ToolUser, mode: str) -> None:
    (user.folder / "a.kt").write_text("fun f() = listOf(1)\n")
    result = await user.call("grep", pattern="listOf(", mode=mode)
    assert "a.kt" in result.text
    assert "[searched as plain text: the search is not possible" in result.text


async def test_a_bar_of_the_basic_syntax_means_alternatives_if_it_matches_nothing(
    user: ToolUser,
) -> None:
    (user.folder / "bars.txt").write_text("left\nright|hand\n")
    assert "`\\|` was read as `|`" in (await user.call("grep", pattern=r"lost\|left")).text
    assert "was read" not in (await user.call("grep", pattern=r"right\|hand")).text


@pytest.mark.parametrize("pattern", ["no_such_greeting(", "[", "*", "(?P<"])
async def test_a_wrong_pattern_is_explained(user: ToolUser, pattern: str) -> None:
    for mode in ("lines", "files"):
        with pytest.raises(WorkspaceError, match=r"search is not possible: .*correct the pattern"):
            await user.call("grep", pattern=pattern, mode=mode)


async def test_a_wrong_glob_is_explained(user: ToolUser) -> None:
    with pytest.raises(WorkspaceError, match="unclosed character class"):
        await user.call("glob", pattern="[a")
    for pattern, message in (
        ("../*", "give the folder in `path`"),
        ("!*.py", "cannot start with `!`"),
    ):
        with pytest.raises(ToolError, match=message):
            await user.prepare("glob", pattern=pattern)


@pytest.mark.parametrize("name", ["glob", "grep"])
async def test_a_search_outside_or_of_nothing_is_refused(user: ToolUser, name: str) -> None:
    (user.folder / "link").symlink_to("/etc")
    for path in ("/etc", "link", ".."):
        with pytest.raises(OutsideWorkspaceError):
            await user.prepare(name, pattern="x", path=path)
    with pytest.raises(ToolError, match="absent"):
        await user.prepare(name, pattern="x", path="absent")


async def test_a_symlink_inside_is_not_searched_to_the_outside(
    user: ToolUser, tmp_path: Path
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "s.py").write_text("greet secret\n")
    (user.folder / "link").symlink_to(tmp_path / "secret")
    (user.folder / "direct.py").symlink_to(tmp_path / "secret" / "s.py")
    assert "secret" not in (await user.call("grep", pattern="greet")).text
    assert "s.py" not in (await user.call("glob", pattern="*.py")).text


async def test_a_pattern_that_looks_like_an_option_is_only_a_pattern(user: ToolUser) -> None:
    (user.folder / "o.txt").write_text("--files\n")
    assert (await user.call("grep", pattern="--files")).text == "o.txt\n1:--files"
    assert (await user.call("glob", pattern="--help")).text.startswith("No files match")


async def test_a_name_with_a_line_break_or_bad_bytes_does_no_harm(user: ToolUser) -> None:
    (user.folder / "line\nbreak.txt").write_text("needle\n")
    Path(os.fsdecode(os.fsencode(user.folder) + b"/caf\xe9.txt")).write_text("needle\n")
    for mode in ("lines", "files"):
        text = (await user.call("grep", pattern="needle", mode=mode)).text
        assert r"line\nbreak.txt" in text
        assert "caf\ufffd.txt" in text
    text = (await user.call("glob", pattern="*.txt")).text
    assert r"line\nbreak.txt" in text.split("\n")
    text.encode()


async def test_bytes_that_are_no_utf8_are_shown_as_far_as_they_can_be(user: ToolUser) -> None:
    (user.folder / "latin.txt").write_bytes(b"needle caf\xe9\n")
    assert (await user.call("grep", pattern="needle")).text == "latin.txt\n1:needle caf\ufffd"


async def test_a_result_is_bounded_in_lines_and_in_their_length(user: ToolUser) -> None:
    (user.folder / "wide.txt").write_text("a" * 5_000 + "needle" + "b" * 5_000 + "\n")
    text = (await user.call("grep", pattern="needle")).text
    assert "…aaa" in text
    assert "needle" in text
    assert len(text) < 500
    (user.folder / "many.txt").write_text("match me\n" * 10_000)
    text = (await user.call("grep", pattern="match me")).text
    assert text.count("match me") == 400
    assert text.splitlines()[-1].startswith("[more than 400 lines: narrow the search")
    assert len(text) < RESULT_LIMIT


async def test_a_line_of_many_megabytes_is_skipped_and_counted(user: ToolUser) -> None:
    (user.folder / "huge.txt").write_text("needle " + "z" * 9_000_000 + "\nneedle\n")
    text = (await user.call("grep", pattern="needle")).text
    assert text == "huge.txt\n2:needle\n[1 matches in enormous lines are left out]"


async def test_a_line_with_millions_of_matches_ends_the_search_early(user: ToolUser) -> None:
    (user.folder / "a.txt").write_text("needle\n")
    (user.folder / "b.txt").write_text("needle " * 400_000)
    text = (await user.call("grep", pattern="n|e|d|l")).text
    assert "\na.txt\n1:needle\n[1 matches in enormous lines are left out]\n" in text
    assert text.endswith("[the search took too long and is incomplete: name a smaller folder]")


async def test_the_users_own_ripgrep_configuration_changes_nothing(
    user: ToolUser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rc").write_text("--glob=!src/**\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "rc"))
    assert (await user.call("grep", pattern="def greet")).text == "src/a.py\n1:def greet():"


def test_titles_are_built_from_the_available_arguments(user: ToolUser) -> None:
    assert user.title("grep") == "Search"
    assert user.title("grep", pattern="foo", path="src", glob="*.py") == (
        "Search for `foo` in src (*.py)"
    )
    assert user.title("grep", pattern="a`b") == "Search for ``a`b``"
    assert user.title("glob", path="src", pattern=3) == "Find files in src"
