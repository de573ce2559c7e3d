"""`acp-agent chat`: chat with this or any other ACP agent in the terminal.

Modules are imported late: `--help` needs none of them, and keys typed during the imports are
saved for the prompt.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from acp_agent.cli.localization import translate
from acp_agent.cli.output import USAGE, complain
from acp_agent.cli.parser import Parser, add_folder, seconds
from acp_agent.platform.posix import self_command

if TYPE_CHECKING:
    from acp_agent.cli.chat.history import PromptHistory


def run(argv: list[str]) -> int:
    """Chat until the user leaves; return the exit status."""
    arguments = _parser().parse_args(argv)
    command = _agent_command(arguments.command, arguments.model)
    if not command or not command[0]:
        complain(translate("--command needs the command line of an agent"))
        return USAGE
    return _chat(arguments, command)


def _chat(arguments: argparse.Namespace, command: list[str]) -> int:
    import logging  # noqa: PLC0415 - see above

    from acp_agent.cli.chat.standard_streams import keep_typeahead  # noqa: PLC0415 - see above
    from acp_agent.platform import posix  # noqa: PLC0415 - see above

    posix.forbid_inspection()  # the agent's commands must not read our environment
    # The chat shows what goes wrong on the wire; a log would be written over it.
    logging.getLogger().addHandler(logging.NullHandler())
    plain = arguments.plain or not _can_move_cursor()
    with nullcontext() if plain else keep_typeahead():
        return asyncio.run(_run(arguments, command, plain=plain))


async def _run(arguments: argparse.Namespace, command: list[str], *, plain: bool) -> int:
    from acp_agent.cli.chat.conversation import ChatOptions  # noqa: PLC0415 - see above

    option_values = {"mode": arguments.mode, "agent": arguments.agent}
    if arguments.command is not None:
        option_values["model"] = arguments.model
    settings = {option: value for option, value in option_values.items() if value is not None}
    options = ChatOptions(
        command=command,
        cwd=arguments.cwd,
        resume=arguments.resume,
        settings=settings,
        timeout=arguments.timeout,
        prompt=" ".join(arguments.prompt).strip(),
        chat_command=_chat_command(arguments),
    )
    history = _history(keep=not arguments.no_history)
    if plain:
        from acp_agent.cli.chat.line_chat import LineChat  # noqa: PLC0415 - one of the two

        return await LineChat(options, history, sys.stdout).run()
    from acp_agent.cli.chat.terminal import TerminalChat  # noqa: PLC0415 - one of the two

    return await TerminalChat(options, history, sys.stdout).run()


def _can_move_cursor() -> bool:
    """Return whether there is a terminal whose cursor can be moved."""
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return is_terminal and os.environ.get("TERM", "").lower() not in {"", "dumb", "unknown"}


def _agent_command(agent: str | None, model: str | None) -> list[str]:
    """Return the command line that starts the agent: our own, or the given one."""
    if agent is None:
        return self_command("acp", *([] if model is None else ["--model", model]))
    import shlex  # noqa: PLC0415 - see above

    try:
        return shlex.split(agent)
    except ValueError:
        return []


def _chat_command(arguments: argparse.Namespace) -> str:
    """Return the command line that chats with the same agent in the same folder."""
    from shlex import join  # noqa: PLC0415 - see above

    from acp_agent.cli.screen import program_command  # noqa: PLC0415 - see above

    agent = [] if arguments.command is None else ["--command", arguments.command]
    cwd = [] if arguments.cwd == Path.cwd() else ["--cwd", str(arguments.cwd)]
    return f"{program_command()} {join(['chat', *agent, *cwd])}"


def _history(*, keep: bool) -> PromptHistory:
    """Return the user's history; one that saves nothing if secrets cannot be removed from it."""
    from acp_agent.cli.chat.history import PromptHistory  # noqa: PLC0415 - see above
    from acp_agent.config.paths import find_paths  # noqa: PLC0415 - see above
    from acp_agent.config.secrets import Secrets  # noqa: PLC0415 - see above
    from acp_agent.errors import ConfigError  # noqa: PLC0415 - see above
    from acp_agent.workspace.scrub import scrub  # noqa: PLC0415 - see above

    paths = find_paths(os.environ)
    secrets = Secrets(paths.secrets_file, os.environ)
    try:
        secrets.stored()  # reads the file, so that its keys are known
    except ConfigError:
        keep = False
    path = paths.data_dir / "chat_history" if keep else None
    return PromptHistory(path, lambda text: scrub(text, secrets.values()))


def _parser() -> Parser:
    parser = Parser(
        prog="acp-agent chat",
        description="Chat with the agent in the terminal.",
        epilog="In the chat, /help lists the commands and keys. Exit status: 0 done, 1 error, 2 "
        "invalid arguments, 130 left during a turn.",
    )
    parser.add_argument("prompt", nargs="*", help="first prompt")
    parser.add_argument(
        "--command", metavar="COMMAND", help="command line of another ACP agent, as one argument"
    )
    parser.add_argument("--agent", metavar="NAME", help="the agent to run as, such as review")
    parser.add_argument("--model", metavar="PROVIDER/NAME", help="the model to use")
    parser.add_argument("--mode", help="permission mode to start in")
    parser.add_argument(
        "--resume",
        metavar="SESSION",
        nargs="?",
        const="latest",
        help="resume an earlier session, by its ID or the first characters (default: the "
        "folder's latest)",
    )
    add_folder(parser)
    parser.add_argument(
        "--plain", action="store_true", help="print plain lines, as without a terminal"
    )
    parser.add_argument("--no-history", action="store_true", help="do not save your input")
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=60.0,
        metavar="SECONDS",
        help="time limit for each response of the agent (default: 60)",
    )
    return parser
