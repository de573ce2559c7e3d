"""The arguments of `acp-agent policy`."""

from __future__ import annotations

from pathlib import Path

from acp_agent.cli.localization import translate
from acp_agent.cli.output import USAGE, complain
from acp_agent.cli.parser import Parser, add_folder, number, user_path
from acp_agent.cli.user_config import load_user_config
from acp_agent.permissions.opening import open_permissions
from acp_agent.permissions.policy.rules import MODES

MAX_DAYS = 3_660


def run(argv: list[str]) -> int:
    """Test, list, import, suggest or revoke rules; return the exit status."""
    options = _parser().parse_args(argv)
    folder = options.cwd.resolve()
    setup = load_user_config()
    if options.action == "import":
        from acp_agent.cli.policy.importing import import_rules  # noqa: PLC0415 - only for this action

        return import_rules(options, setup.paths, folder, Path.home())
    permissions = open_permissions(setup.paths, setup.config, setup.environ)
    if options.action == "test":
        from acp_agent.cli.policy.explain import test_call  # noqa: PLC0415 - only for this action

        return test_call(options, permissions, folder)
    if options.action == "suggest":
        from acp_agent.cli.policy.suggestion import suggest  # noqa: PLC0415 - only for this action

        return suggest(options, permissions, folder)
    from acp_agent.cli.policy import listing  # noqa: PLC0415 - only for these actions

    if options.action == "list":
        return listing.list_rules(options, permissions, folder)
    if not (options.id or options.all):
        complain(translate("give the IDs to revoke, or use --all"))
        return USAGE
    return listing.revoke(options, permissions, folder)


def _parser() -> Parser:
    parser = Parser(
        prog="acp-agent policy",
        description="List, test and import permission rules, and revoke remembered answers.",
    )
    actions = parser.add_subparsers(dest="action")
    test = actions.add_parser("test", help="show the decision about a call, and why")
    test.add_argument(
        "call",
        nargs="+",
        help="a command line, a path, an address, mcp__server__tool, or Edit(src/a.py)",
    )
    test.add_argument("--mode", choices=MODES, default="ask", help="the mode (default: ask)")
    test.add_argument("--agent", default="", metavar="NAME", help="the agent of the call")
    test.add_argument(
        "--expect",
        choices=["allow", "ask", "deny"],
        help="exit with status 1 if the decision differs",
    )
    listing = actions.add_parser("list", help="list the rules and the remembered answers")
    listing.add_argument("--all", action="store_true", help="list the answers of all projects")
    revoke = actions.add_parser("revoke", help="revoke remembered answers")
    revoke.add_argument("id", nargs="*", help="IDs from `policy list`")
    revoke.add_argument("--all", action="store_true", help="revoke all answers of the folder")
    importing = actions.add_parser("import", help="import the permissions of other coding agents")
    importing.add_argument(
        "path",
        nargs="*",
        type=user_path,
        help="a settings file or project folder (default: yours and the current folder's)",
    )
    importing.add_argument("--save", action="store_true", help="save the rules without asking")
    suggest = actions.add_parser("suggest", help="suggest rules that would have avoided questions")
    suggest.add_argument(
        "--days",
        type=number(1, MAX_DAYS),
        default=30,
        metavar="N",
        help="use the last N days (default: 30)",
    )
    suggest.add_argument("--all", action="store_true", help="use the sessions of all folders")
    for action in (test, listing, importing, suggest):
        action.add_argument("--json", action="store_true", help="print JSON")
    for action in (test, listing, revoke, importing, suggest):
        add_folder(action)
    return parser
