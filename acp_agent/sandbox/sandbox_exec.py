"""Confine programs on macOS with sandbox-exec(1) and a profile in its language, SBPL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from acp_agent.platform.posix import is_below
from acp_agent.sandbox.bubblewrap import limit_command
from acp_agent.sandbox.launch import Launch, SandboxedProgram
from acp_agent.sandbox.policy import MountKind, SandboxPolicy

PROGRAM = "/usr/bin/sandbox-exec"
# The rules for a path and everything below it.
_RULES: dict[MountKind, str] = {
    "write": "(allow file-read* file-write* (subpath {path}))",
    "read": "(deny file-write* (subpath {path}))\n(allow file-read* (subpath {path}))",
    "hide": "(deny file-read* file-write* (subpath {path}))",
}
# Moving such a folder would also move the protected paths below it.
_UNMOVABLE_RULE = "(deny file-write-unlink (literal {path}))"


class SandboxExec:
    """A `Backend`: sandbox-exec."""

    name = "sandbox-exec"
    has_network = False
    notice = (
        "Commands are confined with sandbox-exec. They cannot use the network or servers of this "
        "computer. This part of the program has not been tried on a Mac by its authors."
    )

    @property
    def for_helpers(self) -> SandboxExec:
        """This backend itself; see `Backend`."""
        return self

    def temporary(self, policy: SandboxPolicy) -> str:
        """Return the path of the temporary folder; see `Backend`."""
        return policy.temporary

    def launch(self, program: SandboxedProgram) -> Launch:
        """Return how to start a program; see `Backend`."""
        # The caller starts it in `cwd`, and it reaches no host.
        policy = program.policy
        text, parameters = profile(policy.with_new_names(program.mounts))
        command = [PROGRAM, "-p", text]
        command += [f"-D{name}={path}" for name, path in parameters.items()]
        command += ["--", *limit_command(program.argv, policy.config.limits)]
        return Launch(
            tuple(command), policy.environ(program.environ, policy.temporary or "/", offline=True)
        )


def profile(kinds: Mapping[str, MountKind]) -> tuple[str, dict[str, str]]:
    """Return a profile and its parameters.

    Args:
        kinds: the kinds of absolute paths without links. Each also applies to all paths below that
            are not in the table. All other paths may be read.
    """
    parameters: dict[str, str] = {}
    rules = [_template()]

    def add(rule: str, path: str) -> None:
        name = f"PATH_{len(parameters)}"
        parameters[name] = path
        rules.append(rule.format(path=f'(param "{name}")'))

    for path, kind in sorted(kinds.items(), key=lambda line: line[0].rstrip("/").count("/")):
        add(_RULES[kind], path)
    for path in sorted(set(_unmovable_folders(kinds))):
        add(_UNMOVABLE_RULE, path)
    return "\n".join(rules) + "\n", parameters


def _unmovable_folders(kinds: Mapping[str, MountKind]) -> Iterator[str]:
    """Yield the writable folders that contain a path that must not be changed."""
    writable = [path for path, kind in kinds.items() if kind == "write"]
    for path, kind in kinds.items():
        folder = path
        while kind != "write" and (folder := folder.rpartition("/")[0]):
            if any(is_below(folder, root) for root in writable):
                yield folder


@cache
def _template() -> str:
    return (files(__package__) / "sandbox_exec.sb").read_text("utf-8")
