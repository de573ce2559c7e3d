"""`acp-agent doctor`: check the setup, and say how to fix problems."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from acp_agent.cli import doctor_checks as checks
from acp_agent.cli.doctor_checks import Finding
from acp_agent.cli.doctor_models import check_definitions, check_model, check_providers, check_roles
from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.output import FAILED, say, say_json, say_styled
from acp_agent.cli.parser import Parser
from acp_agent.cli.user_config import UserConfig, load_user_config
from acp_agent.errors import ConfigError
from acp_agent.extensions.mcp.configured import first_of_each_name
from acp_agent.trust.store import Item

SECTIONS = (
    "Program", "Configuration", "Files", "Sessions", "Providers", "Model", "Skills and agents",
    "MCP servers", "Hooks", "Permission rules", "Workflows",
)  # fmt: skip
_MARKS = {"ok": "ok", "info": "--", "missing": "??", "broken": "!!"}
_STYLES = {"ok": "green", "info": "dim", "missing": "yellow", "broken": "bold red"}


def run(argv: list[str]) -> int:
    """Check the setup; return 1 if there are problems."""
    parser = Parser(
        prog="acp-agent doctor", description="Check the setup and say how to fix problems."
    )
    parser.add_argument("--offline", action="store_true", help="do not contact providers")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(argv)
    return _examine(offline=options.offline, as_json=options.json)


def _examine(*, offline: bool, as_json: bool) -> int:
    setup, cwd = load_user_config(ignore_errors=True), Path.cwd()
    examine: Sequence[Callable[[], list[Finding]]] = (
        lambda: checks.check_programs(setup.config.sandbox),
        lambda: checks.check_config(setup.paths, setup.environ),
        lambda: checks.check_files(setup.paths),
        lambda: asyncio.run(checks.check_store(setup.paths)),
        lambda: check_providers(setup, offline=offline),
        lambda: [
            *asyncio.run(check_model(setup, offline=offline)),
            *asyncio.run(check_roles(setup)),
        ],
        lambda: asyncio.run(check_definitions(setup, cwd)),
        lambda: check_servers(setup, cwd),
        lambda: check_hooks(setup, cwd),
        lambda: check_rules(setup, cwd),
        lambda: check_workflows(setup, cwd),
    )
    findings_by_section: list[tuple[str, Finding]] = []
    for title, check in zip(SECTIONS, examine, strict=True):
        findings = check()
        findings_by_section += [(title, finding) for finding in findings]
        if findings and not as_json:
            _print(title, findings)
    broken_count = sum(finding.state == "broken" for _, finding in findings_by_section)
    if as_json:
        say_json(
            {
                "broken": broken_count,
                "findings": [
                    {
                        "part": title, "state": finding.state, "what": finding.text,
                        "remedy": finding.remedy,
                    }
                    for title, finding in findings_by_section
                ],
            }
        )  # fmt: skip
    else:
        say()
        say(
            translate("Problems found: {count}, marked '!!' above.", count=broken_count)
            if broken_count
            else translate("No problems found.")
        )
    return FAILED if broken_count else 0


def _print(title: str, findings: Sequence[Finding]) -> None:
    say(translate(title))
    for finding in findings:
        say_styled(f"  {_MARKS[finding.state]} {finding.text}", _STYLES[finding.state])
        if finding.remedy:
            say_styled(f"     -> {finding.remedy}", "")


def check_servers(setup: UserConfig, cwd: Path) -> list[Finding]:
    """Return the MCP servers of a session in `cwd`, and errors in their files."""
    servers = setup.mcp_servers(cwd)
    names = [
        server.name for server in first_of_each_name(servers.servers) if server.options.enabled
    ]
    return [
        *_count_finding(translate("MCP servers: {names}", names=", ".join(names)), names),
        *_untrusted(servers.untrusted),
        *(Finding("broken", translate_rendered(problem)) for problem in servers.problems),
        *(Finding("missing", translate_rendered(note)) for note in servers.notes),
    ]


def check_hooks(setup: UserConfig, cwd: Path) -> list[Finding]:
    """Return the number of hooks of a session in `cwd`, and errors in their files."""
    hooks = setup.hooks(cwd)
    problems = [
        Finding(
            "missing" if problem.is_foreign else "broken",
            f"{problem.path}: {translate_rendered(problem.why)}",
        )
        for problem in hooks.problems
    ]
    return [
        *_count_finding(translate("hooks: {count}", count=len(hooks.hooks)), hooks.hooks),
        *_untrusted(hooks.untrusted),
        *problems,
    ]


def check_rules(setup: UserConfig, cwd: Path) -> list[Finding]:
    """Return whether other programs have permission rules that are not used here."""
    from acp_agent.cli.policy.importing import rules_to_import  # noqa: PLC0415 - for this part

    try:
        count = rules_to_import(setup.paths, cwd, Path.home(), setup.environ)
    except ConfigError:
        return []  # the check of the configuration reports why
    text = translate("rules of other programs that are not used here: {count}", count=count)
    return [Finding("missing", text, "acp-agent policy import")] if count else []


def check_workflows(setup: UserConfig, cwd: Path) -> list[Finding]:
    """Return the workflows that can be run by name in `cwd`, and errors in their files."""
    from acp_agent.cli.flow.locate import list_workflows, mistake_lines  # noqa: PLC0415 - for this part

    try:
        files = list_workflows(cwd)
    except ConfigError:
        return []  # the check of the configuration reports why
    trusts = setup.trusts
    names = [file.name for file in files if not file.mistakes]
    return [
        *_count_finding(translate("workflows: {names}", names=", ".join(names)), names),
        *_untrusted(file.item for file in files if file.item is not None and not trusts(file.item)),
        *(Finding("broken", line) for file in files for line in mistake_lines(file)),
    ]


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
