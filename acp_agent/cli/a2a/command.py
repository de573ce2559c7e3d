"""`acp-agent a2a serve`: offer the agent to programs that speak the Agent2Agent protocol (A2A)."""

from __future__ import annotations

from importlib.util import find_spec

from acp_agent.cli.parser import Parser, add_serve_options, number
from acp_agent.errors import ConfigError
from acp_agent.platform import posix


def run(argv: list[str]) -> int:
    """Run the command; return the exit status."""
    parser = Parser(
        prog="acp-agent a2a",
        description="Offer this agent to programs that speak the Agent2Agent protocol (A2A).",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    serving = actions.add_parser("serve", help="listen on 127.0.0.1 until stopped")
    serving.add_argument(
        "--port",
        type=number(0, 65_535),
        default=0,
        metavar="N",
        help="the port (default: a free one)",
    )
    add_serve_options(serving)
    options = parser.parse_args(argv)
    posix.forbid_inspection()  # others than the user may send requests
    if any(find_spec(package) is None for package in ("a2a", "sse_starlette", "sqlalchemy")):
        raise ConfigError("A2A needs further packages: install acp-agent-server[a2a].")
    from acp_agent.cli.a2a.server import serve  # noqa: PLC0415 - heavy, and an extra

    return serve(options)
