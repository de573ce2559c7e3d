"""`acp-agent skills`: the skills that a session would have."""

from __future__ import annotations

from acp_agent.cli.definitions import add_arguments, show
from acp_agent.cli.output import guarded
from acp_agent.cli.parser import Parser


def run(argv: list[str]) -> int:
    """List skills; returns the exit status."""
    parser = Parser(
        prog="acp-agent skills",
        description="List the skills that a session has, and say what is wrong with the others.",
    )
    add_arguments(parser)
    options = parser.parse_args(argv)
    return guarded(lambda: show("skills", options.cwd, as_json=options.json))
