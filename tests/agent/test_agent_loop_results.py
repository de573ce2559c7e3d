"""What of a call's outcome reaches the model, the user and the journal."""

from __future__ import annotations

import json
from typing import ClassVar, Literal, cast

import msgspec
import pytest

from acp_agent.agent.call_progress import CallProgress
from acp_agent.agent.call_runner import CallRunner
from acp_agent.agent.tool_calls import ProposedCall
from acp_agent.content import ContentPart, TextBlock, text_part
from acp_agent.events import (
    AgentText,
    ModelAnswered,
    ModelAsked,
    ToolCalled,
    ToolEnded,
    ToolKind,
    ToolOutput,
    ToolShown,
    TurnStarted,
)
from acp_agent.ids import new_call_id, new_message_id, new_turn_id
from acp_agent.session.turns.parts import TurnTools
from acp_agent.tools.base import Outcome, Prepared, Progress, Tool, ToolParams
from acp_agent.tools.toolset import Toolset
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import SECRET, Desk


class TellingTool(Tool[ToolParams]):
    """Puts a secret into everything that a tool can show or give."""

    name: ClassVar[str] = "telling"
    kind: ClassVar[ToolKind] = "other"
    effect: ClassVar[Literal["reads", "writes"]] = "reads"
    params: ClassVar[type[ToolParams]] = ToolParams

    @classmethod
    def description(cls) -> str:
        return "Tells."

    async def prepare(self, params: ToolParams) -> Prepared:
        return Prepared(title="Telling", run=self._run, content=(text_part(f"Soon: {SECRET}"),))

    async def _run(self, progress: Progress) -> Outcome:
        await progress.show(content=(text_part(f"Now: {SECRET}"),))
        await progress.output(f"Out: {SECRET}\n")
        return Outcome(
            text=f"Result: {SECRET}",
            content=(text_part(f"Content: {SECRET}"),),
            raw_output={"deep": [{"down": f"Raw: {SECRET}"}], "number": 1},
        )


async def run_call(desk: Desk, tool: type[Tool[ToolParams]]) -> None:
    """One call of a tool that no session has, on the session's own host."""
    turn = await desk.session.resources.for_turn()
    tools = cast("TurnTools", turn.tools)
    workspace = tools.workspace
    tools._built_in = msgspec.structs.replace(tools._built_in, toolset=Toolset([tool(workspace)]))
    call, message = new_call_id(), new_message_id()
    await turn.journal.emit(
        TurnStarted(turn=new_turn_id()),
        ModelAsked(message=message, model="m"),
        ToolCalled(call=call, message=message, name=tool.name, arguments="{}", title="t"),
        ModelAnswered(message=message, model="m"),
    )
    proposed = ProposedCall(call=call, name=tool.name, arguments="{}", safe_arguments="{}")
    await CallRunner(turn).run([proposed])


async def test_no_secret_leaves_a_call_by_any_way(desk: Desk) -> None:
    await run_call(desk, TellingTool)
    journal = await desk.journal()
    assert SECRET not in repr(journal)
    ended = desk.editor.of(ToolEnded)[0]
    assert ended.result == "Result: [secret]"
    assert ended.raw_output == {"deep": [{"down": "Raw: [secret]"}], "number": 1}
    (part,) = ended.content or ()
    assert isinstance(part, ContentPart)
    assert part.content == TextBlock(text="Content: [secret]")
    assert "".join(output.text for output in desk.editor.of(ToolOutput)) == "Out: [secret]\n"
    assert [len(shown.content or ()) for shown in desk.editor.of(ToolShown)] == [1, 1]


@pytest.mark.parametrize("cut", range(len(SECRET) + 1))
async def test_a_secret_that_comes_in_two_pieces_is_not_shown(desk: Desk, cut: int) -> None:
    turn = await desk.session.resources.for_turn()
    progress = CallProgress(turn.journal, turn.user, new_call_id())
    await progress.output(f"key={SECRET[:cut]}")
    await progress.output(f"{SECRET[cut:]} end")
    await progress.flush()
    assert "".join(o.text for o in desk.editor.of(ToolOutput)) == "key=[secret] end"


async def test_text_that_only_resembles_a_secret_is_shown_at_last(
    desk: Desk,
) -> None:
    turn = await desk.session.resources.for_turn()
    progress = CallProgress(turn.journal, turn.user, new_call_id())
    await progress.output("please open")
    await progress.flush()
    assert "".join(o.text for o in desk.editor.of(ToolOutput)) == "please open"


async def test_a_command_cannot_show_the_key_that_the_session_uses(
    desk: Desk, model_server: ModelServer
) -> None:
    (desk.folder / "keys").write_text(f"{SECRET}\n")
    command = f"cat keys; env; printf '%s' '{SECRET[:9]}'; printf '%s\\n' '{SECRET[9:]}'"
    model_server.add(answer(Call("shell", {"command": command})), answer("Done."))
    await desk.say("Show it")
    assert SECRET not in desk.results()[0]
    assert "[secret]" in desk.results()[0]
    for event in (*desk.editor.of(ToolOutput), *desk.editor.of(ToolEnded)):
        assert SECRET not in repr(event)


class LongTool(TellingTool):
    """Gives more than a model is sent."""

    name: ClassVar[str] = "long"

    async def _run(self, progress: Progress) -> Outcome:
        return Outcome(text="".join(f"line {number}\n" for number in range(20_000)) + SECRET)


async def test_a_result_over_the_limit_keeps_its_ends_and_the_whole_in_a_file(desk: Desk) -> None:
    await run_call(desk, LongTool)
    (ended,) = desk.editor.of(ToolEnded)
    assert len(ended.result) <= 50_000
    assert ended.result.startswith("line 0\n")
    assert ended.result.endswith("line 19999\n[secret]")
    (kept,) = (desk.services.outputs / desk.session.id).iterdir()
    assert str(kept) in ended.result
    assert "line 10000\n" in kept.read_text()
    assert SECRET not in kept.read_text()


async def test_the_model_can_read_the_file_that_keeps_a_long_output(
    desk: Desk, model_server: ModelServer
) -> None:
    command = "for n in $(seq 20000); do echo line $n; done"
    model_server.add(answer(Call("shell", {"command": command})), answer("Long."))
    await desk.say("Run it")
    (kept,) = (desk.services.outputs / desk.session.id).iterdir()
    model_server.add(
        answer(Call("read", {"path": str(kept), "line": 10_000, "limit": 1})), answer("Read.")
    )
    await desk.say("Read it")
    assert "line 10000" in desk.results()[-1]
    assert desk.editor.of(AgentText)[-1].text == "Read."


async def test_a_picture_that_a_tool_read_goes_to_the_model(
    desk: Desk, model_server: ModelServer
) -> None:
    (desk.folder / "dot.png").write_bytes(_PNG)
    model_server.add(answer(Call("read", {"path": "dot.png"})), answer("A dot."))
    await desk.say("Look")
    assert "image_url" in json.dumps(desk.sent())


_PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c63f8ffff3f0005fe02fea7d6059b0000000049454e44ae426082"
)
