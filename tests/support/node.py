"""Programs that run on Node.js, from the pinned npm packages of `tests/interop`."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.support.npm_packages import FOLDER, node_modules

_ACPX_NEEDS = (22, 13)


def node(at_least: tuple[int, int] = (18, 0)) -> str:
    """A Node.js of at least this version: the machine's, or the one that the packages bring."""
    modules = node_modules()
    brought = [str(path) for path in modules.glob("node-*/bin/node")]
    for path in (shutil.which("node"), *brought):
        if path is not None and _version(path) >= at_least:
            return path
    wanted = ".".join(str(part) for part in at_least)
    pytest.skip(f"needs Node.js {wanted}: the machine's is older and none is packaged for it")


def _version(path: str) -> tuple[int, int]:
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return (0, 0)  # one that is packaged for another kind of machine
    major, minor, *_ = done.stdout.strip().removeprefix("v").split(".")
    return int(major), int(minor)


async def run_node(
    *arguments: str,
    environ: Mapping[str, str],
    timeout: float = 60.0,
    node_path: str | None = None,
    interrupt_when: Callable[[], bool] | None = None,
) -> tuple[int, str, str]:
    """Run Node.js in `tests/interop`; its exit status, stdout and stderr.

    `interrupt_when` is looked at all the time; once it is true, the program gets a Ctrl-C.
    """
    program = node_path or node()
    path = f"{Path(program).parent}{os.pathsep}{environ.get('PATH', '')}"
    process = await asyncio.create_subprocess_exec(
        program,
        *arguments,
        cwd=FOLDER,
        env=dict(environ) | {"PATH": path},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(timeout):
            ending = asyncio.ensure_future(process.communicate())
            while interrupt_when is not None and not ending.done():
                if interrupt_when():
                    process.send_signal(signal.SIGINT)
                    break
                await asyncio.sleep(0.02)
            out, err = await ending
    except TimeoutError:
        process.kill()
        out, err = await process.communicate()
        pytest.fail(f"node {arguments[0]} did not end:\n{out.decode()}\n{err.decode()}")
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


def acpx() -> tuple[str, str]:
    """Node.js and the script that make up acpx."""
    return node(_ACPX_NEEDS), str(node_modules() / "acpx" / "dist" / "cli.js")
