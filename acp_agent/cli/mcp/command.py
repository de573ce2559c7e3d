"""The arguments of `acp-agent mcp`."""

from __future__ import annotations

import argparse

from acp_agent.cli.parser import Parser, add_folder, add_serve_options, number, user_path
from acp_agent.platform import posix


def run(argv: list[str]) -> int:
    """List, add, remove, test, import or serve MCP servers; return the exit status."""
    options = _parser().parse_args(argv)
    posix.forbid_inspection()  # the servers must not read our environment
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    options.cwd = options.cwd.resolve()
    if options.action in {"list", "test"}:
        from acp_agent.cli.mcp import listing  # noqa: PLC0415 - only for these actions

        return listing.show_servers(options) if options.action == "list" else listing.test(options)
    if options.action in {"login", "logout"}:
        from acp_agent.cli.mcp.login import login, logout  # noqa: PLC0415 - brings the `mcp` package

        return login(options) if options.action == "login" else logout(options)
    if options.action == "serve":
        from acp_agent.cli.mcp.serve import serve  # noqa: PLC0415 - so does this

        return serve(options)
    if options.action == "import":
        from acp_agent.cli.mcp.importing import import_servers  # noqa: PLC0415 - only for this action

        return import_servers(options)
    from acp_agent.cli.mcp import editing  # noqa: PLC0415 - only for these actions

    return editing.add(options) if options.action == "add" else editing.remove(options)


def _parser() -> Parser:
    parser = Parser(prog="acp-agent mcp", description="List, add, test and import MCP servers.")
    actions = parser.add_subparsers(dest="action")
    listing = actions.add_parser("list", help="list the configured servers and their errors")
    add = actions.add_parser("add", help="add a server to the configuration")
    add.add_argument("name", help="the server's name")
    add.add_argument(
        "target",
        metavar="COMMAND_OR_URL",
        nargs="?",
        help="its program or URL; not needed for browser",
    )
    add.add_argument("args", nargs=argparse.REMAINDER, help="the program's arguments")
    add.add_argument("--type", choices=["stdio", "http", "sse"], help="its transport")
    add.add_argument(
        "-e",
        "--env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set this environment variable",
    )
    add.add_argument(
        "--env-var",
        action="append",
        default=[],
        metavar="NAME",
        help="pass this environment variable",
    )
    add.add_argument(
        "-H",
        "--header",
        action="append",
        default=[],
        metavar="'NAME: VALUE'",
        help="send this header",
    )
    remove = actions.add_parser("remove", help="remove a server from the configuration")
    remove.add_argument("name", help="the server")
    test = actions.add_parser("test", help="connect to servers and show what they offer")
    test.add_argument("name", nargs="*", help="the servers (default: all enabled)")
    importing = actions.add_parser("import", help="import the servers of other coding agents")
    importing.add_argument(
        "path",
        nargs="*",
        type=user_path,
        help="a settings file (default: those of yours and of this folder)",
    )
    importing.add_argument("--save", action="store_true", help="save the servers without asking")
    signing_in = actions.add_parser("login", help="log in to a server (OAuth)")
    signing_in.add_argument("--device", action="store_true", help="log in on another device")
    signing_in.add_argument(
        "--no-browser", action="store_true", help="only print the address to open"
    )
    signing_in.add_argument(
        "--port",
        type=number(0, 65_535),
        default=0,
        metavar="N",
        help="port for the browser's redirect (default: a free one)",
    )
    signing_in.add_argument(
        "--keyring", action="store_true", help="save the tokens in the system's keyring"
    )
    signing_in.add_argument(
        "--client-secret",
        action="store_true",
        help="ask for the secret of oauth.client_id, saved with the tokens",
    )
    signing_out = actions.add_parser("logout", help="delete the login of a server")
    for action in (signing_in, signing_out):
        action.add_argument("name", help="the server's name or URL")
    serving = actions.add_parser("serve", help="offer this agent to MCP clients")
    add_serve_options(serving)
    serving.add_argument(
        "--http",
        type=number(0, 65_535),
        metavar="PORT",
        help="listen on 127.0.0.1 instead of stdin; 0 picks a free port",
    )
    for action in (listing, test):
        action.add_argument("--json", action="store_true", help="print JSON")
    for action in (listing, add, remove, test, importing, signing_in, signing_out, serving):
        add_folder(action)
    return parser
