"""Check the syntax of changed files for which no language server runs.

Parsers run in processes of their own: a small text can keep one busy for long, or make it crash.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from acp_agent.errors import WorkspaceError
from acp_agent.language_servers.problems import Problem
from acp_agent.language_servers.syntax_parsers import (
    PARSERS,
    Edit,
    Mistake,
    file_language,
    find_mistakes,
)
from acp_agent.platform.posix import find_program, outside_folders
from acp_agent.sandbox.launch import Confine, unconfined
from acp_agent.workspace.child_process import end_process, start_confined
from acp_agent.workspace.worker_process import run_in_process

# What takes longer is not reported. A parser may compute for the first time only; a busy machine
# takes longer to start one.
MAX_CPU_SECONDS, MAX_SECONDS = 0.3, 2.0
_MAX_LENGTH = 1_000_000
_MAX_FILES = 20  # of one check
_MAX_REPORTED = 3
_MAX_LINE = 120  # characters that are shown
_MAX_OUTPUT = 1 << 16  # bytes
_NODE_ERROR = re.compile(
    r"^\[stdin\]:(\d+)\n(?:.*\n)?( *)\^.*\n(?:.*\n)*?SyntaxError: (.+)", re.MULTILINE
)
_IN_MODULE = re.compile(r"import|export|await")
_SHELL_ERROR = re.compile(r"^/dev/stdin: line (\d+): (.+)", re.MULTILINE)
_OTHER_SHELL = re.compile(r"#!.*\b(?!(?:ba|da|a)?sh\b)\w*(?:sh|python\d?|perl|node|expect|awk)\b")
# What is no JavaScript, and yet usual in files that end in .js: JSX, Flow, decorators, templates.
_TEMPLATED = re.compile(r"(?<!\$)\{\{|\{%|<%")
_DIALECT = re.compile(r"@flow\b|\{%|<%|</\w*>|/>|^\s*@\w", re.MULTILINE)


class SyntaxChecks:
    """Checks texts of a session.

    Args:
        roots: the session's folders, in which programs are the project's and are not run.
        confine: says how programs are started.
    """

    def __init__(
        self, roots: Sequence[Path], search_path: str, confine: Confine = unconfined
    ) -> None:
        self._confine = confine
        self._path = outside_folders(search_path, roots)

    async def new_problems(self, changes: Mapping[Path, tuple[str | None, str]]) -> list[Problem]:
        """Return the mistakes that changes made, at most three; none where it takes too long.

        Args:
            changes: the texts before (None: there was none) and after, by absolute path.
        """
        edits: dict[str, list[Edit]] = {}
        for path, (old, new) in list(changes.items())[:_MAX_FILES]:
            language = file_language(str(path))
            if language and max(len(new), len(old or "")) <= _MAX_LENGTH:
                kind = "parsed" if language in PARSERS else language
                edits.setdefault(kind, []).append((str(path), old, new))
        checks = {"parsed": self._parse, "javascript": self._javascript, "shell": self._shell}
        results = await asyncio.gather(
            *(self._with_timeout(checks[kind](edits[kind])) for kind in edits)
        )
        texts = {str(path): new for path, (_, new) in changes.items()}
        problems = [
            _problem(path, texts[path], mistake) for result in results for path, mistake in result
        ]
        return problems[:_MAX_REPORTED]

    async def _with_timeout(
        self, work: Awaitable[list[tuple[str, Mistake]]]
    ) -> list[tuple[str, Mistake]]:
        try:
            async with asyncio.timeout(MAX_SECONDS):
                return await work
        except (TimeoutError, WorkspaceError, OSError):
            return []

    async def _parse(self, edits: Sequence[Edit]) -> list[tuple[str, Mistake]]:
        function = f"{find_mistakes.__module__}:{find_mistakes.__name__}"
        result_type = list[tuple[str, Mistake]]
        return await run_in_process(
            function,
            {"edits": edits},
            result_type,
            seconds=MAX_SECONDS,
            cpu_seconds=MAX_CPU_SECONDS,
            confine=self._confine,
        )

    async def _javascript(self, edits: Sequence[Edit]) -> list[tuple[str, Mistake]]:
        node = find_program("node", self._path)

        async def mistake(path: str, text: str) -> Mistake | None:
            kinds = {".mjs": ("module",), ".cjs": ("commonjs",)}
            first_mistake = None
            # What a .js is depends on packages and bundlers: it is wrong if it is neither.
            for kind in kinds.get(Path(path).suffix, ("commonjs", "module")):
                output = await self._run(text, str(node), f"--input-type={kind}", "--check", "-")
                error = _NODE_ERROR.search(output)
                if error is None:
                    return None
                # Otherwise it is no module.
                if first_mistake is None or _IN_MODULE.search(first_mistake[2]):
                    first_mistake = int(error[1]), len(error[2]) + 1, error[3]
            return None if _DIALECT.search(text) else first_mistake

        return [] if node is None else await _new_mistakes(edits, mistake)

    async def _shell(self, edits: Sequence[Edit]) -> list[tuple[str, Mistake]]:
        bash = find_program("bash", self._path)

        async def mistake(_path: str, text: str) -> Mistake | None:
            if _OTHER_SHELL.match(text) or _TEMPLATED.search(text):
                return None
            output = await self._run(text, str(bash), "-O", "extglob", "-n", "/dev/stdin")
            error = _SHELL_ERROR.search(output)
            return None if error is None else (int(error[1]), 1, error[2])

        return [] if bash is None else await _new_mistakes(edits, mistake)

    async def _run(self, text: str, *command: str) -> str:
        """Return what a program says of a text that it reads on stdin; "" if it finds no fault.

        Raises:
            OSError: it cannot be started.
        """
        environ = {"PATH": os.defpath, "LC_ALL": "C"}  # without NODE_OPTIONS, BASH_ENV and the like
        process = await start_confined(
            self._confine,
            command,
            environ,
            "/",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stderr is not None
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it has seen enough
                process.stdin.write(text.encode("utf-8", "replace"))
                await process.stdin.drain()
            process.stdin.close()
            output = bytearray()
            while piece := await process.stderr.read(_MAX_OUTPUT):
                output += piece[: _MAX_OUTPUT - len(output)]
            return "" if await process.wait() == 0 else output.decode("utf-8", "replace")
        finally:
            await end_process(process)


async def _new_mistakes(
    edits: Sequence[Edit], check: Callable[[str, str], Awaitable[Mistake | None]]
) -> list[tuple[str, Mistake]]:
    """Return what a program finds in the new texts, where it found nothing in those before."""
    result = []
    for path, old, new in edits:
        mistake = await check(path, new)
        if mistake is not None and (not old or await check(path, old) is None):
            result.append((path, mistake))
    return result


def _problem(path: str, text: str, mistake: Mistake) -> Problem:
    line, column, message = mistake
    lines = text.split("\n")
    source_line = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    if len(source_line) > _MAX_LINE:
        source_line = source_line[: _MAX_LINE - 1] + "…"
    message = f"{message}: {source_line}" if source_line else message
    return Problem(path=path, line=line, column=column, message=message, source="syntax")
