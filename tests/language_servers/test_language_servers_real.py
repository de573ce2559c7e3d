"""Real language servers report what an edit breaks, in other files too, and nothing of a fine one.

`make test-language-servers` installs those that npm and PyPI have.
"""

from __future__ import annotations

import os
import re
import shutil
import sysconfig
import tomllib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from acp_agent.config.sandbox_types import SandboxConfig
from acp_agent.language_servers.edit_checks import EditChecks
from acp_agent.language_servers.pool import ServerPool
from acp_agent.language_servers.problems import Problem, describe_problems
from acp_agent.language_servers.service import LanguageServers
from acp_agent.language_servers.syntax_check import SyntaxChecks
from acp_agent.sandbox.launch import Confine, unconfined
from acp_agent.sandbox.policy import SandboxPolicy
from acp_agent.sandbox.programs import launch_service
from acp_agent.sandbox.sandbox import Unavailable, find_backend
from acp_agent.workspace.files import WorkspaceFiles
from tests.support.waiting import until

FOLDER = Path(__file__).parent
SERVERS = tomllib.loads((FOLDER / "real_servers.toml").read_text())
FOLDERS = (FOLDER / "npm" / "node_modules" / ".bin", sysconfig.get_path("scripts"))


class Project:
    """A project whose files one server checks."""

    def __init__(self, root: Path, servers: LanguageServers, checks: EditChecks) -> None:
        self.root = root
        self.checks = checks
        self._servers = servers

    async def is_known(self, path: Path) -> None:
        """Wait until a server knows the file's problems."""
        self.checks.record_read(path)
        await until(lambda: not self._servers._tasks, within=60)
        (server,) = self._servers.servers_for(path)
        assert server.running is not None, server.last_error

    async def edit(self, path: Path, change: Sequence[str], expected: str = "") -> list[str]:
        """Make an edit; return the problems reported with it, and after it until the wanted one."""
        old = path.read_text()
        assert change[0] in old
        path.write_text(old.replace(change[0], change[1]))
        self.checks.record_change(path, old)
        problems: list[Problem] = list(await self.checks.problems())
        await until(lambda: not self._servers._tasks, within=60)

        def reported() -> list[str]:
            problems.extend(self.checks.late_problems())
            return describe_problems(problems, self.root).splitlines()

        with suppress(TimeoutError):
            await until(
                lambda: any(re.match(expected, line) for line in ["", *reported()]), within=20
            )
        return reported()


def confine_in(folder: Path, environ: Mapping[str, str]) -> Confine:
    """What starts the servers: in the sandbox that they have in sessions, where there is one."""
    backend = find_backend(os.environ["PATH"])
    if isinstance(backend, Unavailable):
        return unconfined
    policy = SandboxPolicy(
        roots=(os.path.realpath(folder / "project"),),
        home=str(folder),
        program_files=(),
        readable=(),
        temporary=os.path.realpath(folder / "temporary"),
        search_path=environ["PATH"],
        config=SandboxConfig(),
    )
    return lambda argv, given, cwd: launch_service(backend, argv, given, policy=policy, cwd=cwd)


@asynccontextmanager
async def project(folder: Path, case: dict[str, Any]) -> AsyncIterator[Project]:
    """A project in which only the program of a case is found, and the project is not trusted."""
    folders = [*map(str, FOLDERS), os.environ["PATH"]]
    program = shutil.which(case["program"], path=os.pathsep.join(folders))
    if program is None:
        pytest.skip(f"{case['program']} is not installed: make test-language-servers")
    root, programs = folder / "project", folder / "bin"
    root.mkdir()
    programs.mkdir()
    for name, text in case["files"].items():
        (root / name).write_text(text)
    (programs / case["program"]).symlink_to(program)
    path = f"{programs}:{os.environ['PATH']}" if case.get("installed_by") == "npm" else programs
    files = WorkspaceFiles(root)
    environ = {**os.environ, "PATH": f"{path}:/usr/bin:/bin", "HOME": str(folder)}
    pool = ServerPool(environ, confine_in(folder, environ))
    named = [spec for spec in SERVERS if spec != case["name"]]
    servers = LanguageServers(pool, files, {}, lambda: False)
    servers._specs = tuple(spec for spec in servers._specs if spec.name not in named)
    try:
        syntax = SyntaxChecks([root], os.environ["PATH"])
        yield Project(root, servers, EditChecks(servers, syntax.new_problems))
    finally:
        await servers.aclose()
        await pool.aclose()


@pytest.mark.timeout(180)
@pytest.mark.parametrize("server", SERVERS)
async def test_a_server_reports_only_new_problems(server: str, tmp_path: Path) -> None:
    case = {"name": server, **SERVERS[server]}
    async with project(tmp_path, case) as at:
        first = at.root / next(iter(case["files"]))
        for name in (first.name, *case.get("read", ())):
            await at.is_known(at.root / name)
        for part in ("breaks", "other"):
            if part not in case:
                continue
            *change, expected = case[part]
            reported = await at.edit(first, change, expected)
            assert any(re.match(expected, line) for line in reported), reported
            if part == "breaks":
                assert all(re.match(expected, line) for line in reported), reported
                assert await at.edit(first, case["fine"]) == []
