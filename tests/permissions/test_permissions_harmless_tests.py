"""No test can do what the command lines in the tests would do if a shell ran them by accident."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from acp_agent.permissions.classify import classify
from acp_agent.permissions.paths import CommandContext
from acp_agent.permissions.rules import shell_rules

ROOT = Path(__file__).resolve().parents[2]
MODULES = [path for folder in ("tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
CONTEXT = CommandContext(cwd="/project", roots=("/project",), home="/home/someone")
REFUSED = shell_rules().refused
NAMES = {"kill", *REFUSED.programs, *REFUSED.power, *REFUSED.disk_writers, *REFUSED.deleters}
PROGRAM = (
    rf"(?:(?:{'|'.join(map(re.escape, NAMES))})(?!\w)"
    rf"|{'|'.join(map(re.escape, REFUSED.program_prefixes))})"
)
DANGEROUS = re.compile(rf"(?<!\w){PROGRAM}")
DANGEROUS_SOURCE = re.compile(rf"(?:(?<!\w)|\\\w){PROGRAM}")  # after \n in a text, too
# Such a line leaves a file behind and ends before its harmful part.
ENDS_FIRST = re.compile(r"touch ran(?:;| &&|\n) ?exit(?:;| &&|\n)")
# What a module that starts a program, or an agent that would, has in it.
STARTS = re.compile(r"\bsubprocess\b|\bos\.(?:system|exec|spawn|popen)|tests\.support|\bconftest\b")


def test_a_destructive_line_is_only_where_nothing_starts_a_program() -> None:
    for path in MODULES:
        source = path.read_text("utf-8")
        if path.is_relative_to(ROOT / "tests" / "permissions") and not STARTS.search(source):
            continue
        for node in ast.walk(ast.parse(source)) if DANGEROUS_SOURCE.search(source) else ():
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
                continue
            if DANGEROUS.search(node.value) and not ENDS_FIRST.search(node.value):
                tier = classify(node.value, CONTEXT).tier
                assert tier != "blocked", (path, node.lineno, node.value)


def test_the_command_lists_are_read_by_modules_that_start_no_program() -> None:
    readers = {
        "commands": ["test_permissions_tiers.py"],
        "bypasses": ["test_permissions_bypasses.py"],
    }
    for name, modules in readers.items():
        found = [path for path in MODULES if f"{name}.toml" in path.read_text("utf-8")]
        assert sorted(path.name for path in found) == ["policy.py", *modules]
        assert not any(STARTS.search(path.read_text("utf-8")) for path in found)


def test_no_script_deletes_a_folder_that_a_variable_names() -> None:
    scripts = [ROOT / "Makefile", *(ROOT / "packaging").rglob("*"), *(ROOT / "tests").rglob("*.sh")]
    ours = [path for path in scripts if path.is_file() and "node_modules" not in path.parts]
    for path in ours:
        for line in path.read_text("utf-8").splitlines():
            assert not re.search(r"\brm\s.*-\w*[rR]\w*\s.*\$", line), (path, line)
