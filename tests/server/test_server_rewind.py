"""Going back, on the wire of both versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.server.either_version import EitherClient
from tests.support.agent_process import StartAgent
from tests.support.framing import Json
from tests.support.model_server import Call, ModelServer, Stall, answer

LIST = "_acp-agent/checkpoints/list"
RESTORE = "_acp-agent/checkpoints/restore"

VERSIONS = pytest.mark.parametrize("version", [1, 2])
VERSION_1 = pytest.mark.parametrize("version", [1])  # both versions share these handlers
VERSION_2 = pytest.mark.parametrize("version", [2])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "rewind-project"
    folder.mkdir()
    (folder / "a").write_text("1\n")
    (folder / ".gitignore").write_text("local/\n")
    (folder / "local").mkdir()
    (folder / "local" / "notes").write_text("mine\n")
    return folder


async def ready(
    agent: StartAgent, version: int, server: ModelServer, project: Path
) -> tuple[EitherClient, str]:
    """A session with two turns, of which the second wrote."""
    client = await EitherClient.before(agent, version, server)
    session = await client.new(project)
    options: Json = {"sessionId": session, "configId": "mode", "value": "full"}
    if version == 2:
        options["type"] = "id"
    await client.request("session/set_config_option", **options)
    server.add(answer("Yes."))
    await client.say(session, "First")
    server.add(
        answer(Call("shell", {"command": "echo 2 > a; echo 2 > b"})),
        answer("Written."),
    )
    await client.say(session, "Second")
    server.otherwise = answer("Fine.")
    return client, session


async def ask(client: EitherClient, method: str, **params: Any) -> Json:
    result = await client.wire.request(method, params)
    assert isinstance(result, dict)
    return result


@VERSIONS
async def test_checkpoints_are_listed_previewed_and_restored(
    version: int, agent: StartAgent, model_server: ModelServer, project: Path
) -> None:
    client, session = await ready(agent, version, model_server, project)
    listed = await ask(client, LIST, sessionId=session)
    points = listed.pop("points")
    unsaved = {"notKept": [{"path": "local/", "reason": "ignored"}], "notKeptCount": 1}
    assert listed == unsaved
    assert [
        (point["number"], point["title"], point["files"], point["current"]) for point in points
    ] == [
        (1, "First", True, True),
        (2, "Second", True, True),
    ]
    params: Json = {"sessionId": session, "pointId": points[1]["pointId"], "what": "both"}
    tried = await ask(client, RESTORE, **params, dryRun=True)
    assert tried == {
        "changes": [{"path": "a", "change": "modify"}, {"path": "b", "change": "delete"}],
        "changeCount": 2,
        "untouched": [],
        **unsaved,
    }
    assert (project / "a").read_text() == "2\n"
    done = await ask(client, RESTORE, **params)
    rewind = done.pop("rewindId")
    assert done == tried
    assert (project / "a").read_text() == "1\n"
    assert not (project / "b").exists()
    await client.say(session, "Third")
    request_text = str(model_server.requests[-1].json["messages"])
    assert "First" in request_text
    assert "Second" not in request_text

    await ask(client, RESTORE, sessionId=session, pointId=rewind, what="both")  # the undo
    assert (project / "a").read_text() == "2\n"
    await client.say(session, "Fourth")
    text = str(client.wire.updates(session))
    once = 0 if version == 1 else 1  # version 1 has no updates for what is said between turns
    assert text.count("was rewound to before “Second”") == once
    assert text.count("was rewound to before the rewind to “Second”") == once
    assert text.count("The messages removed by that rewind are sent to the model again") == once
    request_text = str(model_server.requests[-1].json["messages"])
    assert "Second" in request_text
    assert "Third" not in request_text


@VERSION_1
async def test_files_of_others_are_left_unchanged_and_named_unless_the_client_says_force(
    version: int, agent: StartAgent, model_server: ModelServer, project: Path
) -> None:
    client, session = await ready(agent, version, model_server, project)
    (project / "mine").write_text("mine\n")
    (project / "b").write_text("2\nand mine\n")
    params: Json = {"sessionId": session, "pointId": "2", "what": "files"}
    why = "someone else changed it since"
    for dry in (True, False):
        done = await ask(client, RESTORE, **params, dryRun=dry)
        assert done["changes"] == [{"path": "a", "change": "modify"}]
        assert done["untouched"] == [
            {"path": "b", "reason": why, "byOthers": True},
            {"path": "mine", "reason": why, "byOthers": True},
        ]
    assert (project / "a").read_text() == "1\n"
    assert (project / "b").read_text() == "2\nand mine\n"
    assert (project / "mine").read_text() == "mine\n"
    done = await ask(client, RESTORE, **params, force=True)
    assert [(change["path"], change["byOthers"]) for change in done["changes"]] == [
        ("b", True),
        ("mine", True),
    ]
    assert not (project / "b").exists()
    assert not (project / "mine").exists()


@VERSIONS
async def test_a_rewind_is_shown_live_and_in_the_replay_of_the_whole_conversation(
    version: int, agent: StartAgent, model_server: ModelServer, project: Path
) -> None:
    client, session = await ready(agent, version, model_server, project)
    assert await client.say(session, "/rewind 2 both") == "end_turn"
    note = "was rewound to before “Second”"
    assert str(client.wire.updates(session)).count(note) == 1
    await client.close(session)
    update_count = len(client.wire.updates(session))
    if version == 1:
        await client.request("session/load", sessionId=session, cwd=str(project), mcpServers=[])
    else:
        await client.request(
            "session/resume", sessionId=session, cwd=str(project), replayFrom={"type": "start"}
        )
    replayed = str(client.wire.updates(session)[update_count:])
    assert replayed.count(note) == 1
    assert replayed.index("Written.") < replayed.index(note)
    await client.say(session, "Third")
    assert "Written." not in str(model_server.requests[-1].json["messages"])


@VERSION_2
async def test_an_impossible_request_is_an_error_with_a_reason(
    version: int, agent: StartAgent, model_server: ModelServer, project: Path
) -> None:
    client, session = await ready(agent, version, model_server, project)
    params: Json = {"sessionId": session, "pointId": "1", "what": "both"}
    for wrong, code in (
        ({"pointId": "msg_unknown"}, -32602),
        ({"what": "everything"}, -32602),
        ({"dryRun": "yes"}, -32602),
        ({"sessionId": "sess_unknown"}, -32002),
    ):
        error = await client.refused(RESTORE, **params | wrong)
        assert error["code"] == code, error
    stall = Stall()
    model_server.add(answer("Half", stall, "."))
    turn = client.post_prompt(session, "Third")
    await stall.reached.wait()
    error = await client.refused(RESTORE, **params)
    assert error["code"] == -32600
    assert "stop it" in error["message"]
    stall.release()
    await client.wire.answer(turn)
    assert (project / "a").read_text() == "2\n"


@VERSION_1
async def test_a_session_is_forked_from_a_message(
    version: int, agent: StartAgent, model_server: ModelServer, project: Path
) -> None:
    client, session = await ready(agent, version, model_server, project)
    points = (await ask(client, LIST, sessionId=session))["points"]
    second = points[1]["pointId"]
    for key, expected in (("before", False), ("through", True)):
        fork = await client.fork(session, project, _meta={"acp-agent": {key: second}})
        await client.say(fork, "Go on")
        assert ("Second" in str(model_server.requests[-1].json["messages"])) is expected
    for marker in ({"before": "msg_x"}, {"before": second, "through": second}, {"through": 7}):
        error = await client.refused(
            "session/fork", sessionId=session, cwd=str(project), _meta={"acp-agent": marker}
        )
        assert error["code"] == -32602
    assert (project / "a").read_text() == "2\n"
