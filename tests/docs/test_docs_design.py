"""Rules of the design that no other test would notice, held for every module of the product."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("acp_agent", "protocol")

# The clock that ids are made from, the field that log lines get, and an import that the MCP library
# requires.
MODULES_WITH_GLOBALS = {
    "acp_agent/ids.py",
    "acp_agent/server/trace_context.py",
    "acp_agent/extensions/mcp/sanitizer.py",
}


@pytest.fixture(scope="module")
def facts() -> tuple[set[str], list[str]]:
    """The modules with globals or context variables, and the functions without a return type."""
    with_globals, untyped = set(), []
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_bytes())):
            match node:
                case ast.Global() | ast.ImportFrom(module="contextvars"):
                    with_globals.add(name)
                case ast.Import() if any(alias.name == "contextvars" for alias in node.names):
                    with_globals.add(name)
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    if node.returns is None and node.name != "__init__":
                        untyped.append(f"{name}:{node.lineno}")
    return with_globals, untyped


def test_nothing_depends_on_a_global_or_on_a_context_variable(
    facts: tuple[set[str], list[str]],
) -> None:
    assert facts[0] == MODULES_WITH_GLOBALS


def test_every_function_declares_its_return_type(facts: tuple[set[str], list[str]]) -> None:
    assert facts[1] == []


def test_ids_of_different_kinds_are_not_confused(tmp_path: Path) -> None:
    program = tmp_path / "mixed_up.py"
    program.write_text(
        "from acp_agent.ids import CallId, SessionId\n"
        "def close(session: SessionId) -> None: ...\n"
        "close(CallId('call_1'))\n"
    )
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", str(program)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert 'incompatible type "CallId"; expected "SessionId"' in checked.stdout
