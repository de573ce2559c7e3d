"""The gate decides by mode, rules and remembered grants whether a call runs, is refused or asks."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import assert_never

from msgspec.structs import replace

from acp_agent.permissions.access import (
    Access,
    Allow,
    Ask,
    Choice,
    CommandAccess,
    FetchAccess,
    Gate,
    Grant,
    McpAccess,
    Mode,
    NoAccess,
    NoteAccess,
    ReadAccess,
    Refuse,
    Verdict,
    WriteAccess,
)
from acp_agent.permissions.choices import (
    Language,
    command_choices,
    edit_choices,
    gate_texts,
    matches_tool,
    mcp_choices,
    names_tool,
    once_choices,
    translate_reason,
)
from acp_agent.permissions.classify import Classified, classify
from acp_agent.permissions.command_grants import (
    find_covering_scopes,
    find_refusing_grant,
    offer_for_line,
    pattern_words,
)
from acp_agent.permissions.command_scope import Scope
from acp_agent.permissions.grants import GrantStore
from acp_agent.permissions.guarded_files import (
    auto_run_reason,
    is_guarded,
    is_program_file,
    resolve_program_files,
    steers_agents,
)
from acp_agent.permissions.hosts import is_documentation
from acp_agent.permissions.mode_refusals import READ_ONLY_REFUSALS, edit_refusal, judge_note
from acp_agent.permissions.paths import CommandContext, is_below
from acp_agent.permissions.policy.commands import LineMatch
from acp_agent.permissions.policy.loading import Policies
from acp_agent.permissions.policy.path_patterns import Folders
from acp_agent.permissions.policy.policy import Situation
from acp_agent.permissions.policy.rules import PolicyRule
from acp_agent.permissions.policy.verdicts import RuleSet, never_refusal
from acp_agent.permissions.web_requests import judge_request
from acp_agent.workspace.git_repositories import GitRepositories

_PROGRAM_FILES_REFUSAL = Refuse(
    by="rule",
    why="this is acp-agent's own configuration or data, which no tool changes in any mode",
    advice="tell the user what to change",
)


class PolicyGate(Gate):
    """The gate for all tool calls. `judge` blocks only for commands; judge those in a thread."""

    repositories: Callable[[Callable[[], bool]], GitRepositories] = GitRepositories

    def __init__(
        self,
        grants: GrantStore,
        *,
        language: Language = "en",
        home: str | None = None,
        program_files: Sequence[Path] = (),
        policies: Policies | None = None,
        draft_folder: str = "drafts",
    ) -> None:
        """Make a gate.

        Args:
            grants: the permissions that the user granted or refused permanently.
            home: the user's home folder; None uses that of the process.
            program_files: acp-agent's own files and folders, which no call may change in any mode.
            policies: the rules of the user and of projects; None means no rules of the user.
            draft_folder: where draft mode writes, relative to the session's folder.
        """
        self._policies = policies or Policies()
        self._draft_folder = draft_folder
        self._program_files = resolve_program_files(program_files)
        self._grants = grants
        self._language: Language = language
        self._texts = gate_texts(language)
        self.invisible_warning = self._texts.invisible_warning
        self._home = os.path.realpath(home or Path.home())

    def judge(
        self,
        access: Access,
        *,
        mode: Mode,
        project: str,
        agent: str = "",
        stopped: Callable[[], bool] = lambda: False,
    ) -> Verdict:
        """Judge a call of a session in `mode` whose working folder is `project`.

        The inspection of git repositories ends as soon as `stopped` returns true.
        """
        rules = self._rules(os.path.realpath(project), mode, agent)
        match access:
            case NoAccess():
                return rules.named(access)
            case ReadAccess():
                return self._judge_read(access, rules)
            case WriteAccess():
                return self._judge_edit(access, rules)
            case CommandAccess():
                return self._judge_command(access, self.repositories(stopped), rules)
            case FetchAccess():
                return judge_request(access, rules, self._remembered(rules, "fetch"))
            case McpAccess():
                return self._judge_tool(access, rules)
            case NoteAccess():
                return judge_note(access, mode, self._texts)
            case _:
                assert_never(access)

    def _rules(self, folder: str, mode: Mode, agent: str) -> RuleSet:
        situation = Situation(mode=mode, agent=agent, folders=Folders(folder, self._home))
        return RuleSet(self._policies.for_project(folder), situation, self._texts)

    def _remembered(self, rules: RuleSet, *kinds: str) -> list[Grant]:
        """Return the user's grants of some kinds for the folder of the rules."""
        grants = self._grants.for_project(rules.situation.folders.project)
        return [grant for grant in grants if grant.kind in kinds]

    def refused_reads(self, paths: Sequence[str], *, mode: Mode, project: str) -> Mapping[str, str]:
        """Return the files that rules refuse or ask about; a search cannot ask about each file."""
        return self._rules(os.path.realpath(project), mode, "").refused_reads(paths)

    def remember(self, choice: Choice) -> None:
        """Save the grants of the button that the user pressed. Blocks while it writes.

        Raises:
            StoreError: the grants cannot be saved; the call itself may proceed.
        """
        self._grants.add(choice.grants)

    # -- files

    def _judge_read(self, access: ReadAccess, rules: RuleSet) -> Verdict:
        rule = rules.files("read", access.paths, access.requested_names)
        return rules.strict(rule) or Allow(
            by="rule", why="reading in the session's folders is always allowed"
        )

    def _judge_edit(self, access: WriteAccess, rules: RuleSet) -> Verdict:
        mode, project = rules.situation.mode, rules.situation.folders.project
        if any(is_program_file(path, self._program_files, project) for path in access.paths):
            return _PROGRAM_FILES_REFUSAL
        rule = rules.files("edit", access.paths, access.requested_names)
        strict = rules.strict(rule)
        refused = edit_refusal(access, mode, project, self._draft_folder)
        if isinstance(strict, Refuse):
            refused = strict
        if refused is not None:
            return refused
        grants = self._remembered(rules, "edit")
        for grant in grants:
            if not grant.allow and any(is_below(p, [grant.pattern]) for p in access.paths):
                return never_refusal(f"edits below {grant.pattern}", grant)
        if strict is not None:
            return strict
        requested_paths = [os.path.join(project, name) for name in access.requested_names]  # noqa: PTH118 - as it is called
        if mode == "full" and not self._full_mode_asks(access, requested_paths, project, rule):
            return Allow(by="mode")
        warning = self._auto_run_warning([*access.paths, *requested_paths], project)
        if warning:
            return Ask(choices=once_choices(self._texts), warning=warning)
        if rule is not None:
            return rules.allow(rule)
        if mode in {"accept-edits", "draft"} and not access.deletes:
            return Allow(by="mode", why="edits are accepted")
        allowed = [grant for grant in grants if grant.allow]
        paths = () if access.deletes else access.paths
        if paths and all(is_below(path, [grant.pattern for grant in allowed]) for path in paths):
            why = "edits below this folder are always allowed"
            deciding = [next(g for g in allowed if is_below(path, [g.pattern])) for path in paths]
            labels = ", ".join(dict.fromkeys(grant.label for grant in deciding))
            return Allow(by="grant", why=why, rule=labels)
        # Each deletion is asked about, as that of a command is.
        once = once_choices(self._texts) if access.deletes else ()
        return Ask(choices=once or edit_choices(self._texts, project, access.paths))

    def _full_mode_asks(
        self, access: WriteAccess, requested: Sequence[str], project: str, rule: PolicyRule | None
    ) -> bool:
        """Return whether full mode asks about an edit; `requested` are absolute paths.

        A file that steers agents is changed without a question only if the user named it, in the
        session or in a rule that allows it: a file or a page may have told the model what to write.
        """
        files = (*access.paths, *requested)
        if any(is_guarded(path, project) for path in files):
            return True
        user_named = access.user_named or (
            rule is not None and steers_agents(f"/{rule.pattern}", "")
        )
        return not user_named and any(steers_agents(path, project) for path in files)

    def _auto_run_warning(self, paths: Sequence[str], project: str) -> str:
        """Return a warning about the first of the files that runs automatically."""
        for path in paths:
            why = auto_run_reason(path)
            if why:
                file = os.path.relpath(path, project) if is_below(path, [project]) else path
                reason = translate_reason(self._language, why)
                return self._texts.runs_by_itself.format(
                    file=self._texts.quote.format(file), reason=reason
                )
        return ""

    # -- commands

    def _judge_command(
        self, access: CommandAccess, repositories: GitRepositories, rules: RuleSet
    ) -> Verdict:
        context = self._context(access, rules.situation.folders.project, repositories)
        classified = classify(access.command, context)
        warning = rules.warn_beyond_sandbox(access)
        verdict = self._judge_line(classified, context, rules, warning)
        undoable = access.reversible and classified.tier == "standard" and not warning
        if undoable and isinstance(verdict, Ask) and not verdict.rule:
            verdict = rules.confined(access, verdict, self._remembered(rules, "confined"))
        return replace(rules.in_background(access, verdict), tier=classified.tier)

    def _judge_line(
        self, classified: Classified, context: CommandContext, rules: RuleSet, warning: str
    ) -> Verdict:
        """Judge a line; `warning` is the warning about access beyond the sandbox, or ""."""
        mode = rules.situation.mode
        if classified.tier == "blocked":
            return Refuse(by="rule", why=f"this command is never run: {classified.reason}")
        line = self._match_rules(classified, context, rules)
        strict = rules.strict(line.deny or line.ask)
        if isinstance(strict, Refuse):
            return strict
        only_reads = classified.tier == "read_only" and not warning
        if only_reads and strict is None:
            return Allow(by="rule", why="the command only reads", only_reads=True)
        if mode in READ_ONLY_REFUSALS and not only_reads:
            return READ_ONLY_REFUSALS[mode]
        grants = self._remembered(rules, "command", "exact_command")
        refused = find_refusing_grant(classified, [grant for grant in grants if not grant.allow])
        if refused is not None:
            return never_refusal(f"`{refused.pattern}` commands here", refused)
        danger = ""
        if classified.tier == "destructive":
            reason = classified.translate_reason(self._language)
            danger = self._texts.warning.format(reason=reason)
        if warning:
            strict = rules.ask_beyond_sandbox(warning, strict, danger)
        if strict is not None:
            return strict
        if mode == "full":
            return Allow(by="mode")
        if line.allow is not None:
            return rules.allow(line.allow)
        remembered = {
            Scope(words=pattern_words(grant.pattern), exact=grant.kind == "exact_command"): grant
            for grant in grants
            if grant.allow
        }
        covered = find_covering_scopes(line.without_allowed(classified), context, remembered)
        if covered is not None:
            why = "these commands are always allowed in this project"
            labels = ", ".join(remembered[scope].label for scope in covered)
            return Allow(by="grant", why=why, rule=labels)
        choices = once_choices(self._texts)
        if not danger:
            offer = offer_for_line(classified, context)
            choices = command_choices(
                self._texts, context.project, allow=offer.allow, refuse=offer.refuse
            )
        return Ask(choices=choices, warning=danger)

    def _match_rules(
        self, classified: Classified, context: CommandContext, rules: RuleSet
    ) -> LineMatch:
        edits = self._remembered(rules, "edit")
        return rules.line(
            classified, context, may_edit=lambda path: self._may_edit(path, rules, edits)
        )

    def examine(
        self, access: CommandAccess, *, mode: Mode, project: str, agent: str = ""
    ) -> tuple[Classified, LineMatch]:
        """Return the tiers of a line's commands and what the rules say about each; see `judge`."""
        folder = os.path.realpath(project)
        context = self._context(access, folder, self.repositories(lambda: False))
        classified = classify(access.command, context)
        return classified, self._match_rules(classified, context, self._rules(folder, mode, agent))

    def _may_edit(self, path: str, rules: RuleSet, edits: Sequence[Grant]) -> bool:
        """Return whether a command may write a file, by its resolved path, without a question."""
        project = rules.situation.folders.project
        if auto_run_reason(path) or is_program_file(path, self._program_files, project):
            return False
        rule = rules.files("edit", [path], ())
        if rule is not None:
            return rule.effect == "allow"
        if any(is_below(path, [grant.pattern]) for grant in edits if not grant.allow):
            return False
        accepts_edits = rules.situation.mode == "accept-edits"
        return (accepts_edits and is_below(path, [project])) or any(
            is_below(path, [grant.pattern]) for grant in edits
        )

    def _context(
        self, access: CommandAccess, project: str, repositories: GitRepositories
    ) -> CommandContext:
        cwd = project if access.cwd == project else os.path.realpath(access.cwd)
        roots = dict.fromkeys([project, cwd, *(os.path.realpath(root) for root in access.roots)])
        return CommandContext(
            cwd=cwd,
            roots=tuple(roots),
            home=self._home,
            program_files=self._program_files,
            project=project,
            repositories=repositories,
        )

    # -- tools of MCP servers

    def _judge_tool(self, access: McpAccess, rules: RuleSet) -> Verdict:
        mode, project = rules.situation.mode, rules.situation.folders.project
        rule = rules.tool(access)
        strict = rules.strict(rule)
        if isinstance(strict, Refuse):
            return strict
        grants = [
            grant for grant in self._remembered(rules, "mcp") if names_tool(grant.pattern, access)
        ]
        matching = [grant for grant in grants if matches_tool(grant.pattern, access)]
        refused = next((grant for grant in matching if not grant.allow), None)
        if refused is not None:
            return never_refusal(f"{access.tool} of {access.server}", refused)
        granted = matching[0] if matching else None
        allowed = granted is not None or (rule is not None and rule.effect == "allow")
        # The server's own `read_only` counts only for a tool that the user allows.
        if mode in READ_ONLY_REFUSALS and not (allowed and access.read_only):
            return READ_ONLY_REFUSALS[mode]
        if strict is not None:
            return strict
        unnamed = [url for url in access.unnamed if not is_documentation(url)]
        if mode == "full" and not unnamed:
            return Allow(by="mode")
        if rule is not None:
            return rules.allow(rule)
        if granted is not None:
            why = "the user always allows this tool as it is"
            return Allow(by="grant", why=why, rule=granted.label)
        warning = rules.unnamed(unnamed) if mode == "full" else ""
        if not warning and any(grant.allow for grant in grants):
            warning = self._texts.changed_tool.format(tool=access.tool, server=access.server)
        return Ask(choices=mcp_choices(self._texts, project, access), warning=warning)
