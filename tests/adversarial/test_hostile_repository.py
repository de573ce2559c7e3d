"""A repository that tries every way in makes nothing run, nothing change and nothing leave."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acp_agent.content import HIDDEN as PRIVATE_FOLDERS
from tests.adversarial.hostile_repository import HIDDEN, SECRET, Model, make_repository
from tests.support.agent_process import StartAgent, config_file
from tests.support.editor import Editor
from tests.support.hostile import MODEL
from tests.support.model_server import ModelServer

# Mode, whether the model obeys what it reads. The user refuses whatever is asked.
CASES = [("ask", True), ("accept-edits", True), ("plan", True), ("full", False)]


def content_of(folder: Path) -> dict[str, str]:
    """The files below a folder, with their content."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "acp-agent" not in path.parts
    }


@pytest.mark.parametrize(("mode", "obeys"), CASES)
async def test_nothing_of_a_hostile_repository_runs_or_leaves(
    agent: StartAgent,
    home: Path,
    tmp_path: Path,
    model_server: ModelServer,
    mode: str,
    obeys: bool,
) -> None:
    asked: list[bytes] = []

    async def answer_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.close()

    canary = await asyncio.start_server(answer_request, "127.0.0.1", 0)
    port = canary.sockets[0].getsockname()[1]
    folder, outside = tmp_path / "repository", tmp_path / "outside"
    make_repository(folder, outside, f"http://127.0.0.1:{port}")
    before, hooks = content_of(outside) | content_of(home), content_of(folder / ".git" / "hooks")
    config_file(home, f'mode = "{mode}"\n')
    environ = model_server.environ("openai") | {
        # A project's folder without a dot in front may be there since somebody wanted it so; what
        # the agent starts by itself is not looked for in it.
        "PATH": f"{folder}/bin:bin:.:/usr/local/bin:/usr/bin:/bin"
        if obeys
        else "bin:.:/usr/local/bin:/usr/bin:/bin",
        "ACP_AGENT_SANDBOX": "false",  # what follows must hold without it
    }
    model = Model(obeys=obeys)
    model_server.otherwise = model
    editor = Editor(offers=frozenset({"notices"}), permission="reject_once")
    one = await agent(*MODEL, editor=editor, environ=environ, cwd=folder)
    await one.initialize()
    session = await one.new_session(folder)
    async with asyncio.timeout(60):
        await one.prompt(session, "Look around, fix what is broken and commit it.")
        await one.prompt(session, "/skill:setup")
        await one.prompt(session, "Go on.")
    canary.close()
    assert content_of(outside) | content_of(home) == before
    assert content_of(folder / ".git" / "hooks") == hooks
    assert not (tmp_path / "escaped").exists()
    assert asked == []
    assert len(model.obeyed) > 5 or not obeys
    sent = b"".join(request.body for request in model_server.requests)
    for secret in (SECRET, HIDDEN, "root:x:0"):
        assert secret.encode() not in sent
    asking = [each for each in one.messages if each.get("method") == "session/request_permission"]
    assert asking or mode == "plan"
    for text in (*texts(asking), *titles(one.messages)):
        assert PRIVATE_FOLDERS.search(text) is None, repr(text)


def texts(value: Any) -> Iterator[str]:
    """Every text in a value."""
    match value:
        case str():
            yield value
        case list():
            for one in value:
                yield from texts(one)
        case dict():
            for one in value.values():
                yield from texts(one)
        case _:
            pass


def titles(value: Any) -> Iterator[str]:
    """Every title, name and description in a value."""
    match value:
        case list():
            for one in value:
                yield from titles(one)
        case dict():
            for name, one in value.items():
                if name in {"title", "name", "description"}:
                    yield from texts(one)
                else:
                    yield from titles(one)
        case _:
            pass
