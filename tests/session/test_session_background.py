"""Background commands of one session: how many may run, and the order of calls about one."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.errors import StoreError
from acp_agent.events import BackgroundCommandChanged
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import open_desk


def start(command: str) -> Call:
    return Call("shell", {"command": command, "background": True})


def look(action: str, **more: object) -> Call:
    return Call("background", {"action": action, **more})


@pytest.mark.parametrize(
    ("most", "told"),
    [(1, "1 background commands run already"), (0, "background commands are disabled")],
)
async def test_the_settings_limit_the_running_agents(
    tmp_path: Path, model_server: ModelServer, most: int, told: str
) -> None:
    config = f'mode = "full"\n[limits]\nmax_background_commands = {most}\n'
    async with open_desk(tmp_path, model_server, config=config) as desk:
        model_server.add(answer(start("sleep 600")), answer(start("sleep 601")), answer("Done."))
        await desk.say("Start two")
        assert told in desk.results()[-1]
        background = desk.session.resources.background
        running = () if background is None else background.running
        assert len(running) == most


async def test_the_model_gets_no_report_of_a_command_that_it_stopped_itself(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, config='mode = "full"\n') as desk:
        model_server.add(answer(start("sleep 600")), answer(look("stop", id=1)), answer("Done."))
        await desk.say("Start it and stop it")
        assert "stopped by a call" in desk.results()[-1]


async def test_calls_about_one_command_run_in_their_order(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, config='mode = "full"\n') as desk:
        model_server.add(
            answer(start("while [ ! -e go ]; do sleep 0.02; done; echo ready; sleep 600")),
            answer(
                look("wait", id="1", until="ready", seconds=15),
                look("stop", id="1"),
                look("list"),
            ),
            answer("Done."),
        )
        (desk.folder / "go").touch()
        await desk.say("Start it, see that it is ready, and stop it")
        waited, stopped, listed = desk.results()[-3:]
        assert "a line matched" in waited
        assert "ready" in waited
        assert "ended after" in stopped
        assert "ended after" in listed


async def test_a_command_whose_start_cannot_be_saved_does_not_count_as_running(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, config='mode = "full"\n') as desk:
        desk.store.full = lambda events: any(
            isinstance(event, BackgroundCommandChanged) for event in events
        )
        model_server.add(answer(start("sleep 600")))
        with pytest.raises(StoreError):
            await desk.say("Start one")
        assert not desk.session.resources.has_background
