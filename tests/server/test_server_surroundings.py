"""What the system or the environment refuses is named, and what to do about it."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.server.server_session import OPENAI, OpenSession, messages
from tests.support.agent_process import AgentProcess
from tests.support.model_server import Call, ModelServer, answer
from tests.support.module_trace import until_idle
from tests.support.ordinary_user import POWERLESS
from tests.support.wire_client import AnswerError

LIMIT = "raise the limit of open files (ulimit -n)"


@contextmanager
def no_more_files(running: AgentProcess) -> Iterator[None]:
    """Let the agent open no files beyond those it has."""
    pid = running.process.pid
    descriptors = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
    free = next(number for number in range(len(descriptors) + 1) if number not in descriptors)
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


@pytest.mark.covers("P8")
@pytest.mark.parametrize("warm", [False, True])
async def test_the_limit_of_open_files_is_named_wherever_it_is_reached(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path, warm: bool
) -> None:
    running, session = await opened()
    if warm:
        model_server.add(answer("Hello."), answer("By the same connection."))
        await running.prompt(session, "hi")
    await until_idle(running.process.pid)  # what is prepared in the background opens files, too
    listed = {"cwd": str(workspace_repo), "mcpServers": []}
    messages_by_case: dict[str, str] = {}
    with no_more_files(running):
        for method, params in (
            ("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]}),
            ("session/new", listed),
            ("session/load", {**listed, "sessionId": session}),
            ("session/list", {}),
        ):
            try:
                await running.request(method, params)
            except AnswerError as error:
                messages_by_case[method] = error.message
    assert messages_by_case
    assert {
        method: message for method, message in messages_by_case.items() if LIMIT not in message
    } == {}
    model_server.add(answer("Better now."))
    assert (await running.prompt(session, "again"))["stopReason"] == "end_turn"


@pytest.mark.covers("P8")
async def test_a_call_that_finds_no_file_to_open_says_so(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened()
    calls = [
        Call("read", {"path": "greeting.py"}),
        Call("grep", {"pattern": "Hello"}),
        Call("shell", {"command": "echo hi"}),
        Call("list", {}),
    ]
    model_server.add(answer(*calls), answer("Done."), answer(*calls), answer("Done."))
    await running.prompt(session, "warm up")
    await until_idle(running.process.pid)  # another request may have the connection
    with no_more_files(running):
        await running.prompt(session, "go")
    results = [
        str(message["content"]) for message in messages(model_server) if message["role"] == "tool"
    ]
    for call, result in zip(calls, results[-4:], strict=True):
        assert LIMIT in result, (call, result)


@pytest.mark.covers("P8")
@pytest.mark.parametrize(
    ("variable", "content", "api"),
    [
        ("SSL_CERT_FILE", None, "openai"),
        ("SSL_CERT_FILE", "no certificate\n", "anthropic"),
        ("SSL_CERT_DIR", None, "openai"),
    ],
)
async def test_certificates_that_cannot_be_used_are_named_and_http_needs_none(
    opened: OpenSession,
    model_server: ModelServer,
    tmp_path: Path,
    variable: str,
    content: str | None,
    api: str,
) -> None:
    path = tmp_path / "certificates.pem"
    if content is not None:
        path.write_text(content)
    environ = {variable: str(path)}
    running, session = await opened(api=api, environ=environ)  # type: ignore[arg-type]
    model_server.add(answer("Hello."))
    assert (await running.prompt(session, "hi"))["stopReason"] == "end_turn"
    base = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}[api]
    running, session = await opened(
        api=api,  # type: ignore[arg-type]
        environ={**environ, base: "https://example.invalid/v1"},
    )
    with pytest.raises(AnswerError) as caught:
        await running.prompt(session, "hi")
    assert f"{variable} names {path}" in caught.value.message
    assert "fault" not in caught.value.message


@pytest.mark.covers("P8")
async def test_a_turn_runs_although_folders_of_settings_may_not_be_searched(
    model_server: ModelServer, workspace_repo: Path, home: Path
) -> None:
    names = (".agents", ".claude", ".cursor", ".github", "sub")
    closed = [*(workspace_repo / name for name in names), home / ".config", home / ".claude"]
    for folder in closed:
        folder.mkdir(exist_ok=True)
        folder.chmod(0)
    model_server.otherwise = answer("Hello.")
    command = (*POWERLESS, sys.executable, "-m", "acp_agent")
    environ = model_server.environ("openai")
    link = {"type": "resource_link", "name": "x", "uri": f"file://{workspace_repo}/sub/folder/x"}
    try:
        async with await AgentProcess.start(
            *OPENAI, home=home, environ=environ, command=command
        ) as running:
            await running.initialize()
            session = await running.new_session(workspace_repo)
            assert (await running.prompt(session, "hi", link))["stopReason"] == "end_turn"
    finally:
        for folder in closed:
            folder.chmod(0o700)
