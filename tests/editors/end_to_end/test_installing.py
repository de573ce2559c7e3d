"""The package built, installed in each way that the README names, and used by a foreign client."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.schema import ClientCapabilities

from acp_agent import __version__
from tests.editors.end_to_end.others_sources import cache
from tests.support.sdk_client import PlainClient

ROOT = Path(__file__).resolve().parents[3]
NAME = "acp-agent-server"
TOOLS = ("build", "pipx", "uv")
_NETWORK_SECONDS = 600


@pytest.fixture(scope="module")
def tools() -> Path:
    """The folder with the programs that build and install, made once for the user."""
    folder = cache() / "packaging"
    if not (folder / "bin" / "uvx").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=120)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *TOOLS]
        if subprocess.run(pip, check=False, timeout=_NETWORK_SECONDS).returncode:
            pytest.skip("build, pipx and uv cannot be had here")
    return folder / "bin"


@pytest.fixture(scope="module")
def built(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the source distribution, and with the wheel that was built of it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [str(tools / "python"), "-m", "build", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, timeout=_NETWORK_SECONDS)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    """The wheel."""
    (found,) = built.glob("*.whl")
    return found


def environment(home: Path) -> dict[str, str]:
    """Somebody's who has no key and no configuration, with this machine's way to PyPI."""
    ours = {name: os.environ[name] for name in os.environ if name.startswith(("PIP_", "UV_"))}
    return ours | {
        "HOME": str(home),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "UV_SYSTEM_CERTS": "true",
        "UV_NATIVE_TLS": "true",
        "UV_CACHE_DIR": str(cache() / "uv"),
    }


def tracked(*folders: str) -> set[str]:
    """The files of the repository below some folders that are there."""
    listed = subprocess.run(
        ["git", "ls-files", "--", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return {name for name in listed if (ROOT / name).is_file()}


def test_the_wheel_has_every_file_of_the_package_and_nothing_besides(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert tracked("acp_agent", "protocol") <= names
    about = f"acp_agent_server-{__version__}.dist-info"
    assert {f"{about}/licenses/LICENSE", f"{about}/METADATA", f"{about}/RECORD"} <= names
    folders = {name.split("/", 1)[0] for name in names}
    assert folders == {"acp_agent", "protocol", about}
    unwanted = ("test", "__pycache__", "node_modules", ".pyc", ".orig", ".log")
    assert [name for name in names if any(part in name for part in unwanted)] == []


def test_the_source_distribution_has_what_the_wheel_is_built_of_alone(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    below = {name.split("/", 1)[0] for name in names}
    assert below == {
        "acp_agent", "protocol", "schemas", "editor-plugins", "pyproject.toml", "PKG-INFO",
        "README.md", "LICENSE", "CHANGELOG.md", ".gitignore",
    }  # fmt: skip
    assert tracked("acp_agent", "protocol", "schemas") <= names
    assert [name for name in names if "/tests/" in name or "node_modules" in name] == []


def ours(folder: Path) -> list[str]:
    """What of the package lies below a folder where it is installed."""
    names = {
        "acp_agent": "site-packages",
        "protocol": "site-packages",
        f"acp_agent_server-{__version__}.dist-info": "site-packages",
        "acp-agent": "bin",
        "acp-agent-server": "bin",
    }
    return [path.name for path in folder.rglob("*") if names.get(path.name) == path.parent.name]


def says_its_version(command: Sequence[str], home: Path) -> None:
    """Which leaves nothing of ours behind in the user's home."""
    ran = subprocess.run(
        [*command, "--version"], env=environment(home), cwd=home, capture_output=True, text=True,
        timeout=120, check=True,
    )  # fmt: skip
    assert ran.stdout == f"acp-agent {__version__}\n"
    assert [path for path in home.rglob("*") if "acp-agent" in path.name] == []


async def is_used(command: Sequence[str], home: Path) -> None:
    """Shake hands from an empty home, choose the demo, and have a turn; then the other commands."""
    says_its_version(command, home)
    environ = environment(home)
    visitor = PlainClient()
    async with spawn_agent_process(visitor, command[0], *command[1:], env=environ, cwd=home) as (
        connection,
        _,
    ):
        answered = await connection.initialize(PROTOCOL_VERSION, ClientCapabilities())
        assert answered.agent_info is not None
        assert answered.agent_info.version == __version__
        await connection.authenticate(method_id="demo")
        session = await connection.new_session(cwd=str(home), mcp_servers=[])
        turn = await connection.prompt(
            session_id=session.session_id, prompt=[text_block("Who are you?")]
        )
        assert turn.stop_reason == "end_turn"
        assert visitor.text()
    for arguments, expected in (
        (["version"], f"acp-agent {__version__}"),
        (["run", "--model", "demo/demo", "hello"], ""),
        (["tour"], "acp-agent login"),
        (["completion", "bash"], "complete -F _acp_agent acp-agent"),
    ):
        ran = subprocess.run(
            [*command, *arguments],
            env=environ,
            cwd=home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, (arguments, ran.stdout, ran.stderr)
        assert expected in ran.stdout


@pytest.mark.timeout(900)
async def test_pip_installs_it_by_its_name_and_removes_it_without_a_trace(
    built: Path, tmp_path: Path
) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True, timeout=120)
    pip = [str(venv / "bin" / "python"), "-m", "pip"]
    install = [*pip, "install", "--quiet", "--find-links", str(built), NAME]
    subprocess.run(install, check=True, timeout=_NETWORK_SECONDS)
    subprocess.run([*pip, "check"], check=True, timeout=120)
    await is_used([str(venv / "bin" / "acp-agent")], home_in(tmp_path))
    assert len(ours(venv)) == 5
    subprocess.run([*pip, "uninstall", "--quiet", "--yes", NAME], check=True, timeout=120)
    assert ours(venv) == []


@pytest.mark.timeout(900)
def test_what_is_built_of_the_source_distribution_is_the_same(
    tools: Path, built: Path, tmp_path: Path
) -> None:
    (source,) = built.glob("*.tar.gz")
    command = [str(tools / "pip"), "wheel", "--quiet", "--no-deps", "--no-cache-dir"]
    command += ["--wheel-dir", str(tmp_path), str(source)]
    subprocess.run(command, check=True, timeout=_NETWORK_SECONDS)
    (again,) = tmp_path.glob("*.whl")
    (first,) = built.glob("*.whl")
    assert contents(again) == contents(first)


def contents(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.timeout(900)
async def test_pipx_installs_it_by_its_name_and_removes_it_without_a_trace(
    tools: Path, built: Path, tmp_path: Path
) -> None:
    environ = environment(tmp_path) | {
        "PIPX_HOME": str(tmp_path / "pipx"),
        "PIPX_BIN_DIR": str(tmp_path / "bin"),
        "PIPX_DEFAULT_PYTHON": sys.executable,
    }
    install = [str(tools / "pipx"), "install", f"--pip-args=--find-links {built}", NAME]
    subprocess.run(install, env=environ, check=True, capture_output=True, timeout=_NETWORK_SECONDS)
    assert sorted(path.name for path in (tmp_path / "bin").iterdir()) == [
        "acp-agent", "acp-agent-server",
    ]  # fmt: skip
    await is_used([str(tmp_path / "bin" / "acp-agent")], home_in(tmp_path))
    remove = [str(tools / "pipx"), "uninstall", NAME]
    subprocess.run(remove, env=environ, check=True, capture_output=True, timeout=120)
    assert ours(tmp_path / "bin") == ours(tmp_path / "pipx") == []


@pytest.mark.timeout(900)
async def test_uvx_runs_it(tools: Path, built: Path, tmp_path: Path) -> None:
    packages = ["--python", sys.executable, "--find-links", str(built), "--refresh-package", NAME]
    command = [str(tools / "uvx"), *packages, "--from", NAME, "acp-agent"]
    await is_used(command, home_in(tmp_path))


@pytest.mark.timeout(900)
async def test_uvx_runs_it_as_the_registrys_clients_do(
    tools: Path, built: Path, tmp_path: Path
) -> None:
    packages = ["--python", sys.executable, "--find-links", str(built), "--no-cache"]
    command = [str(tools / "uvx"), *packages, f"acp-agent-server@{__version__}"]
    visitor, home = PlainClient(), home_in(tmp_path)
    async with spawn_agent_process(
        visitor, command[0], *command[1:], env=environment(home), cwd=home
    ) as (connection, _):
        answered = await connection.initialize(PROTOCOL_VERSION, ClientCapabilities())
        assert answered.agent_info is not None
        assert answered.agent_info.version == __version__
        assert answered.auth_methods


def home_in(folder: Path) -> Path:
    """An empty home."""
    home = folder / "home"
    home.mkdir()
    return home
