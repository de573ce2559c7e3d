"""Generate the grammar of completion from the parsers of the commands."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, get_args
from unittest.mock import patch

from acp_agent.cli import main
from acp_agent.cli.parser import Parser
from acp_agent.permissions.access import Mode

if TYPE_CHECKING:
    from acp_agent.cli.completion.grammar import Command, Option, Value

# Kinds of completion by the parsers' metavars; all other values are free text.
KINDS = {
    "FILE": "file",
    "DIR": "folder",
    "cwd": "folder",
    "PROVIDER/NAME": "model",
    "SESSION": "session",
    "ID": "session id",
    "id": "session",
    "PROVIDER": "provider",
    "provider": "provider",
    "EDITOR": "editor",
    "COMMAND": "file",
}


class _ParserFound(BaseException):
    """Carries a command's parser out of the command, before it reads any arguments."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


def find_parser(command: str) -> argparse.ArgumentParser:
    """Return the parser that a command reads its arguments with."""

    def take(parser: argparse.ArgumentParser, *_: object) -> None:
        raise _ParserFound(parser)

    run = main.entry_point(command)
    with patch.object(Parser, "parse_args", take):
        try:
            run(["--help"])
        except _ParserFound as caught:
            return caught.parser
    raise AssertionError(f"the command {command} reads no arguments")


def grammar_text() -> str:
    """Return the grammar as JSON text, the same for the same parsers."""
    commands = {
        name: {**_command(find_parser(name)), "about": about}
        for name, about in main.COMMANDS.items()
    }
    serving = Parser(prog="acp-agent")
    serving.add_argument("--model", metavar="PROVIDER/NAME", help="the model to use")
    serving.add_argument("--agent", metavar="NAME", help="the agent to run as, such as review")
    serving.add_argument("--trace", metavar="FILE", help="record the messages, without secrets")
    serving.add_argument(
        "-p", "--print", metavar="PROMPT", help="run one prompt, like acp-agent run"
    )
    root = {**_command(serving), "actions": commands}
    return json.dumps(root, indent=1, ensure_ascii=False) + "\n"


def _command(parser: argparse.ArgumentParser) -> Command:
    command: Command = {"about": "", "options": [], "arguments": [], "actions": {}}
    for action in parser._actions:  # noqa: SLF001 - argparse has no other list of them
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - likewise
            abouts = {choice.dest: choice.help or "" for choice in action._choices_actions}  # noqa: SLF001 - likewise
            for name, subparser in action.choices.items():
                command["actions"][name] = {**_command(subparser), "about": abouts.get(name, "")}
        elif action.option_strings:
            command["options"].append(_option(action))
        else:
            command["arguments"].append(_value(action))
    return command


def _option(action: argparse.Action) -> Option:
    option: Option = {"names": list(action.option_strings), "about": action.help or ""}
    if action.nargs != 0:
        option["value"] = _value(action)
    if isinstance(action, argparse._AppendAction):  # noqa: SLF001 - its only name
        option["again"] = True
    return option


def _value(action: argparse.Action) -> Value:
    value: Value = {}
    name = action.metavar if isinstance(action.metavar, str) else action.dest
    if action.choices is not None:
        value["choices"] = list(action.choices)
    elif name == "mode":
        value["choices"] = list(get_args(Mode))  # the modes of other agents are unknown
    elif name in KINDS:
        # `latest` names a session to read, but not one of several to delete.
        several = KINDS[name] == "session" and action.nargs == "+"
        value["kind"] = "session id" if several else KINDS[name]
    if action.nargs == "?" and action.option_strings:
        value["optional"] = True
    if action.nargs in {"+", "*"}:
        value["many"] = True
    return value
