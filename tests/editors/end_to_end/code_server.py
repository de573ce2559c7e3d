"""VS Code as code-server, installed once from npm into the user's cache, and driven in Chromium."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.editors.end_to_end.language_pack import language_pack
from tests.support.agent_process import environment
from tests.support.npm_packages import node_modules

ROOT = Path(__file__).resolve().parents[3]
PLUGIN = ROOT / "editor-plugins" / "vscode"
CODE_SERVER = "4.139.1"
NODE = "24.21.0"
_MACHINES = {"x86_64": "x64", "aarch64": "arm64"}  # as Node.js names them
_INSTALL_SECONDS = 2400  # its native modules are compiled
_START_SECONDS = 90
_SCENARIO_SECONDS = 240
_SETTINGS = {
    "security.workspace.trust.enabled": False,
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": False,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "chat.disableAIFeatures": True,
    "telemetry.telemetryLevel": "off",
    "extensions.autoUpdate": False,
    "window.dialogStyle": "custom",
    "files.autoSave": "off",
}


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "acp-agent-editors"


def _npm_install(folder: Path, package: str, environ: Mapping[str, str]) -> None:
    """Install a package into a folder of its own, from nothing; the stamp says that it is whole."""
    stamp = folder / "installed"
    if stamp.exists() and stamp.read_text() == package:
        return
    shutil.rmtree(folder, ignore_errors=True)  # what an earlier, broken attempt left
    folder.mkdir(parents=True)
    (folder / "package.json").write_text('{"private": true}')
    done = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--foreground-scripts", package],
        cwd=folder,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_INSTALL_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"npm could not install {package}: {done.stderr[-1000:]}")
    stamp.write_text(package)


def _installed() -> tuple[Path, Path]:
    """Node.js and the script of code-server, installed if need be (three minutes on two cores).

    Its native modules are compiled: that takes a compiler and Debian's libkrb5-dev, libx11-dev,
    libxkbfile-dev and libsecret-1-dev.
    """
    machine = _MACHINES.get(platform.machine())
    if sys.platform != "linux" or machine is None:
        pytest.skip(f"no Node.js from npm for {sys.platform} on {platform.machine()}")
    cache = _cache()
    cache.mkdir(parents=True, exist_ok=True)
    node = cache / "node24" / "node_modules" / f"node-linux-{machine}"
    entry = cache / "code-server" / "node_modules" / "code-server" / "out" / "node" / "entry.js"
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _npm_install(cache / "node24", f"node-linux-{machine}@{NODE}", os.environ)
        path = f"{node / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
        environ = {**os.environ, "PATH": path, "npm_config_nodedir": str(node)}
        _npm_install(cache / "code-server", f"code-server@{CODE_SERVER}", environ)
    return node / "bin" / "node", entry


def _packaged() -> Path:
    """The extension as it is installed by users."""
    node_modules(PLUGIN)
    done = subprocess.run(
        ["npm", "run", "package"],
        cwd=PLUGIN,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return PLUGIN / "dist" / "acp-agent-vscode.vsix"


@dataclass(frozen=True)
class CodeServer:
    """A running one. `url` is its address."""

    url: str
    chromium: str
    home: Path

    @contextlib.contextmanager
    def speaking(self, language: str) -> Iterator[None]:
        """Let windows opened now be in a language, as "Configure Display Language" does."""
        chosen = self.home / "data" / "User" / "argv.json"
        chosen.write_text(json.dumps({"locale": language}))
        try:
            yield
        finally:
            chosen.unlink()

    def run(
        self,
        scenario: str,
        folder: Path,
        agent: Mapping[str, Any],
        *,
        settings: Mapping[str, Any] | None = None,
        **task: Any,
    ) -> dict[str, Any]:
        """Run a scenario in a folder with an agent; what it saw."""
        (folder / ".vscode").mkdir(exist_ok=True)
        chosen = {"acpAgent.agents": {"acp-agent": agent}, **(settings or {})}
        (folder / ".vscode" / "settings.json").write_text(json.dumps(chosen))
        whole = {
            "url": self.url,
            "chromium": self.chromium,
            "folder": str(folder),
            "scenario": scenario,
            "picturesFolder": os.environ.get("ACP_AGENT_PICTURES"),
            **task,
        }
        done = subprocess.run(
            ["node", "tests/end_to_end/run.mjs", json.dumps(whole)],
            cwd=PLUGIN,
            capture_output=True,
            text=True,
            timeout=_SCENARIO_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        seen = json.loads(done.stdout)
        assert isinstance(seen, dict)
        return seen


@contextlib.contextmanager
def code_server(home: Path) -> Iterator[CodeServer]:
    """A server with the extension, on a free port, with a fresh profile."""
    chromium = shutil.which("chromium")
    if chromium is None or shutil.which("npm") is None:
        pytest.skip("needs chromium and npm on the PATH")
    node, entry = _installed()
    vsix = _packaged()
    base = [
        str(node), str(entry),
        "--user-data-dir", str(home / "data"), "--extensions-dir", str(home / "extensions"),
    ]  # fmt: skip
    environ = environment(home)
    for place in ("User", "Machine"):
        (home / "data" / place).mkdir(parents=True)
        (home / "data" / place / "settings.json").write_text(json.dumps(_SETTINGS))
    language_pack(home / "data", "zh-cn")
    subprocess.run(
        [*base, "--install-extension", str(vsix)],
        env=environ, check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [
        "--auth", "none", "--bind-addr", f"127.0.0.1:{port}", "--disable-telemetry",
        "--disable-update-check", "--disable-workspace-trust", "--disable-getting-started-override",
    ]  # fmt: skip
    with (home / "code-server.log").open("wb") as log:
        server = subprocess.Popen(
            [*base, *options], env=environ, stdout=log, stderr=log, start_new_session=True
        )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(url, server)
            yield CodeServer(url, chromium, home)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, 15)
            try:
                server.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, 9)
                server.wait()


def _wait(url: str, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and server.poll() is None:
        with (
            contextlib.suppress(urllib.error.URLError, ConnectionError),
            urllib.request.urlopen(url),
        ):
            return
        time.sleep(0.2)
    pytest.fail("code-server did not start")
