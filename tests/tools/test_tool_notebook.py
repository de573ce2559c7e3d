from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from acp_agent.content import DiffPart, ImageBlock
from acp_agent.errors import ToolError
from tests.support.tool_calls import RecordedProgress, ToolUser

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
STREAM = {"name": "stdout", "output_type": "stream", "text": ["hi\n", "é\n"]}
PICTURE = {"data": {"image/png": PIXEL}, "metadata": {}, "output_type": "display_data"}
CELLS: list[dict[str, Any]] = [
    {"cell_type": "markdown", "id": "aa11", "metadata": {}, "source": ["# Title\n", "\n", "Text"]},
    {
        "cell_type": "code",
        "execution_count": 3,
        "id": "bb22",
        "metadata": {"tags": ["x"]},
        "outputs": [STREAM, PICTURE],
        "source": ["import x\n", "print('é')"],
    },
    {
        "cell_type": "code",
        "execution_count": 4,
        "id": "cc33",
        "metadata": {},
        "outputs": [STREAM],
        "source": "y = 1",
    },
]


def notebook(cells: list[dict[str, Any]], **style: Any) -> str:
    content = {
        "cells": cells,
        "metadata": {"kernelspec": {"name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, ensure_ascii=False, **style) + "\n"


@pytest.fixture
def user(tmp_path: Path) -> ToolUser:
    (tmp_path / "project").mkdir()
    return ToolUser((tmp_path / "project").resolve())


async def test_a_notebook_is_read_as_cells_with_short_outputs_and_pictures(user: ToolUser) -> None:
    (user.folder / "a.ipynb").write_text(notebook(CELLS, indent=1))
    outcome = await user.call("read", path="a.ipynb")
    assert outcome.text.split("]\n", 1)[1] == (
        '1\t<cell 1 id="aa11" type="markdown">\n2\t# Title\n3\t\n4\tText\n5\t</cell>\n'
        '6\t<cell 2 id="bb22" type="code">\n7\timport x\n8\tprint(\'é\')\n9\t</cell>\n'
        "=> hi\n=> é\n=> [picture 1]\n"
        '10\t<cell 3 id="cc33" type="code">\n11\ty = 1\n12\t</cell>\n=> hi\n=> é\n'
    )
    assert outcome.images == (ImageBlock(data=PIXEL, mime_type="image/png"),)


@pytest.mark.parametrize("style", [{"indent": 1}, {"indent": 4}, {}, {"separators": (",", ":")}])
async def test_an_edit_of_a_cell_changes_no_other_byte_and_clears_its_outputs(
    user: ToolUser, style: dict[str, Any]
) -> None:
    path = user.folder / "a.ipynb"
    path.write_text(notebook(CELLS, **style))
    prepared = await user.prepare("edit", path="a.ipynb", old="print('é')", new='print("é")\nz = 2')
    (diff,) = prepared.content
    assert isinstance(diff, DiffPart)
    assert "nbformat" not in diff.new_text
    assert 'import x\nprint("é")\nz = 2\n</cell>' in diff.new_text
    await user.call("edit", path="a.ipynb", old="print('é')", new='print("é")\nz = 2')
    source = ["import x\n", 'print("é")\n', "z = 2"]
    changed = {**CELLS[1], "execution_count": None, "outputs": [], "source": source}
    assert path.read_text() == notebook([CELLS[0], changed, CELLS[2]], **style)


async def test_cells_are_added_deleted_and_retyped_by_their_lines(user: ToolUser) -> None:
    path = user.folder / "a.ipynb"
    path.write_text(notebook(CELLS, indent=1))
    await user.call(
        "edit",
        path="a.ipynb",
        edits=[
            {"old": '<cell 1 id="aa11" type="markdown">', "new": '<cell id="aa11" type="raw">'},
            {"old": "import x\nprint('é')\n</cell>\n", "new": "import x\nprint('é')\n</cell>\n"
             '<cell type="markdown">\nnew\n</cell>\n'},
            {"old": '<cell 3 id="cc33" type="code">\ny = 1\n</cell>\n', "new": ""},
        ],
    )  # fmt: skip
    text = path.read_text()
    new = json.loads(text)["cells"][2]
    raw = {**CELLS[0], "cell_type": "raw"}
    added = {"cell_type": "markdown", "id": new["id"], "metadata": {}, "source": ["new"]}
    assert text == notebook([raw, CELLS[1], added], indent=1)


async def test_cells_without_ids_are_distinguished_by_their_numbers(user: ToolUser) -> None:
    path = user.folder / "a.ipynb"
    cells = [{key: value for key, value in cell.items() if key != "id"} for cell in CELLS]
    old = notebook(cells, indent=2).replace('"nbformat_minor": 5', '"nbformat_minor": 2')
    path.write_text(old)
    new = '<cell type="markdown">\nfirst\n</cell>\n<cell 1 type="markdown">'
    await user.call("edit", path="a.ipynb", old='<cell 1 type="markdown">', new=new)
    sources = json.loads(path.read_text())["cells"]
    assert sources == [{"cell_type": "markdown", "metadata": {}, "source": ["first"]}, *cells]


async def test_a_notebook_is_created_from_cells_and_not_from_other_text(user: ToolUser) -> None:
    cell = '<cell type="code">\nx = 1\n</cell>\n'
    await user.call("write", path="a.ipynb", content=cell)
    await user.call("edit", path="b.ipynb", old="", new=cell)
    for name in ("a", "b"):
        created = json.loads((user.folder / f"{name}.ipynb").read_text())
        assert [created["nbformat"], created["nbformat_minor"]] == [4, 5]
        assert [one["source"] for one in created["cells"]] == [["x = 1"]]
        assert created["cells"][0]["id"]
    with pytest.raises(ToolError, match="the new text is no notebook"):
        await user.prepare("write", path="c.ipynb", content="x = 1\n")


async def test_the_json_of_a_notebook_can_be_edited_where_that_leaves_a_notebook(
    user: ToolUser,
) -> None:
    path = user.folder / "a.ipynb"
    path.write_text(notebook(CELLS, indent=1))
    await user.call("edit", path="a.ipynb", old='"name": "python3"', new='"name": "ir"')
    assert path.read_text() == notebook(CELLS, indent=1).replace("python3", "ir")
    with pytest.raises(ToolError, match="breaks the notebook: this notebook is not valid JSON"):
        await user.prepare("edit", path="a.ipynb", old='"name": "ir"', new='"name": ir')
    with pytest.raises(ToolError, match="breaks the notebook's cells: the last cell has no end"):
        await user.prepare("edit", path="a.ipynb", old="y = 1\n</cell>", new="y = 1")


async def test_a_notebook_that_is_not_json_is_read_and_edited_as_text(user: ToolUser) -> None:
    path = user.folder / "a.ipynb"
    path.write_text('{"cells": [\n  {"cell_type": "code", "source": ["x = 1"]},,\n]}\n')
    outcome = await user.call("read", path="a.ipynb")
    assert outcome.text.startswith("[this notebook is not valid JSON (Expecting value: line 2")
    assert '1\t{"cells": [\n' in outcome.text
    await user.call("edit", path="a.ipynb", old=",,", new="")
    assert (await user.call("read", path="a.ipynb")).text.endswith(
        '1\t<cell 1 type="code">\n2\tx = 1\n3\t</cell>\n'
    )


async def test_numbers_that_only_python_writes_do_not_stop_an_edit(user: ToolUser) -> None:
    path = user.folder / "a.ipynb"
    cell = {**CELLS[2], "metadata": {"score": float("nan"), "most": float("-inf"), "NaN": "NaN"}}
    path.write_text(notebook([cell]))
    await user.call("edit", path="a.ipynb", old="y = 1", new="y = 2")
    assert path.read_text() == notebook([{**cell, "source": "y = 2", "outputs": []}]).replace(
        '"execution_count": 4', '"execution_count": null'
    )


async def test_the_notebook_tools_of_other_agents_change_one_cell(user: ToolUser) -> None:
    path = user.folder / "a.ipynb"
    path.write_text(notebook(CELLS, indent=1))

    async def call(name: str, **arguments: Any) -> str:
        found = user.tools.resolve(name, json.dumps(arguments))
        prepared = await found.tool.prepare(found.params)
        return (await prepared.run(RecordedProgress())).text

    text = await call(
        "NotebookEdit", notebook_path="a.ipynb", cell_id="cc33", new_source="y = 2", edit_mode=None
    )
    assert "y = 2" in text
    new = {"new_source": "# New", "cell_type": "markdown", "edit_mode": "insert"}
    await call("NotebookEdit", notebook_path="a.ipynb", **new)
    await call("NotebookEdit", notebook_path="a.ipynb", cell_number=1, edit_mode="delete")
    await call(
        "edit_notebook_file", filePath="a.ipynb", editType="edit", cellId="bb22", newCode="z"
    )
    after = json.loads(path.read_text())["cells"]
    assert [(cell["cell_type"], "".join(cell["source"])) for cell in after] == [
        ("markdown", "# New"),
        ("code", "z"),
        ("code", "y = 2"),
    ]
    with pytest.raises(ToolError, match="there is no cell 'nope'"):
        await call("NotebookEdit", notebook_path="a.ipynb", cell_id="nope", new_source="x")
    (user.folder / "a.py").write_text("x = 1\n")
    with pytest.raises(ToolError, match="not a notebook"):
        await call("NotebookEdit", notebook_path="a.py", cell_id="a", new_source="x")


async def test_a_source_changed_in_the_json_loses_its_outputs_and_others_keep_theirs(
    user: ToolUser,
) -> None:
    path = user.folder / "a.ipynb"
    path.write_text(notebook(CELLS, indent=1))
    await user.call("read", path="a.ipynb")
    await user.call("edit", path="a.ipynb", old='"source": "y = 1"', new='"source": "y = 2"')
    expected = [*CELLS[:2], {**CELLS[2], "source": "y = 2", "outputs": [], "execution_count": None}]
    assert path.read_text() == notebook(expected, indent=1)


async def test_of_cells_with_one_id_only_the_edited_one_changes(user: ToolUser) -> None:
    path = user.folder / "a.ipynb"
    cells = [{**CELLS[1], "id": "dd"}, {**CELLS[2], "id": "dd"}]
    path.write_text(notebook(cells, indent=1))
    await user.call("read", path="a.ipynb")
    await user.call("edit", path="a.ipynb", old="import x", new="import z")
    assert json.loads(path.read_text())["cells"][1] == cells[1]


async def test_a_cell_is_deleted_from_a_notebook_without_spaces(user: ToolUser) -> None:
    path = user.folder / "a.ipynb"
    path.write_text(notebook(CELLS, separators=(",", ":")))
    await user.call("read", path="a.ipynb")
    deleted = '<cell 1 id="aa11" type="markdown">\n# Title\n\nText\n</cell>\n'
    await user.call("edit", path="a.ipynb", old=deleted, new="")
    assert path.read_text() == notebook(CELLS[1:], separators=(",", ":"))


async def test_an_edit_that_breaks_an_older_notebook_is_refused(user: ToolUser) -> None:
    path = user.folder / "a.ipynb"
    path.write_text('{"worksheets": [{"cells": [{"input": "x = 1"}]}], "nbformat": 3}')
    await user.call("read", path="a.ipynb")
    with pytest.raises(ToolError, match="no longer be valid JSON"):
        await user.call("edit", path="a.ipynb", old='"x = 1"', new='"x = 2')
    await user.call("edit", path="a.ipynb", old='"x = 1"', new='"x = 2"')
    assert "x = 2" in path.read_text()
