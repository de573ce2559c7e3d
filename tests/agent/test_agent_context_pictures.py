"""Pictures for a model that cannot see them."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from acp_agent.content import ImageBlock
from acp_agent.errors import InvalidInputError
from acp_agent.events import ModelAnswered, NoticeShown, PicturesDescribed, TurnEnded
from acp_agent.models.base import CallDone, Failed, UserImage
from acp_agent.tools import ocr
from tests.agent.counting_model import CountingModel, last_words, results, use
from tests.support.model_server import ModelServer
from tests.support.open_session import Desk, open_desk
from tests.support.pdf_document import document

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PICTURE = ImageBlock(data=base64.b64encode(PNG).decode(), mime_type="image/png")
CONFIG = 'vision_model = "openai/gpt-5"\n'


@pytest.fixture
async def blind(tmp_path: Path, model_server: ModelServer) -> AsyncIterator[Desk]:
    """A session of a model that cannot see, beside one that can."""
    async with open_desk(tmp_path, model_server, config=CONFIG, flag="openai/blind") as one:
        yield one


@pytest.fixture
def model(blind: Desk, monkeypatch: pytest.MonkeyPatch) -> CountingModel:
    model = use(blind, CountingModel(100_000, lambda request: "I see."), monkeypatch)
    model.summing = lambda request: "A screenshot.\nThe button says `Cancle`."
    return model


async def test_a_picture_of_a_prompt_is_described_by_another_model(
    blind: Desk, model: CountingModel
) -> None:
    await blind.say("What is wrong here?", PICTURE)
    (request,) = model.summed_up
    assert request.model.ref == "openai/gpt-5"
    assert UserImage(PICTURE) in request.messages[0].parts
    assert "The button says `Cancle`." in last_words(model.requests[-1])
    notices = [notice.title for notice in blind.editor.of(NoticeShown)]
    assert notices == ["openai/blind cannot see pictures; openai/gpt-5 describes them."]
    assert "openai/gpt-5" in [event.model for event in blind.editor.of(ModelAnswered)]
    ended = blind.editor.of(TurnEnded)[0]
    assert ended.usage is not None
    assert ended.usage.input > model.counts[-1]
    await blind.say("And then?")
    assert len(model.summed_up) == 1  # once and for all
    first, second = model.bodies
    assert second.startswith(first.removesuffix(b"]}"))


async def test_a_picture_that_a_tool_read_is_described_in_its_result(
    blind: Desk, model: CountingModel
) -> None:
    (blind.folder / "shot.png").write_bytes(PNG)
    read: CallDone | str = CallDone(index=0, name="read", arguments='{"path": "shot.png"}')
    steps = iter([read, CallDone(index=0, name="list", arguments='{"path": "."}')])
    model.answering = lambda request: next(steps, "I see.")
    await blind.say("Look at shot.png.")
    (result,) = results(model.requests[1])
    assert "The button says `Cancle`." in result.text
    assert len(model.requests) == 3
    assert len(model.summed_up) == 1


async def test_a_scanned_page_is_described_by_another_model(
    blind: Desk, model: CountingModel
) -> None:
    (blind.folder / "scan.pdf").write_bytes(document("Some words", ""))
    read: CallDone | str = CallDone(index=0, name="read", arguments='{"path": "scan.pdf"}')
    steps = iter([read])
    model.answering = lambda request: next(steps, "I see.")
    await blind.say("Read scan.pdf.")
    (result,) = results(model.requests[1])
    assert "Some words" in result.text
    assert "The button says `Cancle`." in result.text
    (request,) = model.summed_up
    assert request.model.ref == "openai/gpt-5"
    assert [part.image.mime_type for part in request.messages[0].parts[:-1]] == ["image/png"]  # type: ignore[union-attr]  # all but the last are pictures


async def test_without_a_vision_model_pictures_are_mentioned_and_the_user_sees_why(
    blind: Desk, model: CountingModel
) -> None:
    model.summing = lambda request: Failed(kind="bad_request", message="No pictures today.")
    assert await blind.say("What is wrong here?", PICTURE) == "end_turn"
    await blind.say("And now?")
    assert len(model.summed_up) == 1  # nobody is asked again
    assert [event.model for event in blind.editor.of(PicturesDescribed)] == [""]
    (warning,) = [n for n in blind.editor.of(NoticeShown) if n.severity == "warning"]
    assert "No pictures today." in warning.description
    assert "cannot see pictures" in model.bodies[-1].decode()


async def test_pictures_that_another_model_saw_are_not_described_later(
    blind: Desk, model: CountingModel
) -> None:
    await blind.session.set_option("model", "openai/gpt-5")
    await blind.say("What is wrong here?", PICTURE)
    await blind.session.set_option("model", "openai/blind")
    await blind.say("And what else?")
    assert not model.summed_up


async def test_without_a_vision_model_a_picture_is_refused_with_advice(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ocr, "can_recognise", lambda: False)
    async with open_desk(tmp_path, model_server, flag="openai/blind") as desk:
        with pytest.raises(InvalidInputError, match="vision_model"):
            await desk.say("What is wrong here?", PICTURE)


async def test_a_model_that_sees_gets_the_picture_itself(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_desk(tmp_path, model_server, config=CONFIG) as desk:
        model = use(desk, CountingModel(100_000, lambda request: "I see."), monkeypatch)
        await desk.say("What is wrong here?", PICTURE)
        assert not model.summed_up
        assert UserImage(PICTURE) in model.requests[-1].messages[-1].parts
