"""Properties of every reader in the table, whatever program it is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from acp_agent.permissions.classify import classify
from acp_agent.permissions.paths import CommandContext
from acp_agent.permissions.read_only import is_read_only
from acp_agent.permissions.rules import Reader, read_only_rules
from acp_agent.permissions.shell.syntax import Command
from acp_agent.permissions.shell.words import Word

READERS = {
    name: reader
    for name, reader in read_only_rules().commands.items()
    if reader.operands not in {"words", "test"} and not reader.input
}
# What each reader is given besides what a test is about, by the kind of its operands.
OPERANDS = {
    "pattern": ["pattern", "x"],
    "script": ["1p", "x"],
    "format": ["%s"],
    "public": ["HOME"],
    "text": [],
}
# Options that write, run programs, or read what a list names, in one program or another.
NOTORIOUS = [
    "-exec",
    "-execdir",
    "-ok",
    "-delete",
    "-fprint",
    "-fprintf",
    "-fls",
    "-follow",
    "-files0-from",
    "-o",
    "--output",
    "--exec",
    "--pager",
    "--compress-program",
    "--files0-from",
    "--files-from",
    "--from-file",
    "--file",
    "--check",
    "-c",
    "-T",
    "--pre",
    "--textconv",
    "--ext-diff",
    "--filters",
    "--show-signature",
    "--help-all",
    "--upload-pack",
    "--open-files-in-pager",
    "--no-index",
    "--temporary-directory",
    "--in-place",
    "--dereference",
    "--recurse-submodules",
    "--contents",
    "-r",
    "-revert",
    "-O",
    "-z",
]


def _names(reader: Reader) -> set[str]:
    table = reader
    return set().union(
        table.flags,
        table.values,
        table.paths,
        table.optional,
        table.attached,
        table.pairs,
        table.either,
    )


OPTIONS = sorted({"--unknown", "-~"}.union(*map(_names, READERS.values())).difference(NOTORIOUS))


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> CommandContext:
    project = (tmp_path_factory.mktemp("users") / "someone" / "project").resolve()
    project.mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    for name in ("x", "y"):
        (project / name).write_text("x\n")
    return CommandContext(cwd=str(project), roots=(str(project),), home=str(project.parent))


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


def _reads(name: str, words: list[str], context: CommandContext) -> bool:
    command = Command(words=tuple(map(Word, [*name.split(), *words])))
    return is_read_only(command, context, [context.cwd])


def _before(reader: Reader) -> list[str]:
    """An option without which the program does more than read."""
    if "-i" in reader.requires:
        return ["-i:80"]
    return sorted(reader.requires & reader.flags)[:1] or sorted(reader.requires)[:1]


def _fitting(reader: Reader) -> list[str]:
    if reader.operand_start:
        return [reader.operand_start + "x"]
    if reader.min_operands:
        return ["x"] * reader.min_operands
    return OPERANDS.get(reader.operands, ["x"] if reader.max_operands != 0 else [])


@pytest.mark.parametrize("name", READERS)
def test_an_option_that_the_table_of_a_reader_does_not_list_is_asked_about(
    name: str, context: CommandContext
) -> None:
    reader = READERS[name]
    before, operands = _before(reader), _fitting(reader)
    assert _reads(name, [*before, *operands], context)
    table = reader
    # Each reader with a quarter of all other options, each of these with a quarter of all readers.
    step = 1 if "ACP_AGENT_FUZZ" in os.environ else 4
    options = [*NOTORIOUS, *OPTIONS[list(READERS).index(name) % step :: step]]
    allowed = {
        option
        for option in options
        if option not in _names(reader)
        if (
            _reads(name, [*before, option, *operands], context)
            or _reads(name, [*before, f"{option}=x", *operands], context)
            or (not table.stop_at_operand and _reads(name, [*before, *operands, option], context))
        )
        if not (table.numbers and option[1:].isdigit())
    }
    if not table.single_dash:  # a cluster of options that are all listed
        allowed = {option for option in allowed if len(option) == 2 or option.startswith("--")}
    joined = {option for option in allowed if table.single_dash and option[:2] in table.optional}
    assert not allowed - joined


@pytest.mark.parametrize("name", READERS)
def test_an_abbreviated_option_is_asked_about(name: str, context: CommandContext) -> None:
    reader = READERS[name]
    before, operands = _before(reader), _fitting(reader)
    shortened = {option[:-1] for option in _names(reader) if len(option) > 4} - _names(reader)
    joined = {option for option in shortened if option[:2] in reader.optional}
    for option in shortened - joined:
        if option.startswith("--") or reader.single_dash:
            assert not _reads(name, [*before, option, *operands], context), option


@pytest.mark.parametrize("name", [name for name, reader in READERS.items() if reader.max_operands])
def test_a_dash_counts_as_an_operand(name: str, context: CommandContext) -> None:
    most = READERS[name].max_operands or 0
    before = _before(READERS[name])
    assert _reads(name, before + ["-"] * most, context) or READERS[name].operands == "text"
    assert not _reads(name, before + ["-"] * most + ["x"], context)
    assert not _reads(name, [*before, "--", *["-"] * most, "x"], context)
    assert not _reads(name, before + ["x"] * most + ["-"], context)


READING = [name for name, reader in READERS.items() if reader.operands not in {"text", "format"}]


@pytest.mark.parametrize("name", READING)
def test_a_path_outside_needs_permission_at_every_position(
    name: str, context: CommandContext
) -> None:
    reader = READERS[name]
    before, operands = _before(reader), _fitting(reader)
    for outside in ("/etc/passwd", "../x", "y/../../x"):
        for words in (
            [*operands, outside],
            [*operands, "--", outside],
            [*operands[:1], "--", outside] if reader.operands != "paths" else ["--", outside],
            [*operands[:1], "-", outside],
            [outside, outside],
        ):
            assert not _reads(name, [*before, *words], context), words


@pytest.mark.parametrize("name", [name for name, row in READERS.items() if row.paths])
def test_a_path_outside_behind_an_option_is_asked_about(name: str, context: CommandContext) -> None:
    before, operands = _before(READERS[name]), _fitting(READERS[name])
    for option in READERS[name].paths:
        assert _reads(name, [*before, option, "x", *operands], context)
        assert not _reads(name, [*before, option, "../x", *operands], context)
        if option.startswith("--"):
            assert not _reads(name, [*before, f"{option}=/etc/passwd", *operands], context)


def _program(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("folder", "search_path"),
    [
        ("", "."),
        ("", ":/usr/bin"),
        ("bin", "bin:/usr/bin"),
        ("node_modules/.bin", "{project}/node_modules/.bin:/usr/bin"),
        (".venv/bin", "{project}/.venv/bin:/usr/bin"),
        ("../.pyenv/shims", "{project}/../.pyenv/shims:/usr/bin"),
    ],
)
@pytest.mark.parametrize("line", ["python3 --version", "jq . x", "rg x", "timeout 5 cat x"])
def test_a_program_that_the_search_path_finds_in_the_project_or_among_shims_is_asked_about(
    folder: str, search_path: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.setenv("PATH", search_path.replace("{project}", str(project)))

    def tier() -> str:
        context = CommandContext(cwd=str(project), roots=(str(project),), home=str(tmp_path))
        return classify(line, context).tier

    assert tier() == "read_only"
    _program(project / folder / line.split(maxsplit=1)[0])
    assert tier() == "standard"


def test_a_link_to_a_program_of_the_project_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, bin_folder = tmp_path / "project", tmp_path / "bin"
    _program(project / "jq")
    bin_folder.mkdir()
    (bin_folder / "jq").symlink_to(project / "jq")
    monkeypatch.setenv("PATH", f"{bin_folder}:/usr/bin")
    context = CommandContext(cwd=str(project), roots=(str(project),), home=str(tmp_path))
    assert classify("jq . x", context).tier == "standard"


def test_a_viewer_is_asked_about_where_a_variable_names_its_filter(
    context: CommandContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LESSOPEN", raising=False)
    assert classify("less x", context).tier == "read_only"
    monkeypatch.setenv("LESSOPEN", "|lesspipe %s")
    assert classify("less x", context).tier == "standard"


def test_all_settings_of_git_are_asked_about_where_some_are_for_credentials(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    context = CommandContext(cwd=str(tmp_path), roots=(str(tmp_path),), home=str(tmp_path.parent))
    assert classify("git config --list --local", context).tier == "read_only"
    header = ["git", "config", "http.https://x.example/.extraheader", "Authorization: basic eA=="]
    subprocess.run(header, cwd=tmp_path, check=True)
    later = CommandContext(cwd=str(tmp_path), roots=(str(tmp_path),), home=str(tmp_path.parent))
    assert classify("git config --list --local", later).tier == "standard"
    assert classify("git config user.name", later).tier == "read_only"
