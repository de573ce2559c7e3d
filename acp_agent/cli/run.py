"""`acp-agent run`: one turn in the terminal, or as JSON lines for a program."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TextIO

from msgspec import Struct

from acp_agent.acp_client.process import EXIT_SECONDS
from acp_agent.cli.agent_client import AgentClient, OnUpdate, PermissionRequest
from acp_agent.cli.localization import translate
from acp_agent.cli.output import FAILED, INTERRUPTED, USAGE, complain
from acp_agent.cli.parser import MODES, Parser, add_folder, add_turn_options
from acp_agent.cli.permission_answers import (
    Allowed,
    Answers,
    AutomaticAnswer,
    ShowAnswer,
    flag_for,
    request_fields,
)
from acp_agent.cli.screen import Screen, block_text, painter
from acp_agent.cli.signals import ending_signals, interrupts
from acp_agent.platform import posix
from protocol.codec import typed_json
from protocol.jsonrpc.messages import RpcError
from protocol.v1 import types as acp

_STATUSES = {"end_turn": 0, "cancelled": INTERRUPTED}
_UNFINISHED_STATUS = 3  # the model refused, or reached a limit
_REFUSED_STATUS = 4  # a permission was refused because there was nobody to ask
_FORCED_EXIT_SECONDS = 1.0  # for the agent to exit after a second Ctrl-C


class Flags(Struct, frozen=True, kw_only=True):
    """The options of `run`."""

    prompt: str
    cwd: Path
    json: bool = False
    prompt_lines: bool = False  # the prompts are JSON lines on standard input
    model: str | None = None
    mode: str | None = None
    agent: str | None = None
    allow: Allowed = "ask"
    decider: str = ""  # what decides for the user, if not the flag
    resume: str | None = None
    keep: bool = True  # keep the session after the turn
    trust: bool = False  # trust the folder's files


class Result(Struct, frozen=True, kw_only=True):
    """The result of a turn: its last message, usage, and calls refused without asking.

    `cost` is the cost of the session so far.
    """

    session: str
    stop_reason: str
    text: str
    usage: acp.Usage | None
    cost: acp.Cost | None
    refused: tuple[PermissionRequest, ...]


class View(Struct, frozen=True, kw_only=True):
    """Shows the turn, as text or as JSON lines."""

    update: OnUpdate
    show_answer: ShowAnswer
    show_session: Callable[[str], None]  # called with the session's ID
    show_end: Callable[[Result], None]
    show_failure: Callable[[str], None]
    show_cancelling: Callable[[], None] = lambda: None
    ask: Callable[[PermissionRequest], None] | None = None


def run(argv: list[str]) -> int:
    """Run one turn; return an exit status that says how it ended."""
    flags = _flags(argv)
    if flags is None:
        complain(translate("give either a prompt or --input-json; see acp-agent run --help"))
        return USAGE
    posix.forbid_inspection()  # the agent's commands must not read our environment
    if flags.json:
        view = _json_view(sys.stdout)
    else:
        view = text_view(sys.stderr, cwd=flags.cwd, answer=sys.stdout)

    if flags.trust:
        from acp_agent.cli.trust import trust_folder  # noqa: PLC0415 - where it is wanted

        trust_folder(flags.cwd)
    return asyncio.run(turn(flags, view))


async def turn(flags: Flags, view: View) -> int:
    """Start an agent, run one turn, and end the agent; return the exit status."""
    resume = None if flags.resume is None else await _full_id(flags.resume)
    answers = Answers(flags.allow, decider=flags.decider, show=view.show_answer, ask=view.ask)
    tally = Tally(view.update)
    model = [] if flags.model is None else ["--model", flags.model]
    task = asyncio.current_task()
    assert task is not None
    client: AgentClient | None = None
    show_cancelling = False
    interrupted = INTERRUPTED
    timeout = EXIT_SECONDS

    def stop() -> None:
        nonlocal show_cancelling
        if client is None or not client.id or show_cancelling:
            task.cancel()
            return
        show_cancelling = True
        client.cancel()
        with contextlib.suppress(OSError):  # without a reader, cancelling continues
            view.show_cancelling()

    def leave(status: int) -> None:
        nonlocal interrupted
        interrupted = status
        task.cancel()

    try:
        with interrupts(stop), ending_signals(leave):
            client = await AgentClient.start(
                model, cwd=flags.cwd, on_update=tally.update, on_permission=answers
            )
            await client.open(flags.cwd, resume=resume)
            view.show_session(client.id)
            for option, value in (("mode", flags.mode), ("agent", flags.agent)):
                if value is not None:
                    await client.set_option(option, value)

            def begin() -> None:
                nonlocal show_cancelling
                show_cancelling, tally.text = False, ""

            status = await _run_prompts(client, flags, view, answers, tally, begin=begin)
            if not flags.keep:
                await client.delete()
            return status
    except asyncio.CancelledError:
        timeout = _FORCED_EXIT_SECONDS
        return interrupted
    except RpcError as error:
        view.show_failure(error.message)
        return FAILED
    except BrokenPipeError:  # the reader of our output is gone, not the agent
        raise
    except (ConnectionError, TimeoutError):
        view.show_failure(
            translate("the agent exited unexpectedly; run `acp-agent doctor` to find out why")
        )
        return FAILED
    finally:
        if client is not None:
            await client.aclose(timeout=timeout)


async def _run_prompts(
    client: AgentClient,
    flags: Flags,
    view: View,
    answers: Answers,
    tally: Tally,
    *,
    begin: Callable[[], None],
) -> int:
    """Run a turn for each prompt; return the status of the last that did not end normally."""
    status = 0
    async for prompt in _prompts(flags):
        if isinstance(prompt, ValueError):
            view.show_failure(str(prompt))
            status = FAILED
            continue
        begin()
        answer = await client.prompt(prompt)
        refused = tuple(answers.unanswered)
        answers.unanswered.clear()
        view.show_end(
            Result(
                session=client.id,
                stop_reason=answer.stop_reason,
                text=tally.text,
                usage=answer.usage,
                cost=tally.cost,
                refused=refused,
            )
        )
        ending = _STATUSES.get(answer.stop_reason, _UNFINISHED_STATUS)
        status = _REFUSED_STATUS if refused and ending == 0 else ending or status
        if ending == INTERRUPTED:
            break
    return status


async def _prompts(flags: Flags) -> AsyncIterator[str | ValueError]:
    if not flags.prompt_lines:
        yield flags.prompt
        return
    from acp_agent.cli.prompt_lines import read_prompts  # noqa: PLC0415 - for programs

    async for prompt in read_prompts(sys.stdin):
        yield prompt


class Tally:
    """Forwards updates and collects the result.

    Attributes:
        text: the model's last message.
        cost: the cost of the session so far.
    """

    def __init__(self, update: OnUpdate) -> None:
        self.text = ""
        self.cost: acp.Cost | None = None
        self._update = update
        self._complete = False  # whether a tool call followed the message

    def update(self, update: acp.SessionUpdate) -> None:
        """Handle an update."""
        match update:
            case acp.AgentMessageChunk():
                self.text = ("" if self._complete else self.text) + block_text(update.content)
                self._complete = False
            case acp.ToolCall():
                self._complete = True
            case acp.UsageUpdate():
                self.cost = update.cost
        self._update(update)


async def _full_id(name: str) -> str:
    from acp_agent.cli.session_lookup import full_id  # noqa: PLC0415 - where a session is named

    return await full_id(name)


def text_view(
    out: TextIO, *, cwd: Path, answer: TextIO | None = None, resumable: bool = True
) -> View:
    """Return a view that shows a turn as text.

    Args:
        answer: a separate stream for the model's answer.
        resumable: whether to show how to continue the session.
    """
    screen = Screen(painter(out), cwd=cwd, answer=None if answer is None else painter(answer))

    def show_failure(message: str) -> None:
        screen.close_line()
        complain(message)

    def show_end(result: Result) -> None:
        screen.show_end(result.stop_reason, result.session if resumable else None)
        if result.refused:
            complain(refusals(result.refused))

    return View(
        update=screen.update,
        show_answer=lambda request, answer: screen.show_answer(request, answer.text),
        show_session=lambda _: None,
        show_end=show_end,
        show_failure=show_failure,
        show_cancelling=lambda: screen.say(
            translate("Cancelling the turn; press Ctrl-C again to quit immediately."), "warning"
        ),
        ask=screen.ask if out.isatty() and sys.stdin.isatty() else None,
    )


def refusals(refused: Sequence[PermissionRequest]) -> str:
    """Return a message with the refused calls and the flag that allows them."""
    flag = max(
        (flag_for(request) for request in refused),
        key=lambda candidate: candidate != "--allow edits",
    )
    titles = translate(", ").join(dict.fromkeys(request.title for request in refused))
    return translate(
        "refused, because there is no terminal to ask in: {titles}. To allow it, add {flag}.",
        titles=titles,
        flag=flag,
    )


def _json_view(out: TextIO) -> View:
    """Return a view that writes a turn as one JSON object per line.

    Their `type` is `session`, `update` or `permission`; the last one is `result` or `error`.
    """

    def line(value: dict[str, object]) -> None:
        out.write(typed_json.encode(value).decode() + "\n")
        out.flush()

    def show_answer(request: PermissionRequest, answer: AutomaticAnswer) -> None:
        decided: dict[str, object] = {"allowed": answer.allowed, "by": answer.by}
        if answer.name:
            decided["name"] = answer.name
        line({"type": "permission", **request_fields(request), "answer": answer.text, **decided})

    def show_end(result: Result) -> None:
        value: dict[str, object] = {
            "type": "result",
            "sessionId": result.session,
            "stopReason": result.stop_reason,
            "text": result.text,
            "usage": result.usage,
            "cost": result.cost,
            "refused": [
                request_fields(request) | {"flag": flag_for(request)} for request in result.refused
            ],
        }
        line({name: content for name, content in value.items() if content is not None})
        if result.refused:
            complain(refusals(result.refused))

    return View(
        update=lambda update: line({"type": "update", "update": update}),
        show_answer=show_answer,
        show_session=lambda session: line({"type": "session", "sessionId": session}),
        show_end=show_end,
        show_failure=lambda message: line({"type": "error", "message": message}),
    )


def _flags(argv: list[str]) -> Flags | None:
    parser = Parser(
        prog="acp-agent run",
        description="Run one prompt in the terminal.",
        epilog="Exit status: 0 done, 1 error, 2 invalid arguments, 3 the model refused or a "
        "limit was reached, 4 a permission was refused because there was no terminal to "
        "ask in, 130 cancelled.",
    )
    parser.add_argument("prompt", nargs="?", help="the prompt; - reads it from standard input")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
    parser.add_argument(
        "--input-json",
        action="store_true",
        help="read prompts as JSON lines from standard input, until it ends; implies --json",
    )
    add_turn_options(parser)
    parser.add_argument("--mode", choices=MODES, help="permission mode to start in")
    add_folder(parser)
    parser.add_argument(
        "--resume", metavar="ID", help="continue a session, by its ID or the first characters"
    )
    arguments = parser.parse_args(argv)
    prompt = sys.stdin.read() if arguments.prompt == "-" else arguments.prompt or ""
    if bool(prompt.strip()) == arguments.input_json:
        return None
    return Flags(
        prompt=prompt,
        cwd=arguments.cwd,
        json=arguments.json or arguments.input_json,
        prompt_lines=arguments.input_json,
        model=arguments.model,
        mode=arguments.mode,
        agent=arguments.agent,
        allow=arguments.allow,
        resume=arguments.resume,
        trust=arguments.trust,
    )
