"""The checks of `acp-agent doctor` for MCP servers, hooks and workflows.

They report what a session finds, and nothing if there are none. Skills, agents and plugins have
a separate check.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from acp_agent.cli.doctor_checks import Finding
from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.config.load import load_config
from acp_agent.config.paths import Paths
from acp_agent.config.types import Config
from acp_agent.errors import ConfigError
from acp_agent.extensions.definitions.locations import find_folders
from acp_agent.extensions.mcp.configured import find_servers, first_of_each_name
from acp_agent.hooks.sources import find_hooks
from acp_agent.trust.items import Item
from acp_agent.trust.store import TrustStore


def check_servers(paths: Paths, environ: Mapping[str, str], cwd: Path) -> list[Finding]:
    """Return the MCP servers of a session in `cwd`, and errors in their files."""
    config = _config(paths, environ)
    found = find_servers(
        config,
        paths.config_file,
        cwd,
        environ,
        folders=find_folders(cwd, user=paths.config_file.parent, home=Path.home()),
        trusts=TrustStore(paths.trust_file, config.trusted_folders).trusts,
    )
    names = [one.name for one in first_of_each_name(found.servers) if one.options.enabled]
    return [
        *_counted(translate("MCP servers: {names}", names=", ".join(names)), names),
        *_untrusted(found.untrusted),
        *(Finding("broken", translate_rendered(problem)) for problem in found.problems),
    ]


def check_hooks(paths: Paths, environ: Mapping[str, str], cwd: Path) -> list[Finding]:
    """Return the number of hooks of a session in `cwd`, and errors in their files."""
    config = _config(paths, environ)
    found = find_hooks(
        config.hooks,
        config_file=str(paths.config_file),
        home=Path.home(),
        folders=find_folders(cwd, user=paths.config_file.parent, home=Path.home()),
        cwd=cwd,
        confine_own=config.sandbox.hooks,
        trusts=TrustStore(paths.trust_file, config.trusted_folders).trusts,
    )
    problems = [f"{one.path}: {translate_rendered(one.why)}" for one in found.problems]
    return [
        *_counted(translate("hooks: {count}", count=len(found.hooks)), found.hooks),
        *_untrusted(found.untrusted),
        *(Finding("broken", problem) for problem in problems),
    ]


def check_workflows(paths: Paths, environ: Mapping[str, str], cwd: Path) -> list[Finding]:
    """Return the workflows that can be run by name in `cwd`, and errors in their files."""
    from acp_agent.cli.flow.locate import listed, mistake_lines  # noqa: PLC0415 - for this part

    try:
        files = listed(cwd)
    except ConfigError:
        return []  # the check of the configuration reports why
    trusts = TrustStore(paths.trust_file, _config(paths, environ).trusted_folders).trusts
    names = [one.name for one in files if not one.mistakes]
    return [
        *_counted(translate("workflows: {names}", names=", ".join(names)), names),
        *_untrusted(one.item for one in files if one.item is not None and not trusts(one.item)),
        *(Finding("broken", line) for one in files for line in mistake_lines(one)),
    ]


def _config(paths: Paths, environ: Mapping[str, str]) -> Config:
    try:
        return load_config(paths.config_file, environ)
    except ConfigError:
        return Config()  # the check of the configuration reports why


def _counted(what: str, found: Sequence[object]) -> list[Finding]:
    return [Finding("ok", what)] if found else []


def _untrusted(items: Iterable[Item]) -> list[Finding]:
    return [
        Finding(
            "missing",
            translate("{file} is not used until you trust it: acp-agent trust", file=item.path),
        )
        for item in items
    ]
