"""Lists what a folder brings along that can run or steer the agent, and describes it to people."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from acp_agent.config.localization import Translator
from acp_agent.config.types import Config
from acp_agent.content import printable_line
from acp_agent.extensions.definitions.locations import (
    DefinitionFolders,
    any_folder_exists,
    find_repository,
    mcp_files,
    project_hook_files,
)
from acp_agent.trust.items import Item, Kind, folder_name
from acp_agent.trust.store import TrustStore

if TYPE_CHECKING:
    from acp_agent.permissions.git_programs import GitPrograms

_SHOWN_PATH = 200  # characters
_SHOWN_WHAT = 800
_SHOWN_ITEMS = 40
_DIFF_LINES = 80  # of one item

KINDS: dict[Kind, str] = {
    "skill": "skill",
    "agent": "agent",
    "rules": "permission rules",
    "instructions": "instructions",
    "git": "git settings and hooks",
    "mcp": "MCP servers",
    "hooks": "hooks",
    "workflow": "workflow",
    "plugin": "plugin",
    "code": "code of the project, run by language servers",
}


class Change(Struct, frozen=True):
    """An item that is not trusted, and the item as it was trusted before; None where it is new."""

    item: Item
    before: Item | None


def trusted_folder(cwd: Path) -> str:
    """Return the folder that is trusted with what a session in `cwd` finds: the project's top."""
    return folder_name(find_repository(cwd) or cwd)


def find_items(
    cwd: Path, places: DefinitionFolders, config: Config, git: GitPrograms | None
) -> list[Item]:
    """Return what a session in a folder would find there, trusted or not.

    The code of the project, which language servers run, is not among it. Reads files: call it in a
    thread.

    Args:
        cwd: the folder.
        places: where its skills and agents are.
        config: the user's configuration.
        git: the programs of its repository.
    """
    from acp_agent.permissions.policy.loading import project_rules  # noqa: PLC0415 - not at start
    from acp_agent.workspace.instructions.files import items_above  # noqa: PLC0415 - likewise

    found = [] if git is None else [git.item]
    if any_folder_exists(places):
        from acp_agent.extensions.definitions.discovery import find_definitions  # noqa: PLC0415 - where there are any

        found += find_definitions(places, config, _nothing).untrusted
    found += [
        one.item
        for one in project_rules(str(cwd))
        if any(rule.effect == "allow" for rule in one.rules)
    ]
    if any(os.path.lexists(file) for file in mcp_files(cwd)):
        from acp_agent.extensions.mcp.configured import project_items  # noqa: PLC0415 - where there are any

        found += project_items(cwd)
    if any(os.path.lexists(file) for file in project_hook_files(cwd)):
        from acp_agent.hooks.sources import project_items as hooks_of  # noqa: PLC0415 - where there are any

        found += hooks_of(cwd)
    return [*found, *items_above(cwd)]


def _nothing(item: Item) -> bool:
    del item
    return False


def find_changes(items: Sequence[Item], store: TrustStore) -> list[Change]:
    """Return those of the items that the user does not trust as they are."""
    return [Change(item, store.before(item)) for item in items if not store.trusts(item)]


def describe(change: Change, translate: Translator) -> str:
    """Return one line about an item."""
    item = change.item
    above = item.kind == "instructions"
    path = os.path.join(item.folder, item.path) if above else item.path  # noqa: PTH118 - for people
    line = f"{translate(KINDS[item.kind])}: {printable_line(path, _SHOWN_PATH)}"
    notes = []
    if change.before is not None:
        notes.append(translate("changed"))
    if not item.digest:
        notes.append(translate("too large or not readable: it is never used"))
    if item.what:
        notes.append(printable_line(item.what, _SHOWN_WHAT))
    return f"{line} ({'; '.join(notes)})" if notes else line


def describe_all(changes: Sequence[Change], translate: Translator) -> list[str]:
    """Return a line about each item, and how many more there are."""
    lines = [describe(change, translate) for change in changes[:_SHOWN_ITEMS]]
    if len(changes) > _SHOWN_ITEMS:
        lines.append(translate("and {count} more", count=len(changes) - _SHOWN_ITEMS))
    return lines


def diff(change: Change) -> str:
    """Return the unified diff of a short text that changed; "" where there is none."""
    item, before = change.item, change.before
    if before is None or not (before.text and item.text):
        return ""
    import difflib  # noqa: PLC0415 - where something changed

    lines = list(
        difflib.unified_diff(
            before.text.splitlines(), item.text.splitlines(), item.path, item.path, lineterm="", n=2
        )
    )
    more = [f"… {len(lines) - _DIFF_LINES:,} more lines"] if len(lines) > _DIFF_LINES else []
    return "\n".join([*lines[:_DIFF_LINES], *more])
