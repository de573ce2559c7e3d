"""`acp-agent tour`: demonstrate the agent in a small sample project."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Literal

from acp_agent.cli.agent_client import AgentClient, PermissionRequest
from acp_agent.cli.localization import translate
from acp_agent.cli.output import FAILED, INTERRUPTED, complain
from acp_agent.cli.parser import Parser
from acp_agent.cli.permission_answers import response
from acp_agent.cli.run import Flags, text_view, turn
from acp_agent.cli.screen import Screen, painter, program_command
from acp_agent.platform import posix
from acp_agent.platform.posix import find_program
from acp_agent.workspace.environment import added_variables
from protocol.jsonrpc.messages import AUTH_REQUIRED, RpcError
from protocol.v1 import types as acp

_DEMO = "demo/demo"
PROMPT = (
    "Show me what you can do in this small project: make a plan with your todo tool, read the "
    "files, make the failing test pass with an edit, run `python3 -u -m unittest -v`, keep the "
    "plan up to date, and summarise in two sentences."
)


def run(argv: list[str]) -> int:
    """Run the tour, or the user's own prompt in the current folder."""
    parser = Parser(
        prog="acp-agent tour", description="Watch the agent work in a small sample project."
    )
    parser.add_argument(
        "--prompt", metavar="TEXT", help="run this prompt in the current folder instead"
    )
    prompt: str | None = parser.parse_args(argv).prompt
    posix.forbid_inspection()  # the agent's commands must not read our environment
    return asyncio.run(_tour(prompt))


async def _tour(prompt: str | None) -> int:
    try:
        demo = not await _has_model()
    except (RpcError, ConnectionError, TimeoutError) as error:
        complain(
            translate(
                "the agent did not start: {error}; run `acp-agent doctor` to find out why",
                error=error,
            )
        )
        return FAILED
    screen = Screen(painter(sys.stdout), cwd=Path.cwd())
    screen.say(
        translate("acp-agent runs as a child process here; this program acts as its editor.")
    )
    if demo:
        screen.say(translate("No model is configured, so the built-in offline demo model answers."))
    if prompt is not None and prompt.strip():
        status = await _one_turn(prompt, Path.cwd(), demo=demo, sample=False)
    else:
        with _project() as folder:
            screen.say(
                translate(
                    "The sample project is {folder}; it is deleted after the tour.", folder=folder
                )
            )
            # A model answers in the language of the prompt; the demo's script has only one.
            tour_prompt = PROMPT if demo else translate(PROMPT)
            status = await _one_turn(tour_prompt, folder, demo=demo, sample=True)
    _show_next_steps(screen, demo=demo, status=status)
    return status


async def _has_model() -> bool:
    """Return whether a session can be opened with the current configuration."""
    with tempfile.TemporaryDirectory(prefix="acp-agent-") as folder:
        client = await AgentClient.start(
            [], cwd=Path(folder), on_update=lambda _: None, on_permission=_refuse
        )
        try:
            await client.open(Path(folder))
            await client.delete()
        except RpcError as error:
            if error.code == AUTH_REQUIRED:
                return False
            raise
        finally:
            await client.aclose()
    return True


async def _refuse(_: PermissionRequest) -> acp.RequestPermissionResponse:
    return response(None)


async def _one_turn(prompt: str, folder: Path, *, demo: bool, sample: bool) -> int:
    view = text_view(sys.stdout, cwd=folder, resumable=not sample)
    allow: Literal["all", "edits", "ask"] = "ask"
    if sample and demo:
        allow = "all"  # script and project are known, so the tour answers itself
    elif sample and view.ask is None:
        allow = "edits"  # nobody can be asked, and a model's commands are unknown
    flags = Flags(
        prompt=prompt,
        cwd=folder,
        model=_DEMO if demo else None,
        mode="ask",
        allow=allow,
        decider="acp-agent tour" if allow != "ask" else "",
        keep=not sample,
    )
    screen = Screen(painter(sys.stdout), cwd=folder)
    if allow == "all":
        screen.say(translate("The tour allows its own edits and commands without asking."))
    elif allow == "edits":
        screen.say(translate("The tour allows edits in its project and refuses commands."))
    screen.say(f"> {prompt}", "bold")
    sys.stdout.write("\n")
    return await turn(flags, view)


@contextmanager
def _project() -> Iterator[Path]:
    """Create a git repository with a small bug; delete it when the context ends."""
    source = files("acp_agent.cli").joinpath("tour_project.json").read_text("utf-8")
    with tempfile.TemporaryDirectory(
        prefix="acp-agent-tour-", ignore_cleanup_errors=True
    ) as directory:
        folder = Path(directory).resolve()
        for name, text in json.loads(source).items():
            (folder / name).write_text(text, "utf-8")
        for arguments in (
            ("init", "--quiet"),
            ("add", "."),
            (
                "-c", "user.name=acp-agent", "-c", "user.email=tour@localhost",
                "-c", "commit.gpgsign=false", "commit", "--quiet", "--message=Start",
            ),
        ):  # fmt: skip
            subprocess.run(
                [find_program("git") or "git", *arguments],
                cwd=folder,
                env=os.environ | added_variables(os.environ, only_reads=True),
                check=True,
                stdin=subprocess.DEVNULL,
            )
        yield folder


def _show_next_steps(screen: Screen, *, demo: bool, status: int) -> None:
    command = program_command()
    if status == INTERRUPTED:
        return
    if status != 0:
        screen.say(translate("The turn failed. Next: {command} doctor", command=command), "warning")
        return
    if demo:
        login_step = translate(
            "Next: connect a real model with `{command} login`.", command=command
        )
        screen.say(login_step, "bold")
    next_step = translate(
        'Next: {command} run "your task", in one of your projects.', command=command
    )
    screen.say(next_step, "bold")
    screen.say(translate("Next: README.md has the settings for your editor."), "bold")
