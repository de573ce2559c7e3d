"""No ignore file makes a search or a checkpoint wait without end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from acp_agent.errors import WorkspaceError
from acp_agent.workspace.folder_listing import list_folder
from acp_agent.workspace.search import find_files, find_lines
from tests.support.orphans import child_processes
from tests.workspace.checkpoint_folder import Checkpoints, write_files

GUARD = 60.0  # seconds; a search or a checkpoint that waited would end with another error

SEARCHES: dict[str, Callable[[Path], Awaitable[object]]] = {
    "list": lambda root: list_folder(root, depth=1, limit=100),
    "glob": lambda root: find_files(root, "*.py", limit=100),
    "grep": lambda root: find_lines(
        root, "x", glob=None, ignore_case=False, context=0, limit=100, width=80
    ),
}


@pytest.fixture
def project(root: Path) -> Path:
    write_files(root, {"a.py": "x\n", "sub/b.py": "x\n", "sub/deep/c.py": "x\n"})
    return root


async def refusal(search: Awaitable[object]) -> str:
    """Why a search fails, with nothing left behind."""
    before = child_processes()
    with pytest.raises(WorkspaceError) as failed:
        async with asyncio.timeout(GUARD):
            await search
    assert child_processes() == before
    return str(failed.value)


@pytest.mark.parametrize("path", ["", "sub/deep/"])
@pytest.mark.parametrize("name", [".gitignore", ".ignore", ".rgignore", ".git/info/exclude"])
@pytest.mark.parametrize("search", SEARCHES)
async def test_a_search_names_the_pipe_that_it_would_wait_for(
    project: Path, search: str, name: str, path: str
) -> None:
    pipe = project / path / name
    pipe.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(pipe)
    assert str(pipe) in await refusal(SEARCHES[search](project))


@pytest.mark.parametrize("path", ["", "sub/"])
async def test_a_search_names_the_device_and_the_large_file_that_it_would_read(
    project: Path, path: str
) -> None:
    (project / path / ".ignore").symlink_to("/dev/zero")
    assert ".ignore" in await refusal(SEARCHES["list"](project))
    (project / path / ".ignore").unlink()
    with (project / path / ".gitignore").open("wb") as file:
        file.truncate(20_000_000_000)
    assert ".gitignore" in await refusal(SEARCHES["list"](project))


async def test_an_ignore_file_that_links_to_the_null_device_is_ordinary(
    project: Path,
) -> None:
    (project / ".gitignore").symlink_to(os.devnull)
    assert (await find_files(project, "*.py", limit=100)).total == 3


@pytest.mark.parametrize(("name", "total"), [(".ignore", 2), (".gitignore", 3)])
async def test_a_pipe_above_the_project_does_not_keep_the_user_from_searching(
    project: Path, name: str, total: int
) -> None:
    write_files(project, {".gitignore": "b.py\n"})
    os.mkfifo(project.parent / name)
    async with asyncio.timeout(GUARD):
        assert (await find_files(project, "*.py", limit=100)).total == total


@pytest.mark.parametrize("path", ["", "sub/deep/"])
@pytest.mark.parametrize("name", [".gitignore", ".gitattributes"])
def test_a_pipe_does_not_delay_a_checkpoint(
    history: Checkpoints, project: Path, name: str, path: str
) -> None:
    os.mkfifo(project / path / name)
    with pytest.raises(WorkspaceError, match=name):
        history.save()
    (project / path / name).unlink()
    history.save()
