"""The model goes back by itself, where the user lets it."""

from __future__ import annotations

from pathlib import Path

from acp_agent.events import Rewound, ToolEnded
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import Desk, open_desk

ON = "mode = 'full'\n[checkpoints]\nrewind_tool = true\n"


def tools(server: ModelServer) -> set[str]:
    return {tool["function"]["name"] for tool in server.requests[-1].json["tools"]}


async def test_it_is_off_unless_the_user_wants_it(desk: Desk, model_server: ModelServer) -> None:
    model_server.add(answer("Yes."))
    await desk.say("One")
    assert "rewind" not in tools(model_server)


async def test_the_conversation_and_the_files_go_back_and_the_message_stays(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, config=ON) as desk:
        (desk.folder / "kept").write_text("1")
        model_server.add(answer("Yes."))
        await desk.say("First")
        assert "rewind" in tools(model_server)
        model_server.add(
            answer(Call("shell", {"command": "echo 2 > kept; echo 2 > wrong"})),
            answer(Call("rewind", {"message": "Do not write wrong.", "files": True})),
            answer("Better now."),
        )
        assert await desk.say("Try it") == "end_turn"
        assert [path.name for path in desk.folder.iterdir()] == ["kept"]
        assert (desk.folder / "kept").read_text() == "1"
        sent = desk.sent()
        assert [message["role"] for message in sent] == ["user", "assistant", "user", "user"]
        assert "Try it" in str(sent[2])
        assert "Do not write wrong." in str(sent[3])
        (rewound,) = desk.editor.of(Rewound)
        assert rewound.keeps_words
        model_server.add(answer("Fine."))
        await desk.say("Thanks")
        assert desk.words()[-2:][0].splitlines()[1] == "Do not write wrong."
        assert desk.results() == []


async def test_rewind_goes_back_to_an_earlier_message_and_no_further_than_the_first(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, config=ON) as desk:
        model_server.add(answer("One."), answer("Two."))
        await desk.say("First")
        await desk.say("Second")
        model_server.add(
            answer(Call("rewind", {"message": "x", "point": 9})),
            answer(
                Call("rewind", {"message": "Learned.", "point": 1}),
                Call("shell", {"command": "touch after"}),
            ),
            answer(Call("rewind", {"message": "Learned.", "point": 1})),
            answer("Again."),
        )
        await desk.say("Third")
        ended = desk.editor.of(ToolEnded)
        assert "the last one is 3" in ended[0].result
        assert "call rewind alone" in ended[1].result
        assert desk.words()[0].startswith("First")
        assert len(desk.words()) == 2
        assert "Learned." in desk.words()[1]
