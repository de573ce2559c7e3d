"""The session as its hooks see it, the runner of its hooks, and changes that concern hooks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from acp_agent.config.hook_types import HookEvent
from acp_agent.content import JsonObject
from acp_agent.events import HookAnswered, NoticeShown
from acp_agent.extensions.definitions.locations import hook_files, project_hook_files
from acp_agent.hooks.event_fields import CONTEXT, LATER_CONTEXT
from acp_agent.hooks.permission_rules import AddedRule
from acp_agent.hooks.running import Confine, Helpers, HookRunner
from acp_agent.hooks.session_hooks import context_notice
from acp_agent.hooks.types import Hook
from acp_agent.permissions.access import Access, Mode
from acp_agent.platform.trusted_files import file_stamp
from acp_agent.session.core import SessionCore
from acp_agent.session.extensions import Definitions
from acp_agent.session.history.hook_transcript import TranscriptFile
from acp_agent.workspace.environment import command_environ
from acp_agent.workspace.scrub import scrub

if TYPE_CHECKING:
    from acp_agent.config.types import Config
    from acp_agent.sandbox.launch import Launch
    from acp_agent.sandbox.sandbox import Sandbox
    from acp_agent.workspace.workspace import Workspace

_MAX_SUBJECT = 1_000  # characters of an event in the journal


class CoreSession:
    """A session as its hooks see it (`acp_agent.hooks.event_fields.HookedSession`).

    Args:
        cwd: the folder of an agent that works in a worktree; None: the session's.
    """

    def __init__(self, core: SessionCore, cwd: Path | None = None) -> None:
        self._core = core
        self._folder = cwd
        self._transcript = _transcript_file(core, "transcript.jsonl")

    @property
    def id(self) -> str:
        """The id of the session."""
        return self._core.id

    @property
    def cwd(self) -> Path:
        """The folder of the session, or of an agent that works in another one."""
        return self._core.cwd if self._folder is None else self._folder

    @property
    def mode(self) -> Mode:
        """The permission mode."""
        return self._core.settings.mode

    @property
    def effort(self) -> str | None:
        """How much the model reasons; None if it has no levels."""
        return self._core.settings.thought_level

    async def transcript(self) -> str:
        """Bring the transcript up to date and return its path; "" if it cannot be written."""
        return await self._transcript.update(self._core.context)

    def fits(self, rule: str, access: Access) -> bool:
        """Return whether a call matches a permission rule."""
        denial = AddedRule("deny", rule, Hook(event="PreToolUse"))
        return _deciding_rule([denial], access, self.cwd, self._core.services.home) is not None

    async def verdict(self, rules: Sequence[AddedRule], access: Access) -> AddedRule | None:
        """Return the rule that decides about a call, the strictest first; None if none does."""
        cwd, home = self.cwd, self._core.services.home
        return await asyncio.to_thread(_deciding_rule, rules, access, cwd, home)

    async def notify(self, notice: NoticeShown) -> None:
        """Show a notice that is not a part of the conversation."""
        await self._core.notify(notice)

    async def record(self, answered: HookAnswered) -> None:
        """Write an answer of hooks to the journal."""
        subject = self._core.clean(answered.subject)[:_MAX_SUBJECT]
        await self._core.emit(replace(answered, subject=subject))

    async def add_context(self, text: str, *, later: bool = False) -> None:
        """Add a text for the model to the conversation; `later` if nothing waited for it."""
        title = LATER_CONTEXT if later else CONTEXT
        await self._core.emit(context_notice(scrub(text, self._core.secrets), title))

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the background, until the session ends at the latest."""
        self._core.background.spawn(work)


def agent_transcript(core: SessionCore, agent_id: str) -> TranscriptFile:
    """Return the transcript of the conversation of an agent that works for a session."""
    return _transcript_file(core, f"subagents/agent-{agent_id}.jsonl", of_agent=True)


def _transcript_file(core: SessionCore, name: str, *, of_agent: bool = False) -> TranscriptFile:
    return TranscriptFile(
        core.services.outputs / core.id / name,
        session=core.id,
        cwd=core.cwd,
        model=lambda: core.settings.model.id,
        secrets=lambda: core.secrets,
        of_agent=of_agent,
    )


def hook_runner(
    cwd: Path,
    config: Config,
    environ: Mapping[str, str],
    sandbox: Sandbox | None,
    helpers: Callable[[], Helpers | None] = lambda: None,
) -> HookRunner:
    """Return a runner for the hooks of a session in a folder.

    Args:
        helpers: returns the object that asks models and MCP servers; None outside a session.
    """
    visible = command_environ(environ, hide=config.key_variables)
    return HookRunner(cwd, visible, environ, _confine(sandbox), helpers)


def hooks_place(
    core: SessionCore, runner: HookRunner, workspace: Workspace
) -> tuple[CoreSession, HookRunner]:
    """Return the session and the runner of hooks for an agent that works in a worktree."""
    confine = _confine(workspace.processes.sandbox)
    return CoreSession(core, workspace.cwd), runner.in_folder(workspace.cwd, confine)


def _confine(sandbox: Sandbox | None) -> Confine | None:
    """Return what prepares the programs of hooks for a sandbox; None if there is none."""

    async def confine(
        argv: list[str], cwd: Path, environ: Mapping[str, str], writable: Sequence[str]
    ) -> Launch:
        from acp_agent.workspace.network import system_resolve  # noqa: PLC0415 - if it is confined

        assert sandbox is not None
        return await sandbox.launch(
            argv,
            cwd,
            environ,
            only_reads=False,
            exclusive=False,
            writable=writable,
            resolve=system_resolve,
        )

    return None if sandbox is None else confine


def _deciding_rule(
    rules: Sequence[AddedRule], access: Access, cwd: Path, home: Path
) -> AddedRule | None:
    """Return the rule by which a gate with these rules alone decides about a call."""
    from acp_agent.config.policy_types import RuleConfig  # noqa: PLC0415 - only for hooks with a rule
    from acp_agent.permissions.gate import PolicyGate  # noqa: PLC0415 - likewise
    from acp_agent.permissions.grants import GrantStore  # noqa: PLC0415 - likewise
    from acp_agent.permissions.policy.loading import Policies, make_rule  # noqa: PLC0415 - likewise
    from acp_agent.permissions.policy.rules import Source  # noqa: PLC0415 - likewise

    by_label = {}
    policy_rules = []
    for rule in rules:
        policy_rule = make_rule(rule.effect, RuleConfig(rule=rule.text), Source(file="a hook"))
        policy_rules.append(policy_rule)
        by_label[policy_rule.label] = rule
    gate = PolicyGate(GrantStore(Path(os.devnull)), home=str(home), policies=Policies(policy_rules))
    return by_label.get(gate.judge(access, mode="ask", project=str(cwd)).rule)


class SessionChanges:
    """What has changed in a session since the last call of each method."""

    def __init__(self, core: SessionCore, definitions: Definitions) -> None:
        self._core = core
        self._definitions = definitions
        self._stamps: dict[Path, tuple[int, int, int] | None] | None = None
        self._contents: dict[str, str] | None = None
        self._folders = (core.cwd, core.directories)

    def settings(self) -> list[str]:
        """Return the settings files that have changed. Blocks: reads the disk."""
        files = (*hook_files(self._core.services.home), *project_hook_files(self._core.cwd))
        stamps = {file: file_stamp(file) for file in files}
        previous, self._stamps = self._stamps, stamps
        if previous is None:
            return []
        return [str(file) for file in stamps if stamps[file] != previous.get(file)]

    def definitions(self) -> list[str]:
        """Return the files of skills and agents that have changed, are new, or are gone."""
        definitions = self._definitions
        contents = {str(skill.path): repr(skill) for skill in definitions.skills}
        contents |= {str(agent.path): repr(agent) for agent in definitions.agents}
        previous, self._contents = self._contents, contents
        if previous is None:
            return []
        return [
            path
            for path in dict.fromkeys((*previous, *contents))
            if previous.get(path) != contents.get(path)
        ]

    def folders(self) -> Iterator[tuple[HookEvent, JsonObject]]:
        """Yield an event and its fields for another working folder, and for each added folder."""
        (old_cwd, old_directories), cwd = self._folders, self._core.cwd
        self._folders = cwd, self._core.directories
        if cwd != old_cwd:
            yield "CwdChanged", {"old_cwd": str(old_cwd), "new_cwd": str(cwd)}
        for folder in self._core.directories:
            if folder not in old_directories:
                fields: JsonObject = {"directory": str(folder), "source": "register_repo_root"}
                yield "DirectoryAdded", fields
