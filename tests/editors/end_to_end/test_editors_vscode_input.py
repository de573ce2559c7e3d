"""What goes with a message, and what is said while the agent works, in the VS Code extension."""

from __future__ import annotations

import base64
import json
import shlex
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.editors.end_to_end.code_server import CodeServer
from tests.editors.end_to_end.vscode_agents import agent, bad_agent
from tests.support.model_server import Call, ModelServer, answer

pytestmark = pytest.mark.timeout(2700)


def png(width: int, height: int, *, filler: int = 0) -> bytes:
    """A grey picture, with so many bytes of a comment in it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    lines = zlib.compress((b"\0" + b"\x80" * width) * height)
    comment = chunk(b"tEXt", b"Comment\0" + b"x" * filler)
    ends = chunk(b"IDAT", lines) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + comment + ends


def size(data: str) -> tuple[int, int]:
    """The width and height of a picture in base64."""
    width, height = struct.unpack(">II", base64.b64decode(data)[16:24])
    return width, height


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    file = tmp_path / "picture.png"
    file.write_bytes(png(5, 4))
    return file


def content(model: ModelServer) -> list[dict[str, Any]]:
    """The blocks of the last message that the model was sent."""
    blocks = model.requests[-1].json["messages"][-1]["content"]
    assert isinstance(blocks, list)
    return blocks


def test_images_that_are_pasted_and_dropped_reach_the_model_and_one_that_is_too_big_is_refused(
    vscode: CodeServer, folder: Path, home: Path, model: ModelServer, picture: Path
) -> None:
    big = picture.with_name("big.png")
    big.write_bytes(png(5, 4, filler=6 * 1024 * 1024))
    model.add(answer("A grey one and a black one."))
    seen = vscode.run(
        "input.images",
        folder,
        agent(home, environ=model.environ("anthropic")),
        picture=str(picture),
        big=str(big),
    )
    assert "at most 6 MB" in seen["refused"]
    assert seen["gone"] == ""
    assert seen["shown"] == 2
    images = [block["source"] for block in content(model) if block["type"] == "image"]
    assert [image["media_type"] for image in images] == ["image/png"] * 2
    assert [size(image["data"]) for image in images] == [(3, 2), (5, 4)]


def test_an_agent_that_accepts_no_images_is_sent_none(
    vscode: CodeServer, folder: Path, picture: Path
) -> None:
    seen = vscode.run("input.noImages", folder, bad_agent("good"), picture=str(picture))
    assert seen == {"refused": "This agent takes no images.", "attached": 0}


def test_a_file_and_a_selection_are_named_by_the_keyboard_and_sent_as_resources(
    vscode: CodeServer, folder: Path, home: Path, model: ModelServer
) -> None:
    (folder / "other.txt").write_text("Elsewhere.\n")
    model.add(answer("Compared."))
    wire = folder.parent / "wire.jsonl"
    started = agent(home, environ=model.environ("anthropic"))
    line = 'tee "$0" | "$@"'
    wrapped = {
        "command": "sh",
        "args": ["-c", line, str(wire), started["command"], *started["args"]],
        "env": started["env"],
    }
    seen = vscode.run("input.mentions", folder, wrapped)
    assert seen["written"] == "Compare @other.txt with @notes.txt:1-1 "
    assert seen["attached"] == ["other.txt", "notes.txt:1-1"]
    (sent,) = [
        said["params"]["prompt"]
        for said in map(json.loads, wire.read_text().splitlines())
        if said.get("method") == "session/prompt"
    ]
    other, notes = (folder / name for name in ("other.txt", "notes.txt"))
    assert sent[1:] == [
        {"type": "resource_link", "uri": other.as_uri(), "name": "other.txt"},
        {
            "type": "resource",
            "resource": {
                "uri": f"{notes.as_uri()}#L1-L1",
                "mimeType": "text/plain",
                "text": "Kept on disk.",
            },
        },
    ]
    assert "Kept on disk." in json.dumps(content(model))


def test_a_selection_is_text_for_an_agent_that_takes_no_resources(
    vscode: CodeServer, folder: Path
) -> None:
    (folder / "other.txt").write_text("Elsewhere.\n")
    seen = vscode.run("input.mentions", folder, bad_agent("good"))
    assert "resource_link" in seen["answer"]
    assert "Kept on disk." in seen["answer"]


def waiting(begun: Path, go: Path) -> Call:
    """A command that lasts until a file is there."""
    names = shlex.quote(str(begun)), shlex.quote(str(go))
    script = "touch {}; until [ -e {} ]; do sleep 0.1; done".format(*names)
    return Call("shell", {"command": script})


def test_words_that_are_sent_while_the_agent_works_reach_the_model_in_the_same_turn(
    vscode: CodeServer, folder: Path, home: Path, model: ModelServer, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    model.add(answer("I wait.", waiting(tmp_path / "begun", go)), answer("With tabs."))
    seen = vscode.run(
        "input.steered", folder, agent(home, environ=model.environ("anthropic")), go=str(go)
    )
    assert seen["label"] == "Send now, while the agent works"
    assert seen["stillWorks"]
    assert [text.strip() for text in seen["users"]] == ["Wait for me.", "Use tabs, please."]
    assert not seen["waiting"]
    assert "Use tabs, please." in json.dumps(content(model))


def test_a_turn_is_stopped_by_the_keyboard_and_the_next_one_continues(
    vscode: CodeServer, folder: Path, home: Path, model: ModelServer, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    model.add(answer("I wait.", waiting(begun, tmp_path / "go")), answer("All is well."))
    seen = vscode.run(
        "input.cancelled", folder, agent(home, environ=model.environ("anthropic")), begun=str(begun)
    )
    assert seen["running"] == 0
    assert seen["next"].strip() == "All is well."
