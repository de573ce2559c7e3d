"""Titles by the small model."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.events import ModelAnswered, TitleChanged, TurnEnded
from acp_agent.models.base import Failed, ModelRequest
from tests.agent.counting_model import CountingModel, use
from tests.support.model_server import ModelServer
from tests.support.open_session import Desk, open_desk

CONFIG = 'small_model = "openai/tiny"\n'


def naming(desk: Desk, monkeypatch: pytest.MonkeyPatch, title: str | Failed) -> CountingModel:
    model = use(desk, CountingModel(100_000, lambda request: "I mended it."), monkeypatch)
    model.summing = lambda request: title
    return model


async def background_done(desk: Desk) -> None:
    await desk.session.core.background.wait()
    await desk.session.core.flush()


async def test_the_small_model_gives_a_better_title_after_the_first_turn(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_desk(tmp_path, model_server, config=CONFIG) as desk:
        model = naming(desk, monkeypatch, '"**Mend the retry limit.**"\n')
        await desk.say("hi, could you have a look at why it retries for ever?")
        ended = desk.editor.shown.index(desk.editor.of(TurnEnded)[0])
        await background_done(desk)
        titles = [event.title for event in desk.editor.of(TitleChanged)]
        assert titles == [
            "hi, could you have a look at why it retries for ever?",
            "Mend the retry limit",
        ]
        assert desk.editor.shown.index(desk.editor.of(TitleChanged)[1]) > ended  # nobody waited
        (request,) = model.summed_up
        assert request.model.ref == "openai/tiny"
        assert "openai/tiny" in [event.model for event in desk.editor.of(ModelAnswered)]
        await desk.say("And another thing.")
        await background_done(desk)
        assert len(model.summed_up) == 1


@pytest.mark.parametrize(
    "answer",
    [
        Failed(kind="bad_request", message="No."),
        "\n\n",
        "I would call this conversation something that goes on and on, " * 5,
    ],
    ids=["an error", "nothing", "a sermon"],
)
async def test_the_first_prompt_stays_the_title_if_no_model_gives_one(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, answer: str | Failed
) -> None:
    async with open_desk(tmp_path, model_server, config=CONFIG) as desk:
        naming(desk, monkeypatch, answer)
        await desk.say("Mend it.")
        await background_done(desk)
        assert desk.session.core.state.title == "Mend it."


async def test_a_title_that_the_user_gave_meanwhile_is_not_replaced(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_desk(tmp_path, model_server, config=CONFIG) as desk:
        model = naming(desk, monkeypatch, "Mend the retry limit")
        own = TitleChanged(title="My own", by="user")

        def meanwhile(request: ModelRequest) -> str:
            desk.session.core.write(own)
            return "Mend the retry limit"

        model.summing = meanwhile
        await desk.say("Mend it.")
        await background_done(desk)
        assert model.summed_up
        assert desk.session.core.state.title == "My own"


@pytest.mark.parametrize("config", ["", f'{CONFIG}titles = "prompt"\n'])
async def test_no_model_is_asked_for_a_title_without_one_for_side_work_or_where_it_is_off(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, config: str
) -> None:
    async with open_desk(tmp_path, model_server, config=config) as desk:
        model = naming(desk, monkeypatch, "Mend the retry limit")
        await desk.say("Mend it.")
        await background_done(desk)
        assert not model.summed_up
        assert desk.session.core.state.title == "Mend it."
