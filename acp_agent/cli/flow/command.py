"""The arguments of `acp-agent flow`."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from acp_agent.cli.localization import translate_rendered
from acp_agent.cli.output import USAGE, complain
from acp_agent.cli.parser import MODES, Parser, add_folder, add_turn_options
from acp_agent.errors import InvalidInputError
from acp_agent.platform import posix


def run(argv: list[str]) -> int:
    """Run, list or check workflows; return the exit status."""
    options = _parser().parse_args(argv)
    posix.forbid_inspection()  # the agent's commands must not read our environment
    return report_usage_errors(lambda: _run(options))


def report_usage_errors(work: Callable[[], int]) -> int:
    """Run a command; report invalid user input as a usage error."""
    try:
        return work()
    except InvalidInputError as error:
        complain(translate_rendered(str(error)))
        return USAGE


def _run(options: argparse.Namespace) -> int:
    if options.action == "run":
        from acp_agent.cli.flow.running import run_workflow  # noqa: PLC0415 - only for this action

        return run_workflow(options)
    from acp_agent.cli.flow import listing  # noqa: PLC0415 - only for these actions

    return listing.show(options) if options.action == "list" else listing.check(options)


def _parser() -> Parser:
    parser = Parser(
        prog="acp-agent flow", description="Run workflows: files of steps for the agent."
    )
    actions = parser.add_subparsers(dest="action")
    running = actions.add_parser("run", help="run a workflow, or continue a run")
    running.add_argument(
        "file", nargs="?", metavar="FILE", help="the workflow file, or a name from flow list"
    )
    running.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="RUN",
        help="resume a run, by its ID or the first characters (default: the last one)",
    )
    add_run_options(running)
    running.add_argument("--json", action="store_true", help="print one JSON object per line")
    listing = actions.add_parser(
        "list", help="list the workflows, and the runs that can be resumed"
    )
    check = actions.add_parser("check", help="check workflow files for errors")
    check.add_argument(
        "file", nargs="+", metavar="FILE", help="the workflow file, or a name from flow list"
    )
    for action in (listing, check):
        action.add_argument("--json", action="store_true", help="print JSON")
    for action in (running, listing, check):
        add_folder(action)
    return parser


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `flow run` and `watch` have in common."""
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set an input; repeatable",
    )
    add_turn_options(parser)
    parser.add_argument(
        "--mode", choices=MODES, help="permission mode; a step's own can only be stricter"
    )
