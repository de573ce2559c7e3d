"""Calls in the names and fields of other agents are taken for what they mean."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from acp_agent.errors import ToolError
from tests.support.tool_calls import ToolUser

CASES = tomllib.loads((Path(__file__).parent / "foreign_calls.toml").read_text("utf-8"))["cases"]


@pytest.fixture
def user(tmp_path: Path) -> ToolUser:
    return ToolUser(tmp_path)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_a_call_of_another_agents_tool_becomes_one_of_ours(
    user: ToolUser, case: dict[str, Any]
) -> None:
    name, arguments = case["call"]
    if "refused" in case:
        with pytest.raises(ToolError, match=case["refused"]):
            user.tools.resolve(name, json.dumps(arguments))
        return
    call = user.tools.resolve(name, json.dumps(arguments))
    assert call.tool.name == case["tool"]
    assert call.params.model_dump(exclude_unset=True, mode="json") == case["values"]


def test_a_call_of_ours_needs_no_table(user: ToolUser) -> None:
    program = (
        "import sys\n"
        "from tests.support.tool_calls import ToolUser\n"
        "from pathlib import Path\n"
        f"user = ToolUser(Path({str(user.workspace.cwd)!r}))\n"
        'user.tools.resolve(\'read\', \'{"path": "a", "limit": 3}\')\n'
        "user.tools.call_title('read', '{\"path\": \"a\"}')\n"
        "sys.exit('acp_agent.tools.calls.foreign_calls' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], timeout=60, check=False)
    assert done.returncode == 0
