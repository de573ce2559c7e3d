"""What is asked before a call runs, and what becomes of the answer."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from acp_agent.agent.call_permissions import DISMISSED, REJECTED, Refusal
from acp_agent.agent.resources import PermissionRequest
from acp_agent.content import text_part
from acp_agent.events import (
    AgentText,
    NoticeShown,
    PermissionAsked,
    PermissionDecided,
    ToolCalled,
    ToolEnded,
    ToolStarted,
)
from acp_agent.permissions import guarded_files
from acp_agent.permissions.access import Ask
from acp_agent.platform.data_tables import read_table
from acp_agent.tools.base import Answer
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import Desk, home_paths, presses

MAKE = Call("write", {"path": "made.txt", "content": "made\n"})
# Were it run after all, it would leave a file behind and end before its harmful part.
BLOCKED = "touch ran; exit; rm -rf /"


def make(name: str) -> Call:
    return Call("write", {"path": name, "content": "made\n"})


@pytest.mark.parametrize(
    ("pressed", "told"), [("reject_once", REJECTED), ("reject_always", REJECTED), (None, DISMISSED)]
)
async def test_a_refused_call_does_not_run_and_the_model_reads_why(
    desk: Desk, model_server: ModelServer, pressed: str | None, told: Refusal
) -> None:
    desk.editor.decide = presses(pressed)
    model_server.add(answer(MAKE), answer("I see."))
    assert await desk.say("Make it") == "end_turn"
    assert not (desk.folder / "made.txt").exists()
    assert desk.results() == [f"Error: {told.model}"]
    (ended,) = desk.editor.of(ToolEnded)
    assert ended.content == (text_part(told.user),)  # the user is not told what the model is to do
    assert "Do not try" not in told.user
    assert desk.editor.of(ToolStarted) == []
    (decided,) = desk.editor.of(PermissionDecided)
    assert (decided.allowed, decided.by) == (False, "user")


async def test_the_question_shows_the_whole_change(desk: Desk, model_server: ModelServer) -> None:
    model_server.add(answer(MAKE), answer("Done."))
    await desk.say("Make it")
    (asking,) = desk.editor.asked
    (diff,) = asking.content
    assert diff.new_text == "made\n"  # type: ignore[union-attr]  # it is a diff
    assert asking.locations[0].path.endswith("made.txt")
    assert json.loads(asking.arguments) == MAKE.arguments


async def test_a_forbidden_call_is_refused_without_a_question(
    desk: Desk, model_server: ModelServer
) -> None:
    await desk.session.set_option("mode", "full")
    model_server.add(answer(Call("shell", {"command": BLOCKED})), answer("I see."))
    await desk.say("Go")
    assert not (desk.folder / "ran").exists()
    assert desk.editor.asked == []
    (decided,) = desk.editor.of(PermissionDecided)
    assert (decided.allowed, decided.by) == (False, "rule")
    assert desk.results() == [f"Error: {decided.why}"]


async def test_a_call_that_a_mode_allows_is_recorded_with_the_reason(
    desk: Desk, model_server: ModelServer
) -> None:
    await desk.session.set_option("mode", "accept-edits")
    model_server.add(answer(MAKE), answer("Done."))
    await desk.say("Make it")
    assert desk.editor.asked == []
    (decided,) = desk.editor.of(PermissionDecided)
    assert (decided.allowed, decided.by) == (True, "mode")
    assert (desk.folder / "made.txt").read_text() == "made\n"


async def test_an_always_is_stored_once_and_avoids_later_questions(
    desk: Desk, model_server: ModelServer
) -> None:
    desk.editor.decide = presses("allow_always")
    model_server.add(answer(make("one")), answer(make("two")), answer("Done."))
    await desk.say("Make them")
    assert len(desk.editor.asked) == 1
    first, second = desk.editor.of(PermissionDecided)
    assert (first.by, second.by) == ("user", "grant")
    grants = json.loads(home_paths(desk.folder.parent).grants_file.read_text())
    assert len(grants["grants"]) == 1


async def test_a_grant_that_cannot_be_stored_applies_to_its_call_with_a_notice(
    desk: Desk, model_server: ModelServer
) -> None:
    newer = {"version": 99, "grants": []}  # never overwritten
    home_paths(desk.folder.parent).grants_file.write_text(json.dumps(newer))
    desk.editor.decide = presses("allow_always")
    model_server.add(answer(MAKE), answer("Done."))
    assert await desk.say("Make it") == "end_turn"
    assert (desk.folder / "made.txt").exists()
    assert "was not remembered" in desk.editor.of(NoticeShown)[0].title


async def test_a_mode_chosen_while_a_question_is_open_holds_for_the_next_call(
    desk: Desk, model_server: ModelServer
) -> None:
    answered = asyncio.Event()

    async def wait(asking: PermissionRequest, ask: Ask) -> str:
        await answered.wait()
        return "allow_once"

    desk.editor.decide = wait
    model_server.add(answer(make("one"), make("two")), answer("Done."))
    turn = await desk.begin("Make them")
    await desk.editor.until(PermissionAsked)
    await desk.session.set_option("mode", "accept-edits")
    answered.set()
    await turn.result()
    assert len(desk.editor.asked) == 1
    # Side by side: the second may be decided before the answer to the first is written.
    decided = {one.call: one.by for one in desk.editor.of(PermissionDecided)}
    first, second = (one.call for one in desk.editor.of(ToolCalled))
    assert decided == {first: "user", second: "mode"}


async def test_a_question_without_forms_is_asked_as_text_and_ends_the_turn(
    desk: Desk, model_server: ModelServer
) -> None:
    ask = Call("ask_user", {"question": "Tabs or spaces?", "options": [{"label": "Tabs"}]})
    model_server.add(answer("I wonder.", ask), answer("Tabs it is."))
    assert await desk.say("Format it") == "end_turn"
    assert len(model_server.requests) == 1
    assert desk.editor.of(AgentText)[-1].text == "Tabs or spaces?\n\n- Tabs"
    assert await desk.say("Tabs, please") == "end_turn"
    roles = [message["role"] for message in desk.sent()]
    assert roles == ["user", "assistant", "tool", "user"]
    assert "Tabs or spaces?" not in json.dumps(desk.sent()[1].get("content"))


async def test_a_message_during_a_question_in_text_is_answered(
    desk: Desk, model_server: ModelServer
) -> None:
    write, ask = make("one"), Call("ask_user", {"question": "Tabs or spaces?"})
    answered = asyncio.Event()

    async def wait(asking: PermissionRequest, to_ask: Ask) -> str:
        await answered.wait()
        return "allow_once"

    desk.editor.decide = wait
    model_server.add(answer(write, ask), answer("Spaces it is."))
    turn = await desk.begin("Format it")
    await desk.editor.until(PermissionAsked)
    assert await desk.begin("By the way, spaces") is turn
    answered.set()
    assert await turn.result() == "end_turn"
    assert len(model_server.requests) == 2
    assert desk.words()[-1].startswith("By the way, spaces")


async def test_an_answer_by_form_goes_to_the_model_and_the_turn_continues(
    desk: Desk, model_server: ModelServer
) -> None:
    desk.editor.answer = Answer(text="Tabs")
    ask = Call("ask_user", {"question": "Tabs or spaces?"})
    model_server.add(answer(ask), answer("Tabs it is."))
    assert await desk.say("Format it") == "end_turn"
    assert desk.results() == ["The user answered: Tabs"]
    assert desk.editor.of(ToolEnded)[0].failed is False


async def test_the_programs_own_files_are_changed_by_no_tool_even_with_full_access(
    desk: Desk, model_server: ModelServer
) -> None:
    above = desk.folder.parent
    paths = home_paths(above)
    desk._session = await desk.manager.create(str(above), [], desk.editor)
    await desk.session.set_option("mode", "full")
    before = paths.config_file.read_text()
    model_server.add(
        answer(make(str(paths.grants_file))),
        answer(Call("shell", {"command": f"echo x >> '{paths.config_file}'"})),
        answer("I see."),
    )
    await desk.say("Go")
    assert [decided.allowed for decided in desk.editor.of(PermissionDecided)] == [False, False]
    assert not paths.grants_file.exists()
    assert paths.config_file.read_text() == before


async def test_the_first_edit_does_not_block_the_loop_to_read_the_table_of_guarded_files(
    desk: Desk, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers: list[threading.Thread] = []

    def read(package: str, name: str, kind: type[Any]) -> Any:
        readers.append(threading.current_thread())
        return read_table(package, name, kind)

    monkeypatch.setattr(f"{guarded_files.__name__}.read_table", read)
    guarded_files._patterns.cache_clear()
    model_server.add(answer(MAKE), answer("Done."))
    assert await desk.say("Make it") == "end_turn"
    assert [reader is threading.main_thread() for reader in readers] == [False]
