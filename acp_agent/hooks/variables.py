"""Variables of the environment that a hook sets for commands, by a file of shell assignments."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Self

ENV_FILE = "CLAUDE_ENV_FILE"

_MAX_FILE_SIZE = 100_000  # bytes of the file
_MAX_VARIABLES = 500  # variables
_NAME = re.compile(r"[A-Za-z_]\w*")
_SHELL_VARIABLES = frozenset({ENV_FILE, "PWD", "OLDPWD", "SHLVL", "_"})
_MARK = "\0variables\0"


class HookVariables:
    """A file to which a hook writes assignments; it is removed on exit."""

    def __init__(self) -> None:
        self.file = Path(tempfile.mkdtemp(prefix="acp-agent-hook-")) / "variables.sh"
        self.file.touch()

    def __enter__(self) -> Self:
        """Return this."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the file."""
        shutil.rmtree(self.file.parent, ignore_errors=True)

    def reader(self) -> list[str] | None:
        """Return the program that prints the variables; None if the file is empty or too long."""
        try:
            size = self.file.stat().st_size
        except OSError:
            return None
        if not 0 < size <= _MAX_FILE_SIZE:
            return None
        shell = shutil.which("bash") or "/bin/sh"
        line = f'. "${ENV_FILE}" >/dev/null 2>&1; printf "\\0variables\\0"; env -0'
        return [shell, "-c", line]

    def read(self, output: str, before: Mapping[str, str]) -> dict[str, str]:
        """Return the variables in the output of `reader` that differ from those before."""
        variables: dict[str, str] = {}
        for line in output.partition(_MARK)[2].split("\0"):
            name, equals, value = line.partition("=")
            if (
                equals
                and _NAME.fullmatch(name)
                and name not in _SHELL_VARIABLES
                and before.get(name) != value
            ):
                variables[name] = value
        return dict(list(variables.items())[:_MAX_VARIABLES])
