from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from acp_agent.errors import ToolError
from acp_agent.tools.editing.replace import Edit, apply_edits
from acp_agent.workspace.file_io import text_file

CASES = tomllib.loads((Path(__file__).parent / "edit_cases.toml").read_text("utf-8"))["case"]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_an_edit_applies_only_if_it_is_unambiguous(
    case: dict[str, str],
) -> None:
    file = text_file(Path("/f"), case["before"])
    edit = Edit(case["old"], case["new"])
    if "refused" in case:
        with pytest.raises(ToolError) as refusal:
            apply_edits(file, [edit], "f")
        assert case["refused"] in str(refusal.value)
        return
    edited = apply_edits(file, [edit], "f")
    assert edited.text == case["after"]
    assert case.get("note", "") in ", ".join(edited.notes)
