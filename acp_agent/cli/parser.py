"""The argument parser, with help in the user's language.

Commands define their help in English. It is translated only when it is printed, so that a command
without `--help` does not load the translations.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.output import USAGE, width, wrap

if TYPE_CHECKING:
    _Base = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - see below
else:  # it is generic only for type checkers
    _Base = argparse._SubParsersAction  # noqa: SLF001 - argparse has no public name for it

MODES = ("ask", "accept-edits", "draft", "plan", "full")
_MAX_SECONDS = 1e6  # seconds; every wait is limited
_MIN_SECONDS = 0.05  # seconds


def seconds(text: str) -> float:
    """Parse a time in seconds. Raises ArgumentTypeError if it is not a valid duration."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not _MIN_SECONDS <= value <= _MAX_SECONDS:  # also false for "nan"
        raise argparse.ArgumentTypeError("must be a number of seconds, such as 30")
    return value


def number(low: int, high: int) -> Callable[[str], int]:
    """Return a parser of integers from `low` to `high`.

    The parser raises ArgumentTypeError for anything else.
    """

    def parse(text: str) -> int:
        # Python refuses to parse numbers of thousands of digits, with a different error.
        value = int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else None
        if value is None or not low <= value <= high:
            raise argparse.ArgumentTypeError(f"a number from {low:,} to {high:,}")
        return value

    return parse


def user_path(text: str | Path) -> Path:
    """Return an absolute path; `~` stands for the home folder."""
    return Path(os.path.expanduser(text)).absolute()  # noqa: PTH111 - pathlib's may raise


def folder(text: str) -> Path:
    """Parse a folder; return its absolute path. Raises ArgumentTypeError if there is none."""
    path = user_path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{path} is not a directory")
    return path


def add_folder(parser: argparse.ArgumentParser) -> None:
    """Add `--cwd`, the folder of a session."""
    parser.add_argument(
        "--cwd",
        type=folder,
        default=".",
        metavar="DIR",
        help="the session's folder (default: the current one)",
    )


def add_serve_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that offer the agent to other programs."""
    parser.add_argument(
        "--folder",
        action="append",
        type=folder,
        metavar="DIR",
        help="folder to serve, with its subfolders (default: the current folder; repeatable)",
    )
    parser.add_argument("--model", metavar="PROVIDER/NAME", help="model for new sessions")


def add_turn_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that run turns, except `--mode`."""
    parser.add_argument("--model", metavar="PROVIDER/NAME", help="the model to use")
    parser.add_argument("--agent", metavar="NAME", help="the agent to run as, such as review")
    parser.add_argument(
        "--allow",
        choices=["all", "edits", "none"],
        default="ask",
        help="allow these calls without asking; default: ask in a terminal, refuse elsewhere",
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="trust the current files of the folder; without this, only what you trusted before "
        "is used",
    )


class _Help(argparse.HelpFormatter):
    """Help in the user's language; characters may be two columns wide."""

    def start_section(self, heading: str | None) -> None:
        super().start_section(heading and translate(heading))

    def add_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Iterable[argparse._MutuallyExclusiveGroup],
        prefix: str | None = None,
    ) -> None:
        super().add_usage(
            usage, actions, groups, translate("usage: ") if prefix is None else prefix
        )

    def add_text(self, text: str | None) -> None:
        super().add_text(translate(text) if isinstance(text, str) else text)

    def format_help(self) -> str:
        usage, gap, sections = super().format_help().partition("\n\n")
        first = translate("usage: ")
        if usage.startswith(first):  # its further lines are aligned with the arguments
            usage = usage.replace("\n ", "\n " + " " * (width(first) - len(first)))
        return usage + gap + sections.replace(":\n", translate(":\n"))

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help and translate(action.help)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrap(text, width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(f"{indent}{line}" for line in wrap(text, width - len(indent)))


class _Actions(_Base):
    """Subcommands whose `--help` shows their description in the list."""

    def add_parser(self, name: str, **arguments: Any) -> Any:  # as argparse has it
        return super().add_parser(name, **{"description": arguments.get("help"), **arguments})


class Parser(argparse.ArgumentParser):
    """Parses the arguments of `acp-agent COMMAND`.

    Args:
        epilog: the text after the arguments, in English.
    """

    def __init__(
        self,
        prog: str | None = None,
        description: str | None = None,
        epilog: str | None = None,
        **arguments: Any,  # what argparse passes to the parser of an action
    ) -> None:
        super().__init__(prog=prog, description=description, epilog=epilog, **arguments)
        self.formatter_class = _Help

    def add_subparsers(self, **arguments: Any) -> Any:  # as argparse has it
        """Add subcommands that use their help text as their description."""
        return super().add_subparsers(action=_Actions, **arguments)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:  # as argparse has it
        """Parse the arguments; exit with the help if an action is missing."""
        options = super().parse_args(args, namespace)
        if getattr(options, "action", "") is None:
            self.print_help(sys.stderr)
            self.exit(USAGE)
        return options

    def error(self, message: str) -> NoReturn:
        """Print the error and exit with status 2."""
        self.print_usage(sys.stderr)
        text = translate(
            "{program}: error: {message}", program=self.prog, message=translate_rendered(message)
        )
        self.exit(USAGE, f"{text}\n")
