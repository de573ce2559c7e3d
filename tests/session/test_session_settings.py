"""What a user can choose for a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.errors import InvalidInputError, StoreError
from acp_agent.events import ConfigChanged, ToolEnded
from acp_agent.models.base import ModelInfo
from acp_agent.session.settings import mode_option, model_option, thought_option
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import Desk, open_desk


def current(desk: Desk) -> dict[str, str]:
    return {option.id: option.current for option in desk.session.core.settings.options()}


async def test_a_new_session_has_the_configurations_mode_and_the_models_own_level(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = 'mode = "plan"\nthought_level = "high"\n'
    async with open_desk(tmp_path, model_server, config=config) as desk:
        assert current(desk) == {
            "mode": "plan",
            "model": "openai/gpt-5",
            "thought_level": "high",
            "agent": "default",
        }


async def test_every_value_that_an_option_offers_can_be_chosen(desk: Desk) -> None:
    for option in desk.session.core.settings.options():
        for value in option.values:
            await desk.session.set_option(option.id, value.id)
            assert current(desk)[option.id] == value.id, option.id
        await desk.session.set_option("model", "openai/gpt-5")  # not every model has levels


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("mode", "yolo", "accept-edits"),
        ("model", "openai/unheard-of", "openai/gpt-5"),
        ("thought_level", "sideways", "low, high"),
        ("colour", "red", "mode, model, thought_level"),
    ],
)
async def test_an_invalid_choice_is_refused_with_the_valid_ones(
    desk: Desk, option: str, value: str, told: str
) -> None:
    before = current(desk)
    with pytest.raises(InvalidInputError) as caught:
        await desk.session.set_option(option, value)
    assert told in str(caught.value)
    assert caught.value.field in {"configId", "value"}
    assert current(desk) == before
    assert len([e for e in await desk.journal() if isinstance(e, ConfigChanged)]) == 2


@pytest.mark.parametrize(("option", "value"), [("mode", "full"), ("model", "openai/blind")])
async def test_an_option_that_cannot_be_saved_stays_unchanged(
    desk: Desk, option: str, value: str
) -> None:
    before = current(desk)
    desk.store.full = True
    with pytest.raises(StoreError):
        await desk.session.set_option(option, value)
    assert current(desk) == before
    assert desk.editor.shown == []
    desk.store.full = False
    await desk.session.set_option(option, value)
    assert current(desk)[option] == value


async def test_a_model_without_levels_has_no_such_option_and_the_level_comes_back_with_the_other(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.otherwise = answer("Yes.")
    await desk.session.set_option("thought_level", "high")
    await desk.session.set_option("model", "openai/blind")
    assert "thought_level" not in current(desk)
    await desk.say("One")
    await desk.session.set_option("model", "openai/gpt-5")
    assert current(desk)["thought_level"] == "high"
    await desk.say("Two")
    blind, seeing = (request.json for request in model_server.requests)
    assert (blind["model"], blind.get("reasoning_effort")) == ("blind", None)
    assert (seeing["model"], seeing["reasoning_effort"]) == ("gpt-5", "high")


async def test_options_are_the_same_after_the_session_was_closed_and_opened(desk: Desk) -> None:
    for option, value in {"mode": "plan", "model": "openai/blind"}.items():
        await desk.session.set_option(option, value)
    before = current(desk)
    session = desk.session.id
    await desk.manager.close(session, desk.editor)
    # The model named on the command line wins over the session's own when it is opened.
    again = await desk.manager.open(session, str(desk.folder), [])
    after = {option.id: option.current for option in again.core.settings.options()}
    assert after["mode"] == before["mode"] == "plan"


async def test_a_sessions_own_model_is_used_where_the_command_line_names_none(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(
        tmp_path, model_server, config='model = "openai/gpt-5"\n', flag=None
    ) as desk:
        await desk.session.set_option("model", "openai/blind")
        await desk.manager.close(desk.session.id, desk.editor)
        again = await desk.manager.open(desk.session.id, str(desk.folder), [])
        assert again.core.settings.model.ref == "openai/blind"


async def test_a_mode_of_a_newer_version_in_the_journal_is_passed_over(
    desk: Desk, model_server: ModelServer
) -> None:
    await desk.session.core.emit(ConfigChanged(option="mode", value="telepathic"))
    model_server.add(answer("Yes."))
    assert desk.session.core.settings.mode == "ask"
    assert await desk.say("Hello") == "end_turn"


def test_the_current_model_is_always_among_the_values() -> None:
    odd = ModelInfo(provider="p", id="odd")
    option = model_option(odd, [ModelInfo(provider="p", id="known", name="Known")])
    assert [(value.id, value.name) for value in option.values] == [
        ("p/odd", "p/odd"),
        ("p/known", "Known"),
    ]
    assert option.check("p/odd") == "p/odd"


def test_a_level_that_the_model_does_not_have_falls_back_to_its_own() -> None:
    info = ModelInfo(provider="p", id="m", thought_levels=("low", "high"), default_thought="high")
    option = thought_option(info, "max")
    assert option is not None
    assert option.current == "high"
    assert thought_option(ModelInfo(provider="p", id="m"), "high") is None


def test_every_mode_says_what_it_does() -> None:
    option = mode_option("ask")
    assert [value.id for value in option.values] == [
        "ask",
        "accept-edits",
        "plan",
        "draft",
        "full",
    ]
    assert all(value.description for value in option.values)


async def test_draft_mode_adds_files_without_a_question_and_leaves_the_others_as_they_are(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = 'mode = "draft"\ndraft_folder = "notes/drafts"\n'
    async with open_desk(tmp_path, model_server, config=config) as desk:
        (desk.folder / "a.py").write_text("x = 1\n")
        new = "notes/drafts/plan.md"
        model_server.add(
            answer(
                Call("write", {"path": new, "content": "One."}),
                Call("edit", {"path": "a.py", "edits": [{"old_text": "1", "new_text": "2"}]}),
                Call("shell", {"command": "rm a.py"}),
            ),
            answer(Call("write", {"path": new, "content": "Two."})),
            answer("Done."),
        )
        await desk.say("Write a plan")
        assert desk.editor.asked == []
        assert sorted(event.failed for event in desk.editor.of(ToolEnded)) == [False, *[True] * 3]
        assert (desk.folder / new).read_text() == "One."
        assert (desk.folder / "a.py").read_text() == "x = 1\n"
        assert "below notes/drafts and nowhere else" in desk.words(0)[0]
