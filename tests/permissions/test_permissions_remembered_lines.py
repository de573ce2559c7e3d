"""What an "always" covers, line by line: remembered.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from acp_agent.permissions.access import Allow, Ask, Refuse
from tests.permissions.gate_room import Room, kinds

TABLE = tomllib.loads((Path(__file__).parent / "remembered.toml").read_text("utf-8"))


@pytest.fixture
def project(room: Room) -> Room:
    """A gate with a project that has what the lines name, and a folder beside it."""
    for folder in ("tests", "docker", "scripts", "node_modules/.bin", ".venv/bin"):
        (room.project / folder).mkdir(parents=True)
    for name in ("eslint", "prettier", "playwright"):
        (room.project / "node_modules" / ".bin" / name).touch()
    for name in ("tests/a.py", "src/a.py", "message.txt"):
        (room.project / name).touch()
    (room.home / "other").mkdir()
    return room


def possible_paths(line: str, room: Room) -> str:
    places = {"{project}": room.project, "{outside}": room.home / "other"}
    for name, context in places.items():
        line = line.replace(name, str(context))
    return line


def remember(remembered: str, room: Room) -> None:
    """Press "always" for a line, whose button names exactly it."""
    # A name that needs more words is offered for a line that has them.
    line = remembered + {
        "mkdir": " x",
        "git switch -c": " x",
        "git checkout -b": " x",
        "git tag": " x",
        "deno check": " x",
    }.get(remembered, "")
    verdict = room.command(line)
    assert isinstance(verdict, Ask), verdict
    choice = room.press(verdict, "allow_always")
    assert choice.label in {
        f"Always allow `{remembered}` in this project",
        f"Always allow exactly `{remembered}` in this project",
    }


@pytest.mark.parametrize("remembered", TABLE["covered"])
def test_an_always_covers_the_harmless_uses_of_its_command(remembered: str, project: Room) -> None:
    remember(remembered, project)
    for line in TABLE["covered"][remembered]:
        assert isinstance(project.command(possible_paths(line, project)), Allow), line


@pytest.mark.parametrize("remembered", TABLE["asked"])
def test_an_always_covers_nothing_that_its_button_does_not_say(
    remembered: str, project: Room
) -> None:
    remember(remembered, project)
    for line in TABLE["asked"][remembered]:
        assert not isinstance(project.command(possible_paths(line, project)), Allow), line


@pytest.mark.parametrize("line", TABLE["exact"]["lines"])
def test_commands_without_a_table_are_remembered_verbatim(line: str, project: Room) -> None:
    choice = project.press(project.command(line), "allow_always")
    assert choice.label == f"Always allow exactly `{line}` in this project"
    assert isinstance(project.command(line), Allow)
    assert isinstance(project.command(f"{line} more"), Ask)


@pytest.mark.parametrize("line", TABLE["never"]["lines"])
def test_some_commands_are_never_allowed_permanently(line: str, project: Room) -> None:
    verdict = project.command(possible_paths(line, project))
    assert isinstance(verdict, Refuse) or "allow_always" not in kinds(verdict)


@pytest.fixture
def committing(project: Room) -> Room:
    """A project in which the daily commands of git are allowed."""
    for line in ("git add", "git commit", "git push"):
        remember(line, project)
    return project


@pytest.mark.parametrize("line", TABLE["messages"]["covered"])
def test_an_always_covers_a_message_in_a_quoted_here_document(line: str, committing: Room) -> None:
    assert isinstance(committing.command(line), Allow)


@pytest.mark.parametrize("line", TABLE["messages"]["asked"])
def test_an_always_covers_no_other_substitution(line: str, committing: Room) -> None:
    assert isinstance(committing.command(line), Ask)


@pytest.mark.parametrize("made", [".git/", "HEAD refs/", "HEAD objects/", "HEAD commondir"])
def test_an_always_does_not_hold_in_a_repository_within_the_project(
    made: str, project: Room
) -> None:
    """It has hooks and remotes of its own."""
    for name in made.split():
        path = project.project / "src" / name
        path.mkdir() if name.endswith("/") else path.symlink_to("nowhere")
    for line in ("git commit", "git push origin", "make test"):
        remember(line, project)
        assert isinstance(project.command(f"cd docker && {line}"), Allow)
        for other in (f"cd src && {line}", f"cd src/deep; {line}"):
            assert kinds(project.command(other)) == ["allow_once", "reject_once"]
        for folder in ("src", "src/deep"):
            verdict = project.command(line, cwd=project.project / folder)
            assert kinds(verdict) == ["allow_once", "reject_once"]


def test_a_program_of_the_project_is_allowed_in_its_folder_alone(project: Room) -> None:
    for line in ("./build.sh all", "./gradlew test", ".venv/bin/pytest", "deployer staging"):
        project.press(project.command(line), "allow_always")
        assert isinstance(project.command(line), Allow)
        assert isinstance(project.command(f"cd src && {line}"), Ask)
        assert isinstance(project.command(line, cwd=project.project / "src"), Ask)
