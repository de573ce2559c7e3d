"""`acp-agent doctor`: check the setup, and say how to fix problems."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from acp_agent.cli import doctor_checks as checks
from acp_agent.cli.doctor_checks import Finding
from acp_agent.cli.doctor_models import (
    check_definitions,
    check_model,
    check_providers,
    check_roles,
    usable_config,
)
from acp_agent.cli.extending import checks as extending
from acp_agent.cli.localization import translate
from acp_agent.cli.output import FAILED, escape_controls, on_terminal, run_guarded, say, say_json
from acp_agent.cli.parser import Parser
from acp_agent.config.paths import find_paths

SECTIONS = (
    "Program", "Configuration", "Files", "Sessions", "Providers", "Model", "Skills and agents",
    "MCP servers", "Hooks", "Workflows",
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
    return run_guarded(lambda: _examine(offline=options.offline, as_json=options.json))


def _examine(*, offline: bool, as_json: bool) -> int:
    paths = find_paths(os.environ)
    examine: Sequence[Callable[[], list[Finding]]] = (
        lambda: checks.check_programs(usable_config(paths, os.environ).sandbox),
        lambda: checks.check_config(paths, os.environ),
        lambda: checks.check_files(paths),
        lambda: asyncio.run(checks.check_store(paths)),
        lambda: check_providers(paths, os.environ, offline=offline),
        lambda: [
            *asyncio.run(check_model(paths, os.environ, offline=offline)),
            *asyncio.run(check_roles(paths, os.environ)),
        ],
        lambda: asyncio.run(check_definitions(paths, os.environ, Path.cwd())),
        lambda: extending.check_servers(paths, os.environ, Path.cwd()),
        lambda: extending.check_hooks(paths, os.environ, Path.cwd()),
        lambda: extending.check_workflows(paths, os.environ, Path.cwd()),
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
        line = f"  {_MARKS[finding.state]} {finding.text}"
        remedy = f"     -> {finding.remedy}" if finding.remedy else ""
        if on_terminal():
            from rich.console import Console  # noqa: PLC0415 - only for a terminal
            from rich.text import Text  # noqa: PLC0415 - likewise

            console = Console()
            console.print(Text(escape_controls(line), _STYLES[finding.state]))
            if remedy:
                console.print(Text(escape_controls(remedy)))
        else:
            say(line)
            if remedy:
                say(remedy)
