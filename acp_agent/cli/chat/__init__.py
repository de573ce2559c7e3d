"""`acp-agent chat`: talk to the agent in the terminal, or to any other that speaks the protocol."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from acp_agent.cli.localization import translate
from acp_agent.cli.output import USAGE, complain, guarded
from acp_agent.cli.parser import Parser, seconds
from acp_agent.platform.programs import own_process

if TYPE_CHECKING:
    from acp_agent.cli.chat.history import PromptHistory
    from acp_agent.cli.chat.wishes import Wishes

LATEST = "latest"


def run(argv: list[str]) -> int:
    """Chat until the user leaves; returns the exit status."""
    options = _parser().parse_args(argv)
    cwd: Path = options.cwd.absolute()
    if not cwd.is_dir():
        complain(translate("{folder} is not a directory", folder=cwd))
        return USAGE
    command = _command(options.agent, options.model)
    if not command or not command[0]:
        complain(translate("--agent takes the command that starts an agent"))
        return USAGE
    return guarded(lambda: _chat(options, command, cwd))


def _chat(options: argparse.Namespace, command: list[str], cwd: Path) -> int:
    import logging  # noqa: PLC0415 - only here

    from acp_agent.cli.chat.wishes import Wishes  # noqa: PLC0415 - not for --help
    from acp_agent.platform import posix  # noqa: PLC0415 - likewise

    posix.forbid_inspection()  # by the commands of the agent, which has our environment
    # What goes wrong on the wire is said in the chat where it matters; a log would cover it.
    logging.getLogger().addHandler(logging.NullHandler())
    wanted = {} if options.mode is None else {"mode": options.mode}
    if options.agent is not None and options.model is not None:
        wanted["model"] = options.model
    wishes = Wishes(
        command=command,
        cwd=cwd,
        resume=options.resume,
        options=wanted,
        patience=options.timeout,
        prompt=" ".join(options.prompt).strip(),
        again=_again(options),
    )
    history = _history(keep=not options.no_history)
    return asyncio.run(_run(wishes, history, plain=options.plain or not _is_able()))


async def _run(wishes: Wishes, history: PromptHistory, *, plain: bool) -> int:
    if plain:
        from acp_agent.cli.chat.lines import LineChat  # noqa: PLC0415 - one of the two

        return await LineChat(wishes, history, sys.stdout).run()
    from acp_agent.cli.chat.typing_ahead import typing_ahead  # noqa: PLC0415 - for this one

    with typing_ahead():
        from acp_agent.cli.chat.terminal import TerminalChat  # noqa: PLC0415 - one of the two

        return await TerminalChat(wishes, history, sys.stdout).run()


def _is_able() -> bool:
    """Whether there is a terminal whose cursor can be moved."""
    there = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    return there and os.environ.get("TERM", "").lower() not in {"", "dumb", "unknown"}


def _command(agent: str | None, model: str | None) -> list[str]:
    """What starts the agent: our own, or the one that is named."""
    if agent is None:
        flags = [] if model is None else ["--model", model]
        return own_process("acp", *flags)
    import shlex  # noqa: PLC0415 - then only

    try:
        return shlex.split(agent)
    except ValueError:
        return []


def _again(options: argparse.Namespace) -> str:
    """What to type to chat with the same agent in the same folder."""
    from shlex import join  # noqa: PLC0415 - not for --help

    from acp_agent.cli.screen import own_command  # noqa: PLC0415 - likewise

    agent = [] if options.agent is None else ["--agent", options.agent]
    cwd = [] if options.cwd == Path() else ["--cwd", str(options.cwd.absolute())]
    return f"{own_command()} {join(['chat', *agent, *cwd])}"


def _history(*, keep: bool) -> PromptHistory:
    """The history of this user; none where its secrets are not known."""
    from acp_agent.cli.chat.history import PromptHistory  # noqa: PLC0415 - not for --help
    from acp_agent.config.paths import find_paths  # noqa: PLC0415 - likewise
    from acp_agent.config.secrets import Secrets  # noqa: PLC0415 - likewise
    from acp_agent.errors import ConfigError  # noqa: PLC0415 - likewise
    from acp_agent.workspace.scrub import scrub  # noqa: PLC0415 - likewise

    paths = find_paths(os.environ)
    secrets = Secrets(paths.secrets_file, os.environ)
    try:
        secrets.stored()  # reads the file, and so knows its keys
    except ConfigError:
        keep = False
    path = paths.data_dir / "chat_history" if keep else None
    return PromptHistory(path, lambda text: scrub(text, secrets.values()))


def _parser() -> Parser:
    parser = Parser(
        prog="acp-agent chat",
        description="Talk to the agent in the terminal.",
        epilog="Inside, /help lists the commands and keys. Exit status: 0 done, 1 an error, "
        "2 wrong use, 130 left while a turn ran.",
    )
    parser.add_argument("prompt", nargs="*", help="what to say first")
    parser.add_argument(
        "--agent", metavar="COMMAND", help="another agent that speaks the protocol, as one word"
    )
    parser.add_argument("--model", metavar="PROVIDER/NAME", help="the model to use")
    parser.add_argument("--mode", help="permission mode to start in")
    parser.add_argument(
        "--resume",
        metavar="SESSION",
        nargs="?",
        const=LATEST,
        help="go on with an earlier session, by its id or its beginning; without one the last "
        "of the folder",
    )
    parser.add_argument(
        "--cwd",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="the session's folder (default: this one)",
    )
    parser.add_argument(
        "--plain", action="store_true", help="line by line, as where there is no terminal"
    )
    parser.add_argument("--no-history", action="store_true", help="keep nothing of what is typed")
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=60.0,
        metavar="SECONDS",
        help="how long the agent may take to start (60)",
    )
    return parser
