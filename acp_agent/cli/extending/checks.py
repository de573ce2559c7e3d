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
    servers = find_servers(
        config,
        paths.config_file,
        cwd,
        environ,
        folders=find_folders(cwd, user=paths.config_file.parent, home=Path.home()),
        trusts=TrustStore(paths.trust_file, config.trusted_folders).trusts,
    )
    names = [
        server.name for server in first_of_each_name(servers.servers) if server.options.enabled
    ]
    return [
        *_count_finding(translate("MCP servers: {names}", names=", ".join(names)), names),
        *_untrusted(servers.untrusted),
        *(Finding("broken", translate_rendered(problem)) for problem in servers.problems),
    ]


def check_hooks(paths: Paths, environ: Mapping[str, str], cwd: Path) -> list[Finding]:
    """Return the number of hooks of a session in `cwd`, and errors in their files."""
    config = _config(paths, environ)
    hooks = find_hooks(
        config.hooks,
        config_file=str(paths.config_file),
        home=Path.home(),
        folders=find_folders(cwd, user=paths.config_file.parent, home=Path.home()),
        cwd=cwd,
        confine_own=config.sandbox.hooks,
        trusts=TrustStore(paths.trust_file, config.trusted_folders).trusts,
    )
    problems = [
        f"{hook_problem.path}: {translate_rendered(hook_problem.why)}"
        for hook_problem in hooks.problems
    ]
    return [
        *_count_finding(translate("hooks: {count}", count=len(hooks.hooks)), hooks.hooks),
        *_untrusted(hooks.untrusted),
        *(Finding("broken", problem) for problem in problems),
    ]


def check_workflows(paths: Paths, environ: Mapping[str, str], cwd: Path) -> list[Finding]:
    """Return the workflows that can be run by name in `cwd`, and errors in their files."""
    from acp_agent.cli.flow.locate import list_workflows, mistake_lines  # noqa: PLC0415 - for this part

    try:
        files = list_workflows(cwd)
    except ConfigError:
        return []  # the check of the configuration reports why
    trusts = TrustStore(paths.trust_file, _config(paths, environ).trusted_folders).trusts
    names = [file.name for file in files if not file.mistakes]
    return [
        *_count_finding(translate("workflows: {names}", names=", ".join(names)), names),
        *_untrusted(file.item for file in files if file.item is not None and not trusts(file.item)),
        *(Finding("broken", line) for file in files for line in mistake_lines(file)),
    ]


def _config(paths: Paths, environ: Mapping[str, str]) -> Config:
    try:
        return load_config(paths.config_file, environ)
    except ConfigError:
        return Config()  # the check of the configuration reports why


def _count_finding(text: str, items: Sequence[object]) -> list[Finding]:
    return [Finding("ok", text)] if items else []


def _untrusted(items: Iterable[Item]) -> list[Finding]:
    return [
        Finding(
            "missing",
            translate("{file} is not used until you trust it: acp-agent trust", file=item.path),
        )
        for item in items
    ]
