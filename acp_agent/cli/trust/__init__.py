"""`acp-agent trust`: trust the files of a folder, list trusted folders, revoke trust."""

from __future__ import annotations

import os
from pathlib import Path

from acp_agent.cli.localization import translate, translate_rendered, user_translator
from acp_agent.cli.output import FAILED, USAGE, complain, confirm, say
from acp_agent.cli.parser import Parser, user_path
from acp_agent.config.load import load_config
from acp_agent.config.paths import find_paths
from acp_agent.extensions.definitions.locations import find_folders, project_top
from acp_agent.extensions.workflows.find import workflow_items
from acp_agent.permissions.git_programs import git_programs
from acp_agent.session.folder_trust import (
    Change,
    describe,
    diff,
    find_changes,
    find_items,
    trusted_folder,
)
from acp_agent.trust.store import Item, TrustStore, code_item
from acp_agent.workspace.git_repositories import GitRepositories


def run(argv: list[str]) -> int:
    """Trust a folder, list trusted folders or revoke trust; return the exit status."""
    parser = Parser(
        prog="acp-agent trust",
        description="Trust files of a folder that can run programs or instruct the agent: "
        "skills, commands, agents, workflows, plugins, hooks with the scripts that they run, "
        "MCP servers, permission rules, instructions of parent folders and those that "
        "opencode.json lists, git settings and hooks, language servers; also those of other "
        "programs, such as .claude, .codex, .cursor and .opencode. You are asked again about "
        "later changes.",
    )
    parser.add_argument(
        "path", nargs="?", type=user_path, default=".", metavar="DIR", help="the folder"
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--list", action="store_true", help="list the trusted folders")
    action.add_argument("--revoke", action="store_true", help="revoke the trust in the folder")
    action.add_argument("--yes", action="store_true", help="trust without asking")
    options = parser.parse_args(argv)
    if options.list:
        return _list()
    if not options.path.is_dir() and not options.revoke:
        complain(translate("{folder} is not a directory", folder=options.path))
        return USAGE
    if options.revoke:
        return _revoke(options.path)
    return _trust(options.path, yes=options.yes)


def trust_folder(cwd: Path) -> None:
    """Trust everything that a session in a folder would use, without asking.

    Raises:
        ConfigError: the configuration is invalid.
        StoreError: the trust cannot be saved.
    """
    _store().trust(_items(cwd))


def _store() -> TrustStore:
    return TrustStore(find_paths(os.environ).trust_file)


def _items(cwd: Path) -> list[Item]:
    config_file = find_paths(os.environ).config_file
    folders = find_folders(cwd, user=config_file.parent, home=Path.home())
    config = load_config(config_file, os.environ)
    code = code_item(project_top(cwd))
    workflows = workflow_items(cwd, user=config_file.parent)
    return [
        *find_items(cwd, folders, config, git_programs(cwd, GitRepositories())),
        *workflows,
        code,
    ]


def _trust(cwd: Path, *, yes: bool) -> int:
    store, items = _store(), _items(cwd)
    changes = find_changes(items, store)
    if not changes:
        say(translate("Nothing in {folder} needs your trust.", folder=trusted_folder(cwd)))
        return 0
    say(translate("Files of {folder} that need your trust:", folder=trusted_folder(cwd)))
    for change in changes:
        _show(change)
    if not confirm(translate("Trust it? [y/N] "), "--yes", given=yes):
        return FAILED
    store.trust([change.item for change in changes])
    say(translate("Trusted as it is now. To revoke, run acp-agent trust --revoke."))
    return 0


def _show(change: Change) -> None:
    say(f"  {describe(change, user_translator())}")
    for line in diff(change).splitlines():
        say(f"    {line}")


def _list() -> int:
    store = _store()
    if store.problem:
        complain(translate_rendered(store.problem))
        return FAILED
    if not store.folders:
        say(translate("No trusted folders."))
    for folder, trusted in sorted(store.folders.items()):
        say(translate("{folder} (since {date})", folder=folder, date=trusted.since[:10]))
        for item in trusted.items:
            say(f"  {describe(Change(item, None), user_translator())}")
        for kind, path, digest in trusted.declined:
            item = Item(kind=kind, folder=folder, path=path, digest=digest)
            description = describe(Change(item, None), user_translator())
            say(f"  {translate('left unused: {item}', item=description)}")
    return 0


def _revoke(cwd: Path) -> int:
    store, folder = _store(), trusted_folder(cwd)
    if store.revoke(folder):
        say(translate("{folder} is no longer trusted.", folder=folder))
        return 0
    complain(translate("{folder} was not trusted.", folder=folder))
    return FAILED
