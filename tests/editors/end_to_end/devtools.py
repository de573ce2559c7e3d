"""Chromium without a window, driven over its DevTools protocol.

async with open_browser() as page:
    await page.open(path.as_uri())
    await page.run("document.title")   # the value of an expression, awaited where it is a promise
    page.complaints     # errors and warnings of the console
    page.requests       # addresses that were asked for; those of them that were not let through
    page.blocked        # are here, too
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import websockets

Json = dict[str, Any]

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars", "--remote-debugging-port=0",
)  # fmt: skip


def chromium() -> str | None:
    """The program, None where there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class BrowserPage:
    """A page of the browser. Every wait ends after `patience` seconds."""

    def __init__(self, connection: websockets.ClientConnection, *, patience: float = 30.0) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.blocked: list[str] = []
        self._addresses: dict[str, str] = {}  # by the ids of their requests
        self._connection = connection
        self._patience = patience
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Json]] = {}
        self._loaded = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def aclose(self) -> None:
        """Stop reading."""
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def send(self, method: str, **params: Any) -> Json:
        """A command of the protocol; its result."""
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._connection.send(json.dumps({"id": number, "method": method, "params": params}))
        async with asyncio.timeout(self._patience):
            said = await answer
        assert "error" not in said, said["error"]
        result: Json = said["result"]
        return result

    async def open(self, address: str) -> None:
        """Go to an address and wait until it is loaded."""
        self._loaded.clear()
        self.requests.clear()
        await self.send("Page.navigate", url=address)
        async with asyncio.timeout(self._patience):
            await self._loaded.wait()

    async def run(self, expression: str) -> Any:
        """What an expression gives in the page, as JSON."""
        done = await self.send(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    async def painted(self) -> None:
        """Wait until the page as it is now is drawn."""
        await self.run("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")

    async def busy_seconds(self) -> float:
        """Processor time that the main thread has spent since the page was opened.

        It does not grow with what else the machine does, as the time on a clock would.
        """
        metrics: list[Json] = (await self.send("Performance.getMetrics"))["metrics"]
        return next(float(one["value"]) for one in metrics if one["name"] == "TaskDuration")

    async def dress(self, scheme: str, *, media: str = "") -> None:
        """Prefer `light` or `dark`; `print` as `media` shows the page as it is printed."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await self.send("Emulation.setEmulatedMedia", media=media, features=features)

    async def size(self, width: int, height: int) -> None:
        """Make the window so large."""
        await self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    async def key(self, key: str, *, text: str = "") -> None:
        """Press and release a key."""
        for kind in ("keyDown", "keyUp"):
            said = {"text": text} if kind == "keyDown" and text else {}
            await self.send("Input.dispatchKeyEvent", type=kind, key=key, **said)

    async def picture(self, path: Path) -> None:
        """Take a picture of what the window shows, as PNG."""
        shot = await self.send("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(shot["data"]))

    async def _read(self) -> None:
        async for line in self._connection:
            said: Json = json.loads(line)
            if "id" in said:
                self._answers.pop(said["id"]).set_result(said)
                continue
            params: Json = said["params"]
            match said["method"]:
                case "Page.loadEventFired":
                    self._loaded.set()
                case "Network.requestWillBeSent":
                    self.requests.append(params["request"]["url"])
                    self._addresses[params["requestId"]] = params["request"]["url"]
                case "Network.loadingFailed" if params.get("blockedReason"):
                    self.blocked.append(self._addresses[params["requestId"]])
                case "Runtime.exceptionThrown":
                    self.complaints.append(str(params["exceptionDetails"]))
                case "Log.entryAdded":
                    self.complaints.append(params["entry"]["text"])
                case "Runtime.consoleAPICalled":
                    self.complaints.append(str(params["args"]))
                case _:
                    pass


@contextlib.asynccontextmanager
async def open_browser() -> AsyncIterator[BrowserPage]:
    """A browser with a fresh profile and one empty page; it is ended with all its processes."""
    program = chromium()
    assert program is not None, "install Debian's package chromium"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            program,
            *_FLAGS,
            f"--user-data-dir={profile}",
            "about:blank",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            port = await _port(Path(profile) / "DevToolsActivePort")
            address = await _page_address(port)
            async with websockets.connect(
                address, max_size=None, compression=None, proxy=None
            ) as connection:
                page = BrowserPage(connection)
                try:
                    for domain in ("Page", "Runtime", "Network", "Log"):
                        await page.send(f"{domain}.enable")
                    await page.send("Performance.enable", timeDomain="threadTicks")
                    yield page
                finally:
                    await page.aclose()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def _port(file: Path) -> int:
    async with asyncio.timeout(60):
        while not (file.exists() and (lines := file.read_text().splitlines())):
            await asyncio.sleep(0.05)
    return int(lines[0])


async def _page_address(port: int) -> str:
    """Where the one page takes commands; `/json/list` says so over HTTP."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /json/list HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port)
    async with asyncio.timeout(60):
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in head.splitlines()
            if line.lower().startswith(b"content-length:")
        )
        pages: list[Json] = json.loads(await reader.readexactly(length))
    writer.close()
    return next(str(page["webSocketDebuggerUrl"]) for page in pages if page["type"] == "page")
