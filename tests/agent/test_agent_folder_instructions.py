"""Instructions of subfolders reach the model with the first file that it touches there, once."""

from __future__ import annotations

from typing import Any

from acp_agent.content import ResourceLinkBlock
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import SECRET, Desk

RULES = "[Instructions of the project that hold from here on, from "


def scripted(server: ModelServer, *calls: tuple[Call, ...]) -> None:
    for some in calls:
        server.add(answer(*some), answer("Done."))


def told(server: ModelServer, request: int = -1) -> list[str]:
    """The instructions in one request that are not in its system prompt."""
    found = []
    for message in server.requests[request].json["messages"][1:]:
        content: Any = message["content"]
        texts = (
            [content] if isinstance(content, str) else [part.get("text") for part in content or ()]
        )
        found += [text for text in texts if text and text.startswith(RULES)]
    return found


def project(desk: Desk) -> None:
    for name, text in {
        "AGENTS.md": "Root rules.",
        "api/AGENTS.md": f"Use tabs. {SECRET}",
        "api/a.py": "a = 1\n",
        "api/b.py": "b = 1\n",
        "web/CLAUDE.md": "Use React.",
    }.items():
        path = desk.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


async def reopen(desk: Desk) -> None:
    session = desk.session.id
    await desk.manager.close(session, desk.editor)
    desk._session = await desk.manager.open(session, str(desk.folder), [])
    desk._session.attach(desk.editor)


async def test_instructions_come_once_with_the_first_file_read_there(
    desk: Desk, model_server: ModelServer
) -> None:
    project(desk)
    both = (Call("read", {"path": "api/a.py"}), Call("read", {"path": "api/b.py"}))
    scripted(model_server, both, both[:1], both[1:])
    await desk.say("One")
    (note,) = told(model_server)
    assert note == f"{RULES}{desk.folder / 'api' / 'AGENTS.md'}:]\n\nUse tabs. [secret]"
    assert told(model_server, 0) == []
    await desk.say("Two")
    await reopen(desk)
    await desk.say("Three")
    assert told(model_server) == [note]
    assert "Root rules." in model_server.requests[-1].json["messages"][0]["content"]


async def test_instructions_come_with_the_first_file_written_there(
    desk: Desk, model_server: ModelServer
) -> None:
    project(desk)
    scripted(model_server, (Call("write", {"path": "web/new.js", "content": "x\n"}),))
    await desk.say("One")
    (note,) = told(model_server)
    assert note.endswith("/web/CLAUDE.md:]\n\nUse React.")


async def test_instructions_come_again_after_a_compaction_or_a_rewind(
    desk: Desk, model_server: ModelServer
) -> None:
    project(desk)
    read = Call("read", {"path": "api/a.py"})
    model_server.add(answer("word " * 5_000, read), answer("Done."))
    await desk.say("One")
    model_server.add(answer("A summary."), answer("Yes."))
    await desk.say("/compact")
    await desk.say("Two")
    assert told(model_server) == [], "they are summarised with the rest"
    scripted(model_server, (read,))
    await desk.say("Three")
    assert len(told(model_server)) == 1
    await desk.say("/rewind 3 conversation")
    model_server.add(answer("Yes."))
    await desk.say("Four")
    assert told(model_server) == []
    scripted(model_server, (read,))
    await desk.say("Five")
    assert len(told(model_server)) == 1


async def test_instructions_come_with_a_message_that_links_to_a_file_there(
    desk: Desk, model_server: ModelServer
) -> None:
    project(desk)
    path = desk.folder / "api" / "a.py"
    model_server.add(answer("I see."))
    await desk.say("Look", ResourceLinkBlock(uri=path.as_uri(), name="a.py"))
    assert [note.partition(":]")[0] for note in told(model_server)] == [
        f"{RULES}{desk.folder / 'api' / 'AGENTS.md'}"
    ]
    scripted(model_server, (Call("read", {"path": "api/a.py"}),))
    await desk.say("Read it")
    assert len(told(model_server)) == 1


async def test_searching_a_folder_and_failing_to_read_a_file_add_no_instructions(
    desk: Desk, model_server: ModelServer
) -> None:
    project(desk)
    calls = (Call("list", {"path": "api"}), Call("read", {"path": "api/missing.py"}))
    scripted(model_server, calls)
    await desk.say("One")
    assert told(model_server) == []
