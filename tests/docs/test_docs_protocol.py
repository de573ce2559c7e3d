"""docs/protocol.md lists exactly the methods that are answered."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from acp_agent.server.handlers import UNSTABLE_METHODS
from acp_agent.server.mcp_channel import MCP_NOTIFICATION
from protocol.v1.methods import AGENT_METHODS as STABLE_1
from protocol.v2.methods import AGENT_METHODS as STABLE_2

PAGE = Path(__file__).resolve().parents[2] / "docs" / "protocol.md"


def listed(column: int, word: str) -> set[str]:
    """The methods with this word in a column of the page's table."""
    found: set[str] = set()
    for line in PAGE.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and cells[column] == word:
            found.update(re.findall(r"`([^`]+)`", cells[0]))
    return found


@pytest.mark.parametrize(("version", "stable"), [(1, STABLE_1), (2, STABLE_2)])
def test_the_page_lists_exactly_what_is_answered(version: int, stable: dict[str, object]) -> None:
    assert listed(version, "stable") == set(stable)
    assert listed(version, "unstable") == UNSTABLE_METHODS.keys() | {MCP_NOTIFICATION.name}
    assert listed(version, "no") == {"proxy/initialize", "proxy/successor"}
