"""The gate: decides by mode, rule and remembered grant whether a call runs, is refused, or asks."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import assert_never
from urllib.parse import urlsplit

from acp_agent.permissions.access import (
    Access,
    Allow,
    Ask,
    Choice,
    CommandAccess,
    FetchAccess,
    Gate,
    McpAccess,
    Mode,
    NoAccess,
    ReadAccess,
    Refuse,
    Tier,
    Verdict,
    WriteAccess,
)
from acp_agent.permissions.choices import (
    Language,
    covers,
    for_commands,
    for_edits,
    for_host,
    for_tool,
    is_about,
    once,
    reason_in,
    texts_in,
)
from acp_agent.permissions.classify import Classified, classify
from acp_agent.permissions.command_grants import (
    is_covered,
    offer_for_line,
    refused_pattern,
    words_of,
)
from acp_agent.permissions.command_scope import Scope
from acp_agent.permissions.grants import GrantStore
from acp_agent.permissions.guarded_files import is_own, own_places, why_it_runs
from acp_agent.permissions.paths import Place, is_below
from acp_agent.workspace.git_repositories import GitRepositories

_OWN = Refuse(
    by="rule",
    why="this is acp-agent's own configuration or data, which no tool changes in any mode",
    advice="tell the user what to change",
)
_PLAN = Refuse(
    by="mode",
    why="the session is in plan mode, in which nothing is changed",
    advice="use tools that only read, finish your plan, and let the user choose another mode",
)


class PolicyGate(Gate):
    """The one gate. `judge` is quick enough for the event loop but where it judges a command."""

    def __init__(
        self,
        grants: GrantStore,
        *,
        language: Language = "en",
        home: str | None = None,
        own: Sequence[Path] = (),
    ) -> None:
        """Make a gate.

        Args:
            grants: what the user decided for good.
            language: of the buttons and warnings.
            home: the user's home folder; None takes the process's.
            own: our own files and the folders of them, which no call changes in any mode.
        """
        self._own = own_places(own)
        self._grants = grants
        self._language: Language = language
        self._texts = texts_in(language)
        self._home = os.path.realpath(home or Path.home())

    def judge(
        self,
        access: Access,
        *,
        mode: Mode,
        project: str,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Verdict:
        """Judge a call of a session in `mode` whose working folder is `project`.

        Git's look at the repositories of a command ends once `stopped` says so.
        """
        folder = os.path.realpath(project)
        match access:
            case NoAccess():
                return Allow(by="rule")
            case ReadAccess():
                return Allow(by="rule", why="reading in the session's folders is always allowed")
            case WriteAccess():
                return self._edit(access, mode, folder)
            case CommandAccess():
                return self._command(access, mode, folder, GitRepositories(stopped))
            case FetchAccess():
                return self._fetch(access, mode, folder)
            case McpAccess():
                return self._tool(access, mode, folder)
            case _:
                assert_never(access)

    def remember(self, choice: Choice) -> None:
        """Keep the grants of the button that the user pressed. Blocks while it writes.

        Raises:
            StoreError: they cannot be kept; the call itself may go on.
        """
        self._grants.add(choice.grants)

    # -- files

    def _edit(self, access: WriteAccess, mode: Mode, project: str) -> Verdict:
        if any(is_own(path, self._own, project) for path in access.paths):
            return _OWN
        if mode == "plan":
            return _PLAN
        grants = [grant for grant in self._grants.of(project) if grant.kind == "edit"]
        for grant in grants:
            if not grant.allow and any(is_below(p, [grant.pattern]) for p in access.paths):
                return _never(f"edits below {grant.pattern}")
        if mode == "full":
            return Allow(by="mode")
        asked = [os.path.join(project, name) for name in access.asked]  # noqa: PTH118 - as it is called
        warning = self._runs_by_itself([*access.paths, *asked], project)
        if warning:
            return Ask(choices=once(self._texts), warning=warning)
        if mode == "accept-edits":
            return Allow(by="mode", why="edits are accepted")
        allowed = [grant.pattern for grant in grants if grant.allow]
        if access.paths and all(is_below(path, allowed) for path in access.paths):
            return Allow(by="grant", why="edits below this folder are always allowed")
        return Ask(choices=for_edits(self._texts, project, _common_folder(access.paths, project)))

    def _runs_by_itself(self, paths: Sequence[str], project: str) -> str:
        """The warning about the first of the files that runs without being started."""
        for path in paths:
            why = why_it_runs(path)
            if why:
                shown = os.path.relpath(path, project) if is_below(path, [project]) else path
                reason = reason_in(self._language, why)
                return self._texts.runs_by_itself.format(
                    file=self._texts.quote.format(shown), reason=reason
                )
        return ""

    # -- commands

    def _command(
        self, access: CommandAccess, mode: Mode, project: str, repositories: GitRepositories
    ) -> Verdict:
        place = self._place(access, project, repositories)
        classified = classify(access.command, place)
        if classified.tier == "blocked":
            return Refuse(by="rule", why=f"this command is never run: {classified.reason}")
        if classified.tier == "read_only":
            return Allow(by="rule", why="the command only reads", only_reads=True)
        if mode == "plan":
            return _PLAN
        grants = [g for g in self._grants.of(project) if g.kind in {"command", "exact_command"}]
        never = refused_pattern(classified, [g.pattern for g in grants if not g.allow])
        if never:
            return _never(f"`{never}` commands here")
        if mode == "full":
            return Allow(by="mode")
        remembered = {
            Scope(words=words_of(grant.pattern), exact=grant.kind == "exact_command")
            for grant in grants
            if grant.allow
        }
        if is_covered(classified, place, remembered):
            return Allow(by="grant", why="these commands are always allowed in this project")
        return self._ask_for(classified, place, project)

    def _ask_for(self, classified: Classified, place: Place, project: str) -> Ask:
        if classified.tier == "destructive":
            reason = classified.reason_in(self._language)
            warning = self._texts.warning.format(reason=reason)
            return Ask(choices=once(self._texts), warning=warning, tier="destructive")
        offer = offer_for_line(classified, place)
        choices = for_commands(self._texts, project, allow=offer.allow, refuse=offer.refuse)
        return Ask(choices=choices, tier="standard")

    def _place(self, access: CommandAccess, project: str, repositories: GitRepositories) -> Place:
        cwd = os.path.realpath(access.cwd)
        roots = dict.fromkeys([project, cwd, *(os.path.realpath(root) for root in access.roots)])
        return Place(
            cwd=cwd,
            roots=tuple(roots),
            home=self._home,
            own=self._own,
            project=project,
            repositories=repositories,
        )

    # -- the network

    def _fetch(self, access: FetchAccess, mode: Mode, project: str) -> Verdict:
        host = host_of(access.url)
        grants = [
            grant
            for grant in self._grants.of(project)
            if grant.kind == "fetch" and grant.pattern == host
        ]
        if any(not grant.allow for grant in grants):
            return _never(f"requests to {host}")
        if mode == "full":
            return Allow(by="mode")
        if host and grants:
            return Allow(by="grant", why=f"requests to {host} are always allowed")
        if not host:
            return Ask(choices=once(self._texts))
        return Ask(choices=for_host(self._texts, project, host))

    # -- tools of MCP servers

    def _tool(self, access: McpAccess, mode: Mode, project: str) -> Verdict:
        grants = [
            grant
            for grant in self._grants.of(project)
            if grant.kind == "mcp" and is_about(grant.pattern, access)
        ]
        if any(not grant.allow and covers(grant.pattern, access) for grant in grants):
            return _never(f"{access.tool} of {access.server}")
        allowed = any(grant.allow and covers(grant.pattern, access) for grant in grants)
        # What the server says of its tool counts only where the user believes it.
        if mode == "plan" and not (allowed and access.read_only):
            return _PLAN
        if mode == "full":
            return Allow(by="mode")
        if allowed:
            return Allow(by="grant", why="the user always allows this tool as it is")
        warning = ""
        if any(grant.allow for grant in grants):
            warning = self._texts.changed_tool.format(tool=access.tool, server=access.server)
        return Ask(choices=for_tool(self._texts, project, access), warning=warning)


def explain(
    command: str, *, cwd: str, roots: Sequence[str] = (), home: str | None = None
) -> list[tuple[str, Tier, str]]:
    """Every command of a line with its tier and the reason for it.

    Args:
        command: the command line.
        cwd: the folder that it would run in.
        roots: the session's folders; `cwd` is one of them in any case.
        home: the user's home folder; None takes the process's.
    """
    real = os.path.realpath(cwd)
    place = Place(
        cwd=real,
        roots=(real, *(os.path.realpath(root) for root in roots)),
        home=os.path.realpath(home or Path.home()),
    )
    found = classify(command, place).findings
    return [(finding.command, finding.tier, finding.reason) for finding in found]


def host_of(url: str) -> str:
    """The host that a URL leads to, in ASCII, with its port where that is not the scheme's.

    Empty where the URL names none. A name in another script is written in its encoded form (RFC
    5890), so that it cannot pass for one that it looks like.
    """
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode("ascii").lower().rstrip(".")
        port = parts.port
    except (ValueError, UnicodeError):
        return ""
    if not host or not host.isprintable() or set(host) & set(" `/\\@"):
        return ""
    default = {"http": 80, "https": 443}.get(parts.scheme)
    shown = f"[{host}]" if ":" in host else host
    return shown if port in {None, default} else f"{shown}:{port}"


def _common_folder(paths: Sequence[str], project: str) -> str:
    folders = [str(Path(path).parent) for path in paths]
    return os.path.commonpath(folders) if folders else project


def _never(what: str) -> Refuse:
    """The refusal of what the user refused permanently, each to its reader."""
    model, user = f"the user never allows {what}", f"you never allow {what}"
    return Refuse(by="grant", why=model, shown=user)
