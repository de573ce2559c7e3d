"""`acp-agent run`: one turn in the terminal, or as JSON lines for a program."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TextIO

from msgspec import Struct

from acp_agent.cli.answers import Answered, Answers
from acp_agent.cli.child import EXIT_SECONDS
from acp_agent.cli.editor import AgentClient, Asked, OnUpdate
from acp_agent.cli.interrupts import ending_signals, interrupts
from acp_agent.cli.output import FAILED, INTERRUPTED, USAGE, complain, guarded
from acp_agent.cli.parser import Parser
from acp_agent.cli.screen import Screen, painter
from acp_agent.cli.words import words
from acp_agent.platform import posix
from protocol.codec import typed_json
from protocol.jsonrpc.errors import RpcError

_STATUS = {"end_turn": 0, "cancelled": INTERRUPTED}
_UNFINISHED = 3  # refused, or a limit was reached
_HURRY_SECONDS = 1.0  # what the agent gets to end after a second Ctrl-C


class Flags(Struct, frozen=True, kw_only=True):
    """What `run` was asked to do."""

    prompt: str
    cwd: Path
    json: bool = False
    model: str | None = None
    mode: str | None = None
    allow: Literal["all", "edits", "none", "ask"] = "ask"
    resume: str | None = None
    keep: bool = True  # the session, once its turn is over


class View(Struct, frozen=True, kw_only=True):
    """Where the turn is shown: as text or as JSON lines."""

    update: OnUpdate
    answered: Answered
    opened: Callable[[str], None]  # the session's id
    ended: Callable[[str, str], None]  # session and stop reason
    failed: Callable[[str], None]
    cancelling: Callable[[], None] = lambda: None
    ask: Callable[[Asked], None] | None = None


def run(argv: list[str]) -> int:
    """Run one turn; the exit status says how it ended."""
    flags = _flags(argv)
    if flags is None:
        complain(words("the prompt is empty; see acp-agent run --help"))
        return USAGE
    if not flags.cwd.is_dir():
        complain(words("{folder} is no folder; --cwd takes one", folder=flags.cwd))
        return USAGE
    posix.forbid_inspection()  # by the commands of the agent, which has our environment
    view = _json_view(sys.stdout) if flags.json else text_view(sys.stdout, cwd=flags.cwd)
    return guarded(lambda: asyncio.run(turn(flags, view)))


async def turn(flags: Flags, view: View) -> int:
    """Start an agent, run one turn in it, end it; the exit status."""
    resume = None if flags.resume is None else await _whole_id(flags.resume)
    answers = Answers(flags.allow, show=view.answered, ask=view.ask)
    model = [] if flags.model is None else ["--model", flags.model]
    me = asyncio.current_task()
    assert me is not None
    client: AgentClient | None = None
    asked_to_stop = False
    interrupted = INTERRUPTED
    patience = EXIT_SECONDS

    def stop() -> None:
        nonlocal asked_to_stop
        if client is None or not client.session_id or asked_to_stop:
            me.cancel()
            return
        asked_to_stop = True
        client.cancel()
        with contextlib.suppress(OSError):  # nobody reads, which must not stop the stopping
            view.cancelling()

    def leave(status: int) -> None:
        nonlocal interrupted
        interrupted = status
        me.cancel()

    try:
        with interrupts(stop), ending_signals(leave):
            client = await AgentClient.start(
                model, cwd=flags.cwd, on_update=view.update, on_permission=answers
            )
            await client.open(flags.cwd, resume=resume)
            view.opened(client.session_id)
            if flags.mode is not None:
                await client.set_option("mode", flags.mode)
            reason = await client.prompt(flags.prompt)
            view.ended(client.session_id, reason)
            if not flags.keep:
                await client.delete()
            return _STATUS.get(reason, _UNFINISHED)
    except asyncio.CancelledError:
        patience = _HURRY_SECONDS
        return interrupted
    except RpcError as error:
        view.failed(error.message)
        return FAILED
    except BrokenPipeError:  # not the agent, but the reader of our own output is gone
        raise
    except (ConnectionError, TimeoutError):
        view.failed(words("the agent ended unexpectedly; acp-agent doctor may say why"))
        return FAILED
    finally:
        if client is not None:
            await client.aclose(patience=patience)


async def _whole_id(name: str) -> str:
    from acp_agent.cli.session_names import whole_id  # noqa: PLC0415 - where a session is named

    return await whole_id(name)


def text_view(out: TextIO, *, cwd: Path, resumable: bool = True) -> View:
    """A turn as text for people; `resumable` tells how to go on with its session."""
    screen = Screen(painter(out), cwd=cwd)

    def failed(message: str) -> None:
        screen.close_line()
        complain(message)

    return View(
        update=screen.update,
        answered=screen.answered,
        opened=lambda _: None,
        ended=lambda session, reason: screen.ended(reason, session if resumable else None),
        failed=failed,
        cancelling=lambda: screen.say(
            words("Cancelling the turn; Ctrl-C once more quits at once."), "warning"
        ),
        ask=screen.ask if out.isatty() and sys.stdin is not None and sys.stdin.isatty() else None,
    )


def _json_view(out: TextIO) -> View:
    """A turn as one JSON object a line.

    Their `type` is `session`, `update` or `permission`, and of the last one `result` or `error`.
    """

    def line(value: dict[str, object]) -> None:
        out.write(typed_json.encode(value).decode() + "\n")
        out.flush()

    def answered(asked: Asked, answer: str) -> None:
        call = asked.request.tool_call.tool_call_id
        line({"type": "permission", "toolCallId": call, "title": asked.title, "answer": answer})

    return View(
        update=lambda update: line({"type": "update", "update": update}),
        answered=answered,
        opened=lambda session: line({"type": "session", "sessionId": session}),
        ended=lambda session, reason: line(
            {"type": "result", "sessionId": session, "stopReason": reason}
        ),
        failed=lambda message: line({"type": "error", "message": message}),
    )


def _flags(argv: list[str]) -> Flags | None:
    parser = Parser(
        prog="acp-agent run",
        description="Run one turn in the terminal.",
        epilog="Exit status: 0 done, 1 an error, 2 wrong use, 3 the model refused or a limit was "
        "reached, 130 cancelled.",
    )
    parser.add_argument("prompt", help="what to do; - reads it from standard input")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--model", metavar="PROVIDER/NAME", help="the model to use")
    parser.add_argument(
        "--mode",
        choices=["ask", "accept-edits", "plan", "full"],
        help="the mode to begin in, such as plan",
    )
    parser.add_argument(
        "--allow",
        choices=["all", "edits", "none"],
        default="ask",
        help="what to allow without asking; by default you are asked in a terminal, "
        "and elsewhere all that needs permission is refused",
    )
    parser.add_argument("--cwd", type=Path, default=Path(), metavar="DIR", help="where to work")
    parser.add_argument(
        "--resume", metavar="ID", help="go on with an earlier session: its id or its beginning"
    )
    given = parser.parse_args(argv)
    prompt = sys.stdin.read() if given.prompt == "-" else given.prompt
    if not prompt.strip():
        return None
    return Flags(
        prompt=prompt,
        cwd=given.cwd.absolute(),
        json=given.json,
        model=given.model,
        mode=given.mode,
        allow=given.allow,
        resume=given.resume,
    )
