"""Rules of the design that no other test would notice, held for every module of the product."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 400  # lines of a module
MODULES = sorted(
    path for package in ("acp_agent", "protocol") for path in (ROOT / package).rglob("*.py")
)


# The last tick of the clock that ids are made from, the mark that log lines get, and what the MCP
# library asks for.
EXCEPTIONS = {
    "acp_agent/ids.py",
    "acp_agent/server/trace_context.py",
    "acp_agent/extensions/mcp/sanitizer.py",
}


@cache
def nodes() -> list[tuple[Path, ast.AST]]:
    """Every node of every module, with its file."""
    return [
        (path.relative_to(ROOT), node)
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
    ]


def test_nothing_depends_on_a_global_or_on_a_context_variable() -> None:
    found = {
        str(path)
        for path, node in nodes()
        if isinstance(node, ast.Global)
        or (isinstance(node, ast.Import) and any(a.name == "contextvars" for a in node.names))
        or (isinstance(node, ast.ImportFrom) and node.module == "contextvars")
    }
    assert found == EXCEPTIONS


def test_modules_are_short_and_every_function_says_its_types() -> None:
    long = [str(path) for path in MODULES if len(path.read_text("utf-8").splitlines()) > LONGEST]
    assert long == []
    untyped = [
        f"{path}:{node.lineno}"
        for path, node in nodes()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is None
        if node.name != "__init__"
    ]
    assert untyped == []


def test_the_loop_imports_nothing_of_who_runs_it() -> None:
    above = ("acp_agent.session", "acp_agent.server", "acp_agent.cli")
    found = [
        f"{path}:{node.lineno}"
        for path, node in nodes()
        if path.is_relative_to("acp_agent/agent")
        and isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith(above)
    ]
    assert found == []


def test_the_id_of_one_thing_is_not_taken_for_that_of_another(tmp_path: Path) -> None:
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
