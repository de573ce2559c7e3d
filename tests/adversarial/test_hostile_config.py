"""A configuration that cannot be used: its line and its fix, and no restart once it is mended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.agent_process import AgentProcess, StartAgent, config_file
from tests.support.hostile import KEY, MODEL, assert_goes_on, key_environ, one_line
from tests.support.model_server import ModelServer
from tests.support.wire_client import AnswerError

# A file, the line of its fault (None: the file as a whole), and words that the error has to hold.
BROKEN: dict[str, tuple[bytes, int | None, tuple[str, ...]]] = {
    "no toml": (b"mode = 'ask'\nmodel = \n", 2, ("not TOML",)),
    "an open bracket": (b"[limits\nmax_retries = 1\n", 1, ("not TOML",)),
    "a key twice": (b"mode = 'ask'\nmode = 'plan'\n", 2, ("not TOML", "a key is there twice")),
    "a wrong word": (b"\nmode = 'yolo'\n", 2, ("mode", "ask", "full")),
    "a wrong type": (b"[limits]\nmax_retries = 'many'\n", 2, ("retries",)),
    "out of range": (b"[limits]\nstall_timeout = -1\n", 2, ("stall_timeout",)),
    "not a number": (b"[limits]\nstall_timeout = nan\n", 2, ("stall_timeout",)),
    "a slip of the pen": (b"[limit]\nmax_retries = 1\n", 1, ("limit", "limits")),
    "a slip in a table": (b"[limits]\nretry = 1\n", 2, ("retry", "retries")),
    "a table as text": (b"limits = 'none'\n", 1, ("limits",)),
    "a bad address": (b"[providers.openai]\nbase_url = 'ftp://x'\n", 2, ("base_url",)),
    "a fallback of nobody's": (
        b"mode = 'ask'\nfallback_models = [\n  'demo/demo',\n  'opnai/x',\n]\n",
        4,
        ("fallback_models[1]", "'opnai/x'", "openai", "[providers.opnai]"),
    ),
    "a provider without an address": (
        b"\n[providers.mine]\napi = 'openai'\n",
        2,
        ("providers.mine", "base_url"),
    ),
    "a provider under two names": (
        b"[providers.gemini]\nheaders = {}\n\n[providers.google]\nheaders = {}\n",
        4,
        ("providers.google", "the same provider as providers.gemini", "merge the two tables"),
    ),
    "binary": (b"\x00\x01\x02\xff\xfe", 1, ("UTF-8",)),
    "latin-1": (b"mode = 'ask'\n# caf\xe9\n", 2, ("UTF-8",)),
    "nested without end": (b"a = " + b"[" * 100_000, None, ("not TOML", "nested too deeply")),
    "too large": (b"# " + b"x" * 300_000, None, ("larger than",)),
}


async def refused(running: AgentProcess, cwd: Path) -> str:
    with pytest.raises(AnswerError) as caught:
        await running.new_session(cwd)
    assert caught.value.code == -32603
    assert caught.value.data == {"kind": "configuration"}
    assert one_line(caught.value.message)
    return caught.value.message


@pytest.fixture
async def running(
    agent: StartAgent, home: Path, unharmed: list[AgentProcess], model_server: ModelServer
) -> AgentProcess:
    """An agent that was started with a configuration that is broken already."""
    config_file(home, "mode = \n")
    one = await agent(*MODEL, environ=key_environ(model_server))
    unharmed.append(one)
    assert (await one.initialize())["protocolVersion"] == 1  # which a bad file does not prevent
    return one


async def test_each_fault_is_named_with_its_line_and_fixing_it_needs_no_restart(
    running: AgentProcess, model_server: ModelServer, workspace_repo: Path, home: Path
) -> None:
    for what, (text, line, words) in BROKEN.items():
        path = config_file(home, "")
        path.write_bytes(text)
        message = await refused(running, workspace_repo)
        where = str(path) if line is None else f"{path}:{line}:"
        assert message.startswith(where), (what, message)
        for word in words:
            assert word in message, (what, message)
    config_file(home, "mode = 'plan'\n")
    created = await running.request("session/new", {"cwd": str(workspace_repo), "mcpServers": []})
    assert created["modes"]["currentModeId"] == "plan"  # it is really the mended file that counts
    await assert_goes_on(running, created["sessionId"], model_server)


async def test_sessions_are_listed_with_an_invalid_configuration(
    running: AgentProcess,
    agent: StartAgent,
    model_server: ModelServer,
    workspace_repo: Path,
    home: Path,
) -> None:
    assert await running.request("session/list", {}) == {"sessions": []}
    config_file(home, "")
    other = await agent(*MODEL, environ=key_environ(model_server))
    await other.initialize()
    session = await other.new_session(workspace_repo)
    await assert_goes_on(other, session, model_server)
    for text in ("mode = \n", "fallback_models = ['nobody/x']\n"):
        config_file(home, text)
        listed = (await running.request("session/list", {}))["sessions"]
        assert [one["sessionId"] for one in listed] == [session]
        here = {"cwd": str(workspace_repo / "nowhere")}
        assert await running.request("session/list", here) == {"sessions": []}
        with pytest.raises(AnswerError, match="cursor"):
            await running.request("session/list", {"cursor": "?"})
    await refused(running, workspace_repo)
    config_file(home, "")
    await running.new_session(workspace_repo)


async def test_an_unreadable_configuration_is_reported_by_name(
    running: AgentProcess, workspace_repo: Path, home: Path
) -> None:
    path = config_file(home, "")
    path.unlink()
    path.mkdir()
    assert f"{path} is not a file" in await refused(running, workspace_repo)
    path.rmdir()
    os.mkfifo(path)
    assert f"{path} is not a file" in await refused(running, workspace_repo)
    path.unlink()
    path.symlink_to(path)
    assert str(path) in await refused(running, workspace_repo)
    path.unlink()
    assert await running.new_session(workspace_repo)  # none at all is a good one


async def test_a_variable_of_the_environment_that_makes_no_sense_is_named(
    agent: StartAgent,
    unharmed: list[AgentProcess],
    model_server: ModelServer,
    workspace_repo: Path,
) -> None:
    environ = key_environ(model_server) | {"ACP_AGENT_MODE": "yolo"}
    one = await agent(*MODEL, environ=environ)
    unharmed.append(one)
    await one.initialize()
    assert "ACP_AGENT_MODE" in await refused(one, workspace_repo)


async def test_damaged_stored_keys_are_reported_and_never_shown(
    agent: StartAgent, unharmed: list[AgentProcess], workspace_repo: Path, home: Path
) -> None:
    folder = home / "acp-agent"
    folder.mkdir()
    (folder / "secrets.json").write_text('{"keys": {"openai": "' + KEY + '"')
    one = await agent(*MODEL)
    unharmed.append(one)
    await one.initialize()
    message = await refused(one, workspace_repo)
    assert "secrets.json" in message
    (folder / "secrets.json").unlink()
    with pytest.raises(AnswerError) as caught:
        await one.new_session(workspace_repo)
    assert caught.value.code == -32000  # mended without a restart: only the key is missing now


@pytest.mark.parametrize("model", ["nobody/nothing", "no-slash", "/x", "demo/none"])
async def test_an_unknown_model_is_refused_with_a_remedy(
    agent: StartAgent,
    unharmed: list[AgentProcess],
    model_server: ModelServer,
    workspace_repo: Path,
    model: str,
) -> None:
    one = await agent("--model", model, environ=key_environ(model_server))
    unharmed.append(one)
    await one.initialize()
    answered = await one.answer(
        one.post("session/new", {"cwd": str(workspace_repo), "mcpServers": []})
    )
    assert "error" in answered, answered
    assert one_line(answered["error"]["message"])
    assert model.partition("/")[0] in answered["error"]["message"]
