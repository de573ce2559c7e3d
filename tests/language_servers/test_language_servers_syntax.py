"""Mistakes of syntax are reported where no language server runs, and nothing that may be valid."""

from __future__ import annotations

import os
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from acp_agent.language_servers.problems import describe_problems
from acp_agent.language_servers.syntax_check import SyntaxChecks
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import open_desk

CASES = tomllib.loads((Path(__file__).parent / "syntax_cases.toml").read_text())["case"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["path"])
async def test_syntax_errors_are_reported_with_their_line(
    case: dict[str, Any], tmp_path: Path
) -> None:
    if case["path"].endswith(".js") and shutil.which("node") is None:
        pytest.skip("node is not installed")
    text = case["repeat"] * 100_000 if "repeat" in case else case["text"]
    checks = SyntaxChecks([tmp_path], os.environ["PATH"])
    problems = await checks.new_problems({tmp_path / case["path"]: (case.get("before"), text)})
    assert describe_problems(problems, tmp_path) == case["reported"]


async def test_a_program_of_the_project_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "bash").write_text(f"#!/bin/sh\n: > {tmp_path}/ran\n")
    (tmp_path / "bash").chmod(0o755)
    checks = SyntaxChecks([tmp_path], str(tmp_path))
    assert await checks.new_problems({tmp_path / "a.sh": (None, "if\n")}) == []
    assert not (tmp_path / "ran").exists()


async def test_an_edit_that_breaks_a_file_says_so(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server) as desk:
        (desk.folder / "a.toml").write_text("a = 1\n")
        model_server.add(
            answer(Call("edit", {"path": "a.toml", "old": "a = 1", "new": "a = "})),
            answer("Done."),
        )
        await desk.say("Go.")
        result = desk.results()[-1]
    assert result.endswith(
        "New problems after this edit:\na.toml:1:5: error: Invalid value: a = [syntax]"
    )
