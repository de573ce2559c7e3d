"""Tab in bash, zsh and fish themselves, in a terminal, with the scripts that the program prints."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.cli.test_cli_completion import home_environment, keep_sessions
from tests.support.terminal_screen import TAB, Person, program_in_terminal

# The shell with nobody's configuration, and what it has to be told before: to read the script, or
# to look for it in a folder, as docs/installing.md says.
ZSH = ["zsh", "-f", "-i"]
FISH = ["fish", "--no-config", "--interactive"]
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <(acp-agent completion bash)"),
    "zsh": (
        ZSH,
        "autoload -Uz compinit; compinit -u -D; source <(acp-agent completion zsh)",
    ),
    "zsh by folder": (
        ZSH,
        "mkdir f; acp-agent completion zsh >f/_acp-agent; fpath+=f; autoload compinit; compinit -u",
    ),
    "fish": (FISH, "acp-agent completion fish | source"),
    "fish by folder": (
        FISH,
        "mkdir f; acp-agent completion fish > f/acp-agent.fish; set -p fish_complete_path $PWD/f",
    ),
}
# bash puts in what all have in common first, and then waits to be asked twice.
TABS_TO_LIST = {"bash": 3, "zsh": 2, "zsh by folder": 2, "fish": 1, "fish by folder": 1}


@asynccontextmanager
async def shell(name: str, home: Path) -> AsyncIterator[Person]:
    """A shell that completes `acp-agent`, in a folder with some files."""
    command, setting = SHELLS[name]
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]} here")
    (home / "places").mkdir()
    (home / "plan one.md").touch()
    env = home_environment(home) | {"TERM": "xterm-256color", "HISTFILE": ""}
    async with program_in_terminal(command, cwd=home, env=env, columns=120, rows=50) as person:
        person.type(f"{setting}; echo rea''dy\r")
        await person.see("ready")
        yield person


@pytest.mark.parametrize("name", SHELLS)
async def test_tab_completes_a_command_an_option_and_its_value(name: str, tmp_path: Path) -> None:
    async with shell(name, tmp_path) as person:
        person.type(f"acp-agent sess{TAB}")
        await person.see("acp-agent sessions ")
        person.type(f"exp{TAB}")
        await person.see("acp-agent sessions export ")
        person.type(f"--form{TAB}")
        await person.see("acp-agent sessions export --format ")
        person.type(f"ht{TAB}")
        await person.see("acp-agent sessions export --format html ")


@pytest.mark.parametrize("name", SHELLS)
async def test_tab_lists_sessions_with_their_titles(name: str, tmp_path: Path) -> None:
    old, new = await keep_sessions(tmp_path, "Mend: the greeting", "Add a test")
    async with shell(name, tmp_path) as person:
        person.type("acp-agent sessions delete " + TABS_TO_LIST[name] * TAB)
        await person.see(old[-12:], new[-12:], "Mend: the greeting", "Add a test")
        rows = "\n".join(person.screen)
        assert rows.index("Add a test") < rows.index("Mend: the greeting"), "not the newest first"


@pytest.mark.parametrize("name", SHELLS)
async def test_tab_completes_a_value_behind_an_equals_sign(name: str, tmp_path: Path) -> None:
    async with shell(name, tmp_path) as person:
        person.type(f"acp-agent run --model=dem{TAB}")
        await person.see("acp-agent run --model=demo/demo ")


@pytest.mark.parametrize("name", SHELLS)
async def test_tab_completes_files_and_folders_where_they_go(name: str, tmp_path: Path) -> None:
    async with shell(name, tmp_path) as person:
        person.type(f"acp-agent sessions export --output plan{TAB}")
        await person.see(r"acp-agent sessions export --output plan\ one.md ")
        person.type("; acp-agent run --cwd pl" + TAB)
        await person.see("acp-agent run --cwd places/")


@pytest.mark.parametrize("name", SHELLS)
async def test_tab_completes_the_program_by_its_path(name: str, tmp_path: Path) -> None:
    async with shell(name, tmp_path) as person:
        program = shutil.which("acp-agent", path=home_environment(tmp_path)["PATH"])
        person.type(f"{program} docto{TAB}")
        await person.see(f"{program} doctor ")
