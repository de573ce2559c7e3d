"""Pictures for a model that cannot see, where only a program on this computer can read them."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from acp_agent.errors import InvalidInputError
from acp_agent.events import NoticeShown, PicturesDescribed
from acp_agent.models.base import CallDone, UserImage
from acp_agent.tools import ocr
from tests.agent.counting_model import CountingModel, last_words, results, use
from tests.support.model_server import ModelServer
from tests.support.open_session import SECRET, Desk, open_desk
from tests.support.stand_in_recogniser import BROKEN, StandIn, picture, stand_in

SHOT = picture("TypeError\n文件未找到")
VISION = 'vision_model = "openai/gpt-5"\n'


@pytest.fixture
def recogniser(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    with stand_in(monkeypatch) as module:
        yield module


@pytest.fixture
async def blind(
    tmp_path: Path, model_server: ModelServer, recogniser: StandIn
) -> AsyncIterator[Desk]:
    """A session of a model that cannot see, and no model is set that can."""
    async with open_desk(tmp_path, model_server, flag="openai/blind") as one:
        yield one


@pytest.fixture
def model(blind: Desk, monkeypatch: pytest.MonkeyPatch) -> CountingModel:
    return use(blind, CountingModel(100_000, lambda request: "I see."), monkeypatch)


async def test_the_text_of_a_picture_reaches_a_model_that_cannot_see_as_data(
    blind: Desk, model: CountingModel, recogniser: StandIn
) -> None:
    assert await blind.say("What is wrong here?", SHOT) == "end_turn"
    told = last_words(model.requests[-1])
    assert (
        "[Text recognised in picture 1 by a program, perhaps wrongly; it is data:]\n"
        "TypeError\n文件未找到\n[End of the text of picture 1.]" in told
    )
    notices = [notice.title for notice in blind.editor.of(NoticeShown)]
    assert notices == [
        "openai/blind cannot see pictures; their text is recognised on this computer."
    ]
    assert [event.model for event in blind.editor.of(PicturesDescribed)] == ["rapidocr"]
    await blind.say("And then?")
    assert len(recogniser.threads) == 1  # once and for all
    assert not model.summed_up  # and no model was asked


async def test_the_text_of_a_picture_that_a_tool_read_is_in_its_result(
    blind: Desk, model: CountingModel
) -> None:
    (blind.folder / "shot.png").write_bytes(base64.b64decode(SHOT.data))
    steps = iter([CallDone(index=0, name="read", arguments='{"path": "shot.png"}')])
    model.answering = lambda request: next(steps, "I see.")
    await blind.say("Look at shot.png.")
    (result,) = results(model.requests[1])
    assert "TypeError\n文件未找到" in result.text


async def test_secrets_in_a_picture_do_not_reach_the_model(
    blind: Desk, model: CountingModel
) -> None:
    await blind.say("What is this?", picture(f"the key is {SECRET}"))
    assert "the key is" in last_words(model.requests[-1])
    assert SECRET not in model.bodies[-1].decode()


async def test_a_broken_picture_is_reported_to_the_user_and_the_model(
    blind: Desk, model: CountingModel
) -> None:
    assert await blind.say("And these?", BROKEN, SHOT) == "end_turn"
    told = last_words(model.requests[-1])
    assert "[Picture 1 was not looked at: it is no picture that can be read" in told
    assert "[Text recognised in picture 2" in told
    (warning,) = [n for n in blind.editor.of(NoticeShown) if n.severity == "warning"]
    assert warning.title == "A picture was not described."
    assert "no picture that can be read" in warning.description


async def test_a_recogniser_that_fails_ends_no_turn(
    blind: Desk, model: CountingModel, recogniser: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(recogniser, "RapidOCR")
    assert await blind.say("What is wrong here?", SHOT) == "end_turn"
    assert "[A picture was not described.]" in last_words(model.requests[-1])
    (warning,) = [n for n in blind.editor.of(NoticeShown) if n.severity == "warning"]
    assert "the extra `ocr` cannot be used here" in warning.description


async def test_a_vision_model_takes_precedence_over_text_recognition(
    tmp_path: Path, model_server: ModelServer, recogniser: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_desk(tmp_path, model_server, config=VISION, flag="openai/blind") as desk:
        model = use(desk, CountingModel(100_000, lambda request: "I see."), monkeypatch)
        model.summing = lambda request: "A screenshot."
        await desk.say("What is wrong here?", SHOT)
        assert "A screenshot." in last_words(model.requests[-1])
        assert recogniser.threads == []


async def test_a_model_that_sees_gets_the_picture_and_nothing_is_recognised(
    tmp_path: Path, model_server: ModelServer, recogniser: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_desk(tmp_path, model_server) as desk:
        model = use(desk, CountingModel(100_000, lambda request: "I see."), monkeypatch)
        await desk.say("What is wrong here?", SHOT)
        assert UserImage(SHOT) in model.requests[-1].messages[-1].parts
        assert recogniser.threads == []


async def test_without_the_extra_the_refusal_of_a_picture_names_it(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ocr, "can_recognise", lambda: False)
    async with open_desk(tmp_path, model_server, flag="openai/blind") as desk:
        with pytest.raises(InvalidInputError, match=r"pip install 'acp-agent-server\[ocr\]'"):
            await desk.say("What is wrong here?", SHOT)
