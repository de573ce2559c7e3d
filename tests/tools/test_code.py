"""The tool `code`, as a model calls it, with a real language server."""

from __future__ import annotations

import asyncio
import json
import sysconfig
import tomllib
from pathlib import Path
from typing import Any, cast

import pytest

from acp_agent.content import DiffPart
from acp_agent.events import ToolCalled, ToolShown
from acp_agent.session.turns.parts import TurnTools
from tests.language_servers.conftest import scripted_server
from tests.support.editor_buffers import FakeEditor
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import Desk, open_desk

SCRIPTS = Path(sysconfig.get_path("scripts"))
EDITS = tomllib.loads((Path(__file__).parent / "code_edits.toml").read_text())
SHAPES = """\
class Square:
    '''A shape 🙂.'''

    def area(self) -> int:
        return 1


class Circle:
    def area(self) -> int:
        return 3
"""
MAIN = """\
from shapes import Circle, Square

text = "🙂🙂"; print("🙂", Square().area(), Circle().area())
"""


def code(action: str, **fields: object) -> Call:
    return Call("code", {"action": action, **fields})


async def offered(desk: Desk, name: str = "main.py") -> bool:
    """Wait until a server of the project runs."""
    tools = cast("TurnTools", (await desk.session.resources.for_turn()).tools)
    tools.edit_checks.record_read((desk.folder / name).resolve())
    async with asyncio.timeout(60):
        while not tools.edit_checks.know_symbols:
            await asyncio.sleep(0.02)
    return True


@pytest.mark.skipif(not (SCRIPTS / "ty").exists(), reason="ty is not installed")
async def test_a_language_server_resolves_names(tmp_path: Path, model_server: ModelServer) -> None:
    asked = {
        "definition": code("definition", path="main.py", symbol="area", line=3),
        "method": code("references", path="shapes.py", symbol="Circle.area"),
        "ambiguous": code("definition", path="shapes.py", symbol="int"),
        "absent": code("hover", path="main.py", symbol="Triangle"),
        "hover": code("hover", path="main.py", symbol="Square", line=3),
        "outline": code("symbols", path="shapes.py"),
        "project": code("symbols", symbol="Circ"),
        "outside": code("symbols", path="/etc/passwd"),
    }
    path = f"{SCRIPTS}:/usr/bin:/bin"
    config = 'mode = "full"\n'
    async with open_desk(tmp_path, model_server, config=config, environ={"PATH": path}) as desk:
        (desk.folder / "shapes.py").write_text(SHAPES)
        (desk.folder / "main.py").write_text(MAIN, newline="\r\n")
        assert await offered(desk)
        model_server.add(*(answer(call) for call in asked.values()), answer("Done."))
        await desk.say("Go.")
        results = dict(zip(asked, desk.results(), strict=True))
    assert results["definition"] == "shapes.py:4: def area(self) -> int:"
    assert "shapes.py:9: def area(self) -> int:" in results["method"]
    assert "main.py:3: " in results["method"]
    assert (
        "4: def area(self) -> int:\n9: def area(self) -> int:\n; give one of these"
        in results["ambiguous"]
    )
    assert "give a name as it is written" in results["absent"]
    assert "A shape 🙂." in results["hover"]
    assert results["outline"].splitlines()[:2] == [
        "shapes.py:1: class Square",
        "  shapes.py:4: method area",
    ]
    assert "shapes.py:8: class Circle" in results["project"]


async def test_it_is_not_offered_where_no_server_runs(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server) as desk:
        model_server.add(answer("Done."))
        await desk.say("Go.")
        tools = (await desk.session.resources.for_turn()).tools
        assert "code" not in {spec.name for spec in tools.toolset.specs()}


async def test_a_description_comes_without_pictures_that_are_data(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = scripted_server(
        "hover=A colour. ![Icon](data:image/svg+xml;base64,PHN2ZyB4) ![b](b.png)"
    )
    async with open_desk(tmp_path, model_server, config=config) as desk:
        (desk.folder / "a.txt").write_text("colour\n")
        assert await offered(desk, "a.txt")
        model_server.add(answer(code("hover", path="a.txt", symbol="colour")), answer("Done."))
        await desk.say("Go.")
        assert desk.results() == ["A colour. ![b](b.png)"]


async def run_calls(
    tmp_path: Path, server: ModelServer, files: dict[str, str], *calls: Call, **options: Any
) -> tuple[list[str], Desk]:
    """The results of calls in a project that ty and ruff check, and the closed session."""
    path = f"{SCRIPTS}:/usr/bin:/bin"
    options.setdefault("config", 'mode = "full"\n')
    async with open_desk(tmp_path, server, environ={"PATH": path}, **options) as desk:
        for name, text in files.items():
            (desk.folder / name).write_text(text, newline="")
        assert await offered(desk)
        server.add(*(answer(call) for call in calls), answer("Done."))
        await desk.say("Go.")
        return desk.results(), desk


@pytest.mark.skipif(not (SCRIPTS / "ty").exists(), reason="ty is not installed")
async def test_a_symbol_is_renamed_in_all_files_and_shown_as_diffs(
    tmp_path: Path, model_server: ModelServer
) -> None:
    files = {"shapes.py": SHAPES, "main.py": MAIN.replace("\n", "\r\n")}
    rename = code("rename", path="shapes.py", symbol="Circle.area", new_name="surface")
    (result,), desk = await run_calls(tmp_path, model_server, files, rename)
    assert "shapes.py edited: 1 replacement in line 9." in result
    assert "main.py edited: 1 replacement in line 3." in result
    assert (desk.folder / "shapes.py").read_text() == SHAPES.replace(
        "def area(self) -> int:\n        return 3", "def surface(self) -> int:\n        return 3"
    )
    changed = MAIN.replace("Circle().area()", "Circle().surface()").replace("\n", "\r\n")
    assert (desk.folder / "main.py").read_bytes().decode() == changed
    (called,) = desk.editor.of(ToolCalled)
    assert (called.kind, called.title) == ("edit", "Rename `Circle.area` to `surface`")
    shown = desk.editor.of(ToolShown)[-1].content or ()
    diffs = [Path(part.path).name for part in shown if isinstance(part, DiffPart)]
    assert sorted(diffs) == ["main.py", "shapes.py"]


@pytest.mark.skipif(not (SCRIPTS / "ruff").exists(), reason="ruff is not installed")
async def test_a_code_action_is_listed_and_applied(
    tmp_path: Path, model_server: ModelServer
) -> None:
    files = {"main.py": "import os\nimport sys\n\nprint(sys.argv)\n"}
    title = "Ruff (F401): Remove unused import: `os`"
    results, desk = await run_calls(
        tmp_path,
        model_server,
        files,
        code("code_action", path="main.py", line=1),
        code("code_action", path="main.py", line=1, apply="Nonsense"),
        code("code_action", path="main.py", line=1, apply=title),
    )
    assert f"{title} (ruff quickfix)" in results[0]
    assert title in results[1]
    assert (desk.folder / "main.py").read_text() == "import sys\n\nprint(sys.argv)\n"


async def test_edits_of_a_server_apply_to_the_shown_files_only(
    tmp_path: Path, model_server: ModelServer
) -> None:
    proposed = tmp_path / "edits.json"
    proposed.write_text(json.dumps({name: json.loads(one["edit"]) for name, one in EDITS.items()}))
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "c.txt").write_text("c\n")
    config = scripted_server(f"edits={proposed}").replace("full", "ask")
    async with open_desk(tmp_path, model_server, config=config) as desk:
        editor = desk.editor.files = FakeEditor()
        one, two = desk.folder / "a.txt", desk.folder / "b.txt"
        (desk.folder / "link").symlink_to(outside)
        for path in (one, two):
            path.write_text("")
        assert await offered(desk, "a.txt")
        for name, case in EDITS.items():
            one.write_text("one 🙂 two\r\nthree\r\n", newline="")
            two.write_text("one\n")
            editor._buffers.clear()
            editor.type(one, "ONE 🙂 two\nthree\n")
            asked = len(desk.editor.asked)
            rename = code("rename", path="a.txt", symbol="two", new_name=name)
            model_server.add(answer(rename), answer("Done."))
            await desk.say("Go.")
            assert case["result"] in desk.results()[-1], name
            assert editor._buffers[one] == case.get("a", "ONE 🙂 two\nthree\n"), name
            assert two.read_text() == case.get("b", "one\n"), name
            assert len(desk.editor.asked) == asked + ("a" in case or "b" in case), name
        assert {request.kind for request in desk.editor.asked} == {"edit"}
    assert (outside / "c.txt").read_text() == "c\n"
