"""The arguments of `acp-agent plugin`."""

from __future__ import annotations

from acp_agent.cli.parser import Parser, add_folder, folder


def run(argv: list[str]) -> int:
    """Add, list, check, update, remove, enable or disable plugins; return the exit status."""
    options = _parser().parse_args(argv)
    if options.action in {"list", "check"}:
        from acp_agent.cli.plugins import listing  # noqa: PLC0415 - only for these actions

        return listing.show(options) if options.action == "list" else listing.check(options)
    from acp_agent.cli.plugins import changing  # noqa: PLC0415 - only for these actions

    match options.action:
        case "add":
            return changing.add(options)
        case "import":
            return changing.import_plugins(options)
        case "update":
            return changing.update(options)
        case "remove":
            return changing.remove(options)
        case _:
            return changing.enable(options, on=options.action == "enable")


def _parser() -> Parser:
    parser = Parser(
        prog="acp-agent plugin",
        description="Add, list, update and remove plugins: packages of skills, agents, hooks, "
        "MCP servers and Python code.",
    )
    actions = parser.add_subparsers(dest="action")
    add = actions.add_parser("add", help="add a plugin from a folder, a repository, npm or PyPI")
    add.add_argument(
        "source",
        metavar="SOURCE",
        help="a folder, the URL of a git repository, owner/repository on GitHub, npm:PACKAGE, "
        "or a Python package",
    )
    add.add_argument("name", nargs="?", default="", help="the plugin, if SOURCE is a marketplace")
    add.add_argument(
        "--link", action="store_true", help="use the folder in place instead of a copy"
    )
    listing = actions.add_parser("list", help="list the plugins of a folder and their errors")
    check = actions.add_parser("check", help="check a plugin folder for errors")
    check.add_argument("path", type=folder, nargs="?", default=".", metavar="DIR")
    update = actions.add_parser("update", help="fetch plugins again and show changes")
    update.add_argument("name", nargs="*", help="the plugins (default: all)")
    importing = actions.add_parser("import", help="add the plugins enabled in .claude/settings")
    for action in (add, update):
        action.add_argument(
            "--ref", default="", metavar="REF", help="a branch, tag or commit of the repository"
        )
    for action in (add, update, importing):
        action.add_argument("--yes", action="store_true", help="apply without asking")
    removing = actions.add_parser("remove", help="remove a plugin")
    removing.add_argument("--keep-data", action="store_true", help="keep the data of its programs")
    enable = actions.add_parser("enable", help="turn a plugin on")
    disable = actions.add_parser("disable", help="turn a plugin off without removing it")
    for action in (removing, enable, disable):
        action.add_argument("name", help="the plugin")
    for action in (listing, check):
        action.add_argument("--json", action="store_true", help="print JSON")
    for action in (listing, importing):
        add_folder(action)
    return parser
