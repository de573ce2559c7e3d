"""marimo's page in Chromium talks to the agent over a WebSocket, as `acp-agent setup` says."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from tests.editors.end_to_end.devtools import BrowserPage, chromium, open_browser
from tests.editors.end_to_end.others_sources import cache, give_demo, user_environment

MARIMO = "marimo==0.25.2"
AGENT_PORT = 3023  # where marimo's page looks for OpenCode; it has no setting for it
NOTEBOOK = """import marimo
app = marimo.App()

@app.cell
def _():
    greeting = "hello"
    return
"""

# The panel of the sidebar is open from the start, at its tab for agents.
OPEN_PANEL = """
localStorage.setItem('marimo:sidebar', JSON.stringify({selectedPanel: 'ai', isSidebarOpen: true,
    isDeveloperPanelOpen: false, selectedDeveloperPanelTab: 'errors'}));
localStorage.setItem('marimo:chrome:ai-panel-tab', JSON.stringify('agents'));
"""
PROMPT_FIELD = """[...document.querySelectorAll('.cm-content')]
    .find(field => !field.closest('.marimo-cell'))"""
PRESS = """(() => {
  const found = [...document.querySelectorAll('button,[role=menuitem],[role=tab]')]
    .find(one => one.textContent.trim().startsWith(%r));
  if (!found) return false;
  for (const kind of ['pointerdown', 'pointerup', 'click'])
    found.dispatchEvent(new PointerEvent(kind, {bubbles: true, button: 0}));
  return true;
})()"""


@pytest.fixture(scope="module")
def marimo() -> str:
    """The program, installed once into an environment of its own."""
    folder = cache() / MARIMO.replace("==", "-")
    program = folder / "bin" / "marimo"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=120)
        subprocess.run(
            [folder / "bin" / "python", "-m", "pip", "install", "-q", MARIMO],
            check=True,
            timeout=500,
        )
    return str(program)


@contextlib.asynccontextmanager
async def running(
    *command: str, cwd: Path, environ: Mapping[str, str], port: int
) -> AsyncIterator[None]:
    """A server, from when it takes connections on `port`; ended with its group."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env=environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(60):
            while True:
                assert process.returncode is None, command
                with contextlib.suppress(OSError):
                    _, writer = await asyncio.open_connection("localhost", port)
                    writer.close()
                    break
                await asyncio.sleep(0.1)
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), 60)
        except TimeoutError:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def until(page: BrowserPage, expression: str) -> None:
    """Wait until an expression is true in the page."""
    async with asyncio.timeout(60):
        while not await page.run(expression):
            await asyncio.sleep(0.1)


async def press(page: BrowserPage, text: str) -> None:
    """Press what begins with `text`, once it is there."""
    await until(page, PRESS % text)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@pytest.mark.timeout(700)
async def test_a_turn_in_the_panel_asks_and_makes_the_edit(tmp_path: Path, marimo: str) -> None:
    if chromium() is None:
        pytest.skip("needs Debian's package chromium")
    with socket.socket() as taken:
        if taken.connect_ex(("127.0.0.1", AGENT_PORT)) == 0:
            pytest.skip(f"port {AGENT_PORT}, which marimo's page is fixed to, is in use")
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    (project / "notebook.py").write_text(NOTEBOOK)
    (project / "greeting.txt").write_text("hello\n")
    give_demo(home)
    environ = user_environment(home)
    subprocess.run(["acp-agent", "setup", "marimo", "--yes"], env=environ, check=True, timeout=60)
    port = free_port()
    page_address = f"http://localhost:{port}"
    agent = ["acp-agent", "serve", "--listen", f"localhost:{AGENT_PORT}", "--path", "/message"]
    agent += ["--binary", "--no-token", "--allow-origin", page_address]
    agent += ["--trace", str(tmp_path / "trace")]
    notebook = [marimo, "edit", "notebook.py", "--headless", "--no-token", "--skip-update-check"]
    notebook += ["--host", "localhost", "--port", str(port)]
    async with (
        running(*agent, cwd=project, environ=environ, port=AGENT_PORT),
        running(*notebook, cwd=project, environ=environ, port=port),
        open_browser() as page,
    ):
        await page.size(1500, 1000)
        await page.open(page_address)
        await page.run(OPEN_PANEL)
        await page.open(page_address)
        await press(page, "Agents")
        await press(page, "New session")
        await press(page, "New OpenCode")
        await until(page, "document.body.textContent.includes('Agent is connected')")
        await page.run(f"{PROMPT_FIELD}.focus()")
        await page.send("Input.insertText", text="replace hello with goodbye in greeting.txt")
        await page.key("Enter", text="\r")
        await press(page, "Allow once")
        await until(page, "document.body.textContent.includes('1 replacement')")
    assert (project / "greeting.txt").read_text() == "goodbye\n"
    assert "fs/write_text_file" in (tmp_path / "trace").read_text()  # by marimo's own server
