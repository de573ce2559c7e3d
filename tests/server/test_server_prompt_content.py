"""What a prompt may hold, and what of it the model is sent."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.server.server_session import DEMO, MODELS, OpenSession, messages
from tests.support.agent_process import StartAgent, config_file
from tests.support.editor import Editor
from tests.support.model_server import ModelServer, answer
from tests.support.wire_client import AnswerError

PIXEL = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
        "0000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
    )
).decode()
IMAGE = {"type": "image", "mimeType": "image/png", "data": PIXEL}


@pytest.fixture(autouse=True)
def _yes(model_server: ModelServer) -> None:
    model_server.otherwise = answer("Yes.")


def request_text(server: ModelServer) -> str:
    """The last message that the model was sent."""
    return json.dumps(messages(server)[-1], ensure_ascii=False)


@pytest.mark.covers("P1")
async def test_text_reaches_the_model_as_it_was_typed(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    text = 'naïve 好 🎉 \u2028 \t\\ "quoted" \u0000 end'
    await running.prompt(session, text, "second block")
    content = messages(model_server)[-1]["content"]
    texts = [part["text"] for part in content]
    assert text in texts
    assert "second block" in texts
    assert texts.index(text) < texts.index("second block")


@pytest.mark.covers("P1")
async def test_a_linked_file_is_read_for_the_model_unsaved_text_first(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    spaced = workspace_repo / "a b ü.txt"
    spaced.write_text("spaced out")
    file = workspace_repo / "greeting.py"
    editor = Editor(offers=frozenset({"read"}))
    editor.buffers[str(file)] = "unsaved = True\n"
    running, session = await opened(editor=editor)
    links = [
        {"type": "resource_link", "name": path.name, "uri": path.as_uri()}
        for path in (file, spaced)
    ]
    await running.prompt(session, "look", *links)
    assert "unsaved = True" in request_text(model_server)
    assert "spaced out" in request_text(model_server)
    assert str(file) in request_text(model_server)


@pytest.mark.covers("P1")
async def test_a_picture_that_no_model_takes_is_refused_and_the_session_continues_without_it(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    for picture, why in (
        ({"data": ""}, "none that models can read"),
        ({"data": "!!!"}, "none that models can read"),
        ({"data": "aGVsbG8="}, "none that models can read"),
        ({"data": PIXEL[:40] + "-_-_" + PIXEL[40:]}, "none that models can read"),
        ({"data": "PHN2Zy8+", "mimeType": "image/svg+xml"}, "(image/svg+xml) is none"),
        ({"data": base64.b64encode(b"\xff\xd8\xff" * 5_300_000).decode()}, "send a smaller one"),
    ):
        with pytest.raises(AnswerError) as caught:
            await running.prompt(session, "look", IMAGE | picture)
        assert caught.value.code == -32602
        assert why in caught.value.message
    assert model_server.requests == []
    await running.prompt(session, "then without")
    assert "image" not in json.dumps(messages(model_server))


@pytest.mark.covers("P1")
async def test_a_picture_is_sent_with_its_real_type(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    lines = "\n".join(PIXEL[at : at + 40] for at in range(0, len(PIXEL), 40))
    await running.prompt(session, "look", IMAGE | {"data": lines, "mimeType": "image/jpeg"})
    assert f"data:image/png;base64,{PIXEL}" in request_text(model_server)


@pytest.mark.covers("P1")
async def test_links_that_cannot_be_read_are_named_with_the_reason(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("secret of another project")
    (workspace_repo / "binary.bin").write_bytes(bytes(range(256)) * 8)
    uris = [
        outside.as_uri(),
        (workspace_repo / "missing.py").as_uri(),
        (workspace_repo / "binary.bin").as_uri(),
        workspace_repo.as_uri(),
        "https://example.org/page",
        "not a uri at all",
        "file://elsewhere/etc/passwd",
    ]
    running, session = await opened()
    links = [{"type": "resource_link", "name": uri[-12:], "uri": uri} for uri in uris]
    assert (await running.prompt(session, "look", *links))["stopReason"] == "end_turn"
    for name in ("outside.txt", "missing.py", "binary.bin", "example.org", "elsewhere"):
        assert name in request_text(model_server)
    assert "secret of another project" not in request_text(model_server)
    assert "root:" not in request_text(model_server)


@pytest.mark.covers("P1")
async def test_embedded_resources_reach_the_model_and_binary_ones_are_named(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    await running.prompt(
        session,
        "look",
        {"type": "resource", "resource": {"uri": "file:///x/notes.md", "text": "embedded words"}},
        {
            "type": "resource",
            "resource": {"uri": "zed:///blob", "blob": "AAAA", "mimeType": "application/zip"},
        },
    )
    assert "embedded words" in request_text(model_server)
    assert "notes.md" in request_text(model_server)
    assert "zed:///blob" in request_text(model_server)
    assert "application/zip" in request_text(model_server)


@pytest.mark.covers("P1")
@pytest.mark.parametrize("api", ["openai", "anthropic"])
async def test_an_image_reaches_a_model_that_sees(
    opened: OpenSession, home: Path, model_server: ModelServer, api: Any
) -> None:
    config_file(home, MODELS)
    running, session = await opened(api=api)
    await running.prompt(session, "what is it?", IMAGE)
    assert PIXEL in request_text(model_server)
    assert "image/png" in request_text(model_server)


@pytest.mark.covers("P1")
async def test_an_image_to_a_model_that_does_not_see_is_refused_and_the_session_continues(
    opened: OpenSession, home: Path, model_server: ModelServer
) -> None:
    config_file(home, '[models."openai/gpt-5"]\nvision = false\n')
    running, session = await opened()
    with pytest.raises(AnswerError) as caught:
        await running.prompt(session, "what is it?", IMAGE)
    assert caught.value.code == -32602
    assert "image" in caught.value.message
    assert model_server.requests == []
    assert (await running.prompt(session, "hi"))["stopReason"] == "end_turn"
    assert len(messages(model_server)) == 1
    assert "what is it?" not in request_text(model_server)


@pytest.mark.covers("P1", "T4")
async def test_unadvertised_empty_and_malformed_content_is_refused_and_changes_nothing(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    wrong: list[Any] = [
        [{"type": "audio", "mimeType": "audio/wav", "data": "AAAA"}],
        [],
        [{"type": "text", "text": ""}],
        [{"type": "text", "text": " \n\t"}],
        [{"type": "hologram", "text": "hi"}],
        [{"type": "text"}],
        [{"text": "no type"}],
        ["bare text"],
        "bare text",
        None,
    ]
    for prompt in wrong:
        with pytest.raises(AnswerError) as caught:
            await running.request("session/prompt", {"sessionId": session, "prompt": prompt})
        assert caught.value.code == -32602, prompt
        assert "prompt" in caught.value.message, prompt
    with pytest.raises(AnswerError) as caught:
        await running.request("session/prompt", {"sessionId": session})
    assert "prompt" in caught.value.message
    assert model_server.requests == []
    assert (await running.prompt(session, "hi"))["stopReason"] == "end_turn"
    assert len(messages(model_server)) == 1


@pytest.mark.covers("T3", "P1")
async def test_a_lone_surrogate_in_a_prompt_does_not_poison_the_conversation(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    running, session = await opened()
    line = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": "odd",
            "method": "session/prompt",
            "params": {"sessionId": session, "prompt": [{"type": "text", "text": "a\ud800b"}]},
        }
    )
    await running.send(line.encode() + b"\n")
    assert (await running.result("odd"))["stopReason"] == "end_turn"
    assert "a\ufffdb" in request_text(model_server)
    assert (await running.prompt(session, "and on"))["stopReason"] == "end_turn"
    load = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
    await running.request("session/load", load)
    assert "a\ufffdb" in json.dumps(running.updates(session), ensure_ascii=False)


@pytest.mark.covers("P1")
async def test_a_very_long_prompt_arrives_whole(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    text = "0123456789" * 300_000
    await running.prompt(session, text)
    assert text in request_text(model_server)


@pytest.mark.covers("P1", "T4")
async def test_annotations_and_meta_on_blocks_are_tolerated(
    agent: StartAgent, workspace_repo: Path
) -> None:
    running = await agent(*DEMO)
    await running.initialize()
    session = await running.new_session(workspace_repo)
    block = {
        "type": "text",
        "text": "hello",
        "annotations": {"audience": ["user"], "priority": 0.5},
        "_meta": {"source": "editor"},
    }
    assert (await running.prompt(session, block))["stopReason"] == "end_turn"


@pytest.mark.covers("P1")
@pytest.mark.parametrize("path", ["x" * 300, "x/" * 3000])
async def test_a_link_to_a_file_whose_name_no_disk_can_have_does_not_end_the_prompt(
    opened: OpenSession, workspace_repo: Path, path: str
) -> None:
    running, session = await opened()
    link = {"type": "resource_link", "name": "x", "uri": f"file://{workspace_repo}/{path}"}
    assert (await running.prompt(session, "look", link))["stopReason"] == "end_turn"
