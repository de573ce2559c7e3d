"""Find the files of a folder that run programs or instruct the model, and ask to trust them.

The user is asked with a form as soon as the session is open. A client that shows no forms outside
of turns is sent a permission request when the next turn begins.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from acp_agent.config.localization import Translator
from acp_agent.config.types import Config
from acp_agent.content import JsonObject, escaped, printable_line, text_part
from acp_agent.elicitation import Form
from acp_agent.errors import StoreError
from acp_agent.events import NoticeShown
from acp_agent.extensions.definitions.locations import (
    DefinitionFolders,
    any_folder_exists,
    any_mcp_file,
    any_project_hook_file,
    project_top,
    settings_files,
)
from acp_agent.permissions.git_programs import WatchedGitPrograms
from acp_agent.platform.posix import absolute_folders
from acp_agent.session.core import SessionCore
from acp_agent.session.extension_files import ExtensionFiles
from acp_agent.trust.store import TRUST_OPTION, Item, Kind, TrustStore, code_item, folder_name
from acp_agent.workspace.environment import with_settings

if TYPE_CHECKING:
    from acp_agent.permissions.git_programs import GitPrograms

TITLE = "Use the files of this folder?"
ALWAYS = "Trust it as it is now"
FOR_NOW = "Trust it until the agent exits"
NEVER = "Leave it unused"

_MAX_PATH_LENGTH = 200  # characters
_MAX_DETAIL_LENGTH = 800
_MAX_SHOWN_ITEMS = 40
_MAX_DIFF_LINES = 80  # of one item

KINDS: dict[Kind, str] = {
    "skill": "skill",
    "agent": "agent",
    "rules": "permission rules",
    "instructions": "instructions",
    "git": "git settings and hooks",
    "mcp": "MCP servers",
    "settings": "settings",
    "hooks": "hooks",
    "workflow": "workflow",
    "plugin": "plugin",
    "code": "project code that language servers run",
}


class Change(Struct, frozen=True):
    """An untrusted item, and its version that was trusted before; None if it is new."""

    item: Item
    trusted: Item | None


def trusted_folder(cwd: Path) -> str:
    """Return the name of the folder that the user trusts for `cwd`: the project's top folder."""
    return folder_name(project_top(cwd))


def find_items(
    cwd: Path, folders: DefinitionFolders, config: Config, git: GitPrograms | None
) -> list[Item]:
    """Return the items that a session in a folder would find, trusted or not.

    The project's code, which language servers run, is not included. Reads files: call it in a
    thread.

    Args:
        git: the programs that its repository configures.
    """
    from acp_agent.permissions.policy.loading import project_rules  # noqa: PLC0415 - not at start
    from acp_agent.workspace.instructions.files import instruction_items  # noqa: PLC0415 - likewise

    items = [] if git is None else [git.item]
    if any_folder_exists(folders):
        from acp_agent.extensions.definitions.discovery import find_definitions  # noqa: PLC0415 - if there are any

        items += find_definitions(folders, config, _trust_nothing).untrusted
    items += [
        source.item
        for source in project_rules(str(cwd))
        if any(rule.effect == "allow" for rule in source.rules)
    ]
    if any_mcp_file(cwd):
        from acp_agent.extensions.mcp.configured import project_items  # noqa: PLC0415 - if there are any

        items += project_items(cwd)
    if any_project_hook_file(cwd):
        from acp_agent.hooks.sources import project_items as hook_items  # noqa: PLC0415 - if there are any

        items += hook_items(cwd)
    if any(map(os.path.lexists, settings_files(cwd))):
        from acp_agent.extensions.project_settings import settings_items  # noqa: PLC0415 - if there are any

        items += settings_items(cwd)
    return [*items, *instruction_items(cwd)]


def _trust_nothing(_item: Item) -> bool:
    return False


def find_changes(items: Sequence[Item], store: TrustStore) -> list[Change]:
    """Return the items that the user does not trust in their current version."""
    return [Change(item, store.trusted_version(item)) for item in items if not store.trusts(item)]


def describe(change: Change, translate: Translator) -> str:
    """Return a line of text that describes an item."""
    item = change.item
    absolute = item.kind == "instructions"
    path = os.path.join(item.folder, item.path) if absolute else item.path  # noqa: PTH118 - shown to the user
    line = f"{translate(KINDS[item.kind])}: {printable_line(path, _MAX_PATH_LENGTH)}"
    notes = []
    if change.trusted is not None:
        notes.append(translate("changed"))
    if not item.digest:
        notes.append(translate("too large or not readable: never used"))
    if item.what:
        notes.append(printable_line(item.what, _MAX_DETAIL_LENGTH))
    return f"{line} ({'; '.join(notes)})" if notes else line


def describe_all(changes: Sequence[Change], translate: Translator) -> list[str]:
    """Return a line for each item up to a limit, and one with the number of further items."""
    lines = [describe(change, translate) for change in changes[:_MAX_SHOWN_ITEMS]]
    if len(changes) > _MAX_SHOWN_ITEMS:
        lines.append(translate("and {count} more", count=len(changes) - _MAX_SHOWN_ITEMS))
    return lines


def diff(change: Change) -> str:
    """Return the unified diff of a changed short text; "" if there is none."""
    item, trusted = change.item, change.trusted
    if trusted is None or not (trusted.text and item.text):
        return ""
    import difflib  # noqa: PLC0415 - only for changes

    lines = list(
        difflib.unified_diff(
            trusted.text.splitlines(),
            item.text.splitlines(),
            item.path,
            item.path,
            lineterm="",
            n=2,
        )
    )
    more = (
        [f"… {len(lines) - _MAX_DIFF_LINES:,} more lines"] if len(lines) > _MAX_DIFF_LINES else []
    )
    return "\n".join([*lines[:_MAX_DIFF_LINES], *more])


class FolderTrust:
    """Asks the user of one session to trust the files of its folder.

    Args:
        files: tells whether its folder has any.
        on_trusted: called when the user trusts further items.
    """

    def __init__(
        self, core: SessionCore, files: ExtensionFiles, on_trusted: Callable[[], Awaitable[None]]
    ) -> None:
        self._core = core
        self._files = files
        self._on_trusted = on_trusted
        self._asked_keys: set[tuple[str, ...]] = set()
        self._notice_shown = False
        self._question_lock = asyncio.Lock()
        self._form_is_open = False
        self._git = WatchedGitPrograms(core.services.repositories)

    async def aclose(self) -> None:
        """Stop git if it runs."""
        await asyncio.to_thread(self._git.close)

    def environ(self) -> Mapping[str, str]:
        """Return an environment in which commands do not run untrusted programs.

        Unless the project's code is trusted, relative folders are removed from PATH. Starts git:
        call it in a thread.
        """
        services, cwd = self._core.services, self._core.cwd
        environ, trusts = dict(services.environ), services.trust().trusts
        git = self._git.find(cwd)
        if git is not None and not trusts(git.item):
            environ |= with_settings(git.overrides, environ)
        if "PATH" in environ and not trusts(code_item(project_top(cwd))):
            environ["PATH"] = absolute_folders(environ["PATH"])
        return environ

    async def find_changes(self, *, include_code: bool = False) -> list[Change]:
        """Return the items of the session's folder that the user does not trust.

        Args:
            include_code: include the project's code, which only language servers run.
        """
        core, services = self._core, self._core.services
        if (
            not include_code
            and not self._files.may_need_trust(core.cwd)
            and self._git.are_known_absent(core.cwd)
        ):
            return []  # the usual case, found without waiting for a thread

        def find() -> list[Change]:
            folders = services.definition_folders(core.cwd)
            items = find_items(core.cwd, folders, services.config, self._git.find(core.cwd))
            if include_code:
                items.append(code_item(project_top(core.cwd)))
            return find_changes(items, services.trust())

        return await asyncio.to_thread(find)

    async def ask_by_form(self) -> None:
        """Ask with a form about new items; does nothing if the client shows no forms."""
        client = self._core.client.current
        if client is None or not client.asks_outside_turns:
            return
        async with self._question_lock:
            changes = self._not_asked(await self.find_changes())
            self._form_is_open = bool(changes)
        if not changes:
            return
        try:
            response = await client.ask_form(self._core.id, self._form(changes))
        finally:
            self._form_is_open = False
        if response is None:  # the client failed; the next turn asks
            return
        self._mark_asked(changes)
        choice = (response.content or {}).get("trust")
        await self._apply_choice(changes, choice if response.action == "accept" else None)

    async def ask_in_turn(self, *, repeat: bool = False) -> list[Change]:
        """Ask with a permission request about new items; a turn must be running.

        Args:
            repeat: ask again about items that the user was asked about before.

        Returns:
            The items that are still not trusted.
        """
        async with self._question_lock:
            if self._form_is_open:
                await self._notice()
                return []
            untrusted = await self.find_changes(include_code=repeat)
            changes = untrusted if repeat else self._not_asked(untrusted)
            if not changes and any(map(self._is_declined, untrusted)):
                await self._notice()
            if changes:
                self._mark_asked(changes)
                await self._apply_choice(changes, await self._ask_permission(changes))
            return find_changes([change.item for change in untrusted], self._core.services.trust())

    def _not_asked(self, changes: Sequence[Change]) -> list[Change]:
        return [
            change
            for change in changes
            if _key(change) not in self._asked_keys
            and change.item.digest
            and not self._is_declined(change)
        ]

    def _is_declined(self, change: Change) -> bool:
        return self._core.services.trust().declines(change.item)

    def _mark_asked(self, changes: Sequence[Change]) -> None:
        self._asked_keys |= {_key(change) for change in changes}

    def _text(self, changes: Sequence[Change]) -> str:
        translate = self._core.translate
        intro = translate(
            "These files can run programs or instruct the model. They are not used until you "
            "trust them. If they change, you are asked again."
        )
        lines = [f"- {line}" for line in describe_all(changes, translate)]
        diffs = [f"```diff\n{escaped(text)}\n```" for change in changes if (text := diff(change))]
        return self._core.clean("\n\n".join([intro, "\n".join(lines), *diffs]))

    def _form(self, changes: Sequence[Change]) -> Form:
        translate = self._core.translate
        choices = {"always": ALWAYS, "for_now": FOR_NOW, "never": NEVER}
        trust: JsonObject = {
            "type": "string",
            "title": translate.rendered_title(TITLE),
            "oneOf": [
                {"const": name, "title": translate(label)} for name, label in choices.items()
            ],
        }
        schema: JsonObject = {
            "type": "object",
            "properties": {"trust": trust},
            "required": ["trust"],
        }
        return Form(
            message=f"{translate.rendered_title(TITLE)}\n\n{self._text(changes)}", schema=schema
        )

    async def _ask_permission(self, changes: Sequence[Change]) -> str | None:
        """Return the user's choice; None unless the user, and not a flag, answered."""
        from acp_agent.permissions.access import Choice  # noqa: PLC0415 - only when asking
        from acp_agent.session.confirmation import confirm  # noqa: PLC0415 - likewise

        core, client = self._core, self._core.client.current
        if client is None:
            return None
        translate = core.translate
        decision = await confirm(
            client,
            core.id,
            core.notify,
            name="trust",
            title=TITLE,
            content=(text_part(self._text(changes)),),
            choices=(
                Choice(id=TRUST_OPTION, label=translate(FOR_NOW), kind="allow_once"),
                Choice(id="trust_always", label=translate(ALWAYS), kind="allow_always"),
                Choice(id="trust_never", label=translate(NEVER), kind="reject_always"),
            ),
            by_user_only=True,
        )
        return None if decision.choice is None else decision.choice.id.removeprefix("trust_")

    async def _apply_choice(self, changes: Sequence[Change], choice: object) -> None:
        store, items = self._core.services.trust(), [change.item for change in changes]
        remember = {"always": store.trust, "never": store.decline}.get(str(choice))
        if remember is not None:
            try:
                await asyncio.to_thread(remember, items)
            except StoreError as error:
                await self._core.notify(NoticeShown(severity="warning", title=str(error)))
        if choice not in {"always", "for_now"}:
            await self._notice()
            return
        store.trust_for_now(items)
        await self._on_trusted()

    async def _notice(self) -> None:
        """Show once a notice that some files are not used."""
        if self._notice_shown:
            return
        self._notice_shown = True
        text = self._core.translate(
            "Some files of this folder are not used until you trust them: /trust, or `acp-agent "
            "trust {folder}`.",
            folder=trusted_folder(self._core.cwd),
        )
        await self._core.notify(NoticeShown(severity="info", title=text))


def _key(change: Change) -> tuple[str, ...]:
    return change.item.folder, *change.item.key, change.item.digest
