from __future__ import annotations

from pathlib import Path

from acp_agent.ids import CallId
from acp_agent.tools.base import RESULT_LIMIT, limit_result
from tests.support.tool_calls import ToolUser

CALL = CallId("call_1")


async def test_a_result_within_the_limit_is_unchanged(tmp_path: Path) -> None:
    text = "x" * RESULT_LIMIT
    assert await limit_result(text, tmp_path / "outputs", CALL) == text
    assert not (tmp_path / "outputs").exists()


async def test_a_long_result_is_cut_in_the_middle_and_stored_in_a_file(
    tmp_path: Path,
) -> None:
    lines = [f"line {n}" for n in range(20_000)]
    text = "\n".join(lines)
    result = await limit_result(text, tmp_path / "outputs", CALL)
    assert len(result) <= RESULT_LIMIT
    assert result.startswith("line 0\nline 1\n")
    assert result.endswith("\nline 19998\nline 19999")
    assert set(result.split("\n")) - set(lines) == {
        next(row for row in result.split("\n") if row.startswith("[…"))
    }, "lines are whole"
    saved = tmp_path.resolve() / "outputs" / "call_1.txt"
    assert str(saved) in result
    assert saved.read_text() == text


async def test_the_model_can_read_and_search_the_omitted_part(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    user = ToolUser((tmp_path / "project").resolve(), outputs=tmp_path / "outputs")
    text = "\n".join(f"line {n}" for n in range(20_000))
    result = await limit_result(text, user.workspace.outputs, CALL)
    path = result.partition("the whole is in ")[2].partition(":")[0]
    outcome = await user.call("read", path=path, line=12_346, limit=1)
    assert outcome.text.startswith("12346\tline 12345\n")
    assert "line 12345" in (await user.call("grep", pattern="line 12345$", path=path)).text


async def test_an_endless_line_is_cut_as_well(tmp_path: Path) -> None:
    result = await limit_result("z" * 1_000_000, tmp_path / "outputs", CALL)
    assert RESULT_LIMIT - 1_000 < len(result) <= RESULT_LIMIT


async def test_an_id_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    await limit_result("z" * 60_000, tmp_path / "outputs", CallId("../../etc/x"))
    assert [path.name for path in (tmp_path / "outputs").iterdir()] == ["______etc_x.txt"]


async def test_a_result_that_cannot_be_saved_is_still_cut_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "outputs").write_text("a file in the way")
    result = await limit_result("z" * 60_000, tmp_path / "outputs", CALL)
    assert len(result) <= RESULT_LIMIT
    assert "the rest could not be saved: " in result


async def test_a_result_is_limited_in_bytes_for_all_characters(tmp_path: Path) -> None:
    text = "\n".join(["好的" * 20] * 1_000)
    result = await limit_result(text, tmp_path, CallId("call_1"))
    assert RESULT_LIMIT - 1_000 < len(result.encode()) <= RESULT_LIMIT
    assert result.startswith("好的")
    assert result.endswith("好的")
