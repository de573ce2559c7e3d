"""Find a session's hooks before each turn, and run them for prompts and the end of turns."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from acp_agent.agent.resources import TurnResources
from acp_agent.content import ContentBlock, JsonObject, TextBlock
from acp_agent.errors import AuthRequiredError, ModelError
from acp_agent.events import NoticeShown, StopReason
from acp_agent.models.base import AnswerText, ModelSide
from acp_agent.session.core import SessionCore
from acp_agent.workspace.child_process import wait_at_most
from acp_agent.workspace.scrub import scrub

if TYPE_CHECKING:  # only for sessions with hooks
    from acp_agent.agent.context import Context
    from acp_agent.config.types import Config
    from acp_agent.hooks.running import Helpers, HookRunner
    from acp_agent.hooks.session_hooks import SessionHooks
    from acp_agent.hooks.sources import FoundHooks
    from acp_agent.hooks.types import Hook, HookAnswer
    from acp_agent.permissions.access import Access
    from acp_agent.sandbox.launch import Launch
    from acp_agent.sandbox.sandbox import Sandbox
    from acp_agent.session.hook_helpers import Verifier
    from acp_agent.session.mcp.servers import McpServers
    from acp_agent.session.turns.toolset import WorkspaceTools

MAX_ROUNDS = 5  # in which hooks may make the model continue at the end of a turn
_END_SECONDS = 5.0  # for SessionEnd hooks


class HookSource:
    """Finds the hooks of a session and runs them.

    Args:
        core: the session.
        servers: returns its MCP servers.
    """

    def __init__(self, core: SessionCore, servers: Callable[[], McpServers | None]) -> None:
        self._core = core
        self._servers = servers
        self._turn: TurnResources | None = None
        self._delegation: Callable[[], Verifier] | None = None
        self._hook_set: FoundHooks | None = None
        self._hooks: SessionHooks | None = None
        self._refused: tuple[Hook, ...] | None = None  # hooks that a ConfigChange hook refused
        self._reported: set[tuple[str, str]] = set()
        self._started = False
        self._start_answer: HookAnswer | None = None  # of SessionStart hooks, not yet sent

    def use(self, turn: TurnResources, delegation: Callable[[], Verifier]) -> None:
        """Set the turn in which hooks ask models and servers, and what makes its agents."""
        self._turn, self._delegation = turn, delegation

    async def current(self, tools: WorkspaceTools) -> SessionHooks | None:
        """Return the current hooks; None if there are none."""
        hook_set = await asyncio.to_thread(self._find)
        await self._report(hook_set)
        if hook_set != self._hook_set and not await self._is_change_refused(hook_set):
            self._hook_set = hook_set
            self._hooks = self._make(hook_set, tools) if hook_set.hooks else None
        self._share()
        return self._hooks

    def _share(self) -> None:
        """Give the hooks to the session's MCP servers, which ask them before the user."""
        servers = self._servers()
        if servers is not None:
            servers.hooks = self._hooks

    async def _is_change_refused(self, hook_set: FoundHooks) -> bool:
        """Tell the current hooks which files with hooks have changed; return whether one objects.

        A change that is refused does not take effect while the session is open.
        """
        if self._hooks is None or self._hook_set is None or hook_set.hooks == self._refused:
            return hook_set.hooks == self._refused
        old, new = set(map(repr, self._hook_set.hooks)), set(map(repr, hook_set.hooks))
        changed = [
            hook for hook in (*self._hook_set.hooks, *hook_set.hooks) if repr(hook) in old ^ new
        ]
        for path in dict.fromkeys(hook.source for hook in changed):
            source = self._settings_kind(path)
            fields: JsonObject = {"source": source, "file_path": path}
            answer = await self._hooks.fire("ConfigChange", fields, matched=source)
            if answer.blocked:
                self._refused = hook_set.hooks
                await self._tell_user("A hook refused changes of hooks.", answer.reason)
                return True
        return False

    def _settings_kind(self, path: str) -> str:
        if Path(path).name == "settings.local.json":
            return "local_settings"
        user_folders = (self._core.services.home, self._core.services.user_folder)
        in_project = Path(path).is_relative_to(self._core.cwd)
        is_own = not in_project and any(
            Path(path).is_relative_to(folder) for folder in user_folders
        )
        return "user_settings" if is_own else "project_settings"

    async def _tell_user(self, title: str, text: str) -> None:
        text = scrub(text, self._core.secrets)
        await self._core.notify(NoticeShown(severity="info", title=title, description=text))

    def _find(self) -> FoundHooks:
        from acp_agent.hooks.sources import find_hooks  # noqa: PLC0415 - if there may be any

        services = self._core.services
        hook_set = find_hooks(
            services.config.hooks,
            config_file=str(services.user_folder / "config.toml"),
            home=services.home,
            folders=services.definition_folders(self._core.cwd),
            cwd=self._core.cwd,
            confine_own=services.config.sandbox.hooks,
            trusts=services.trust().trusts,
        )
        plugins = services.plugins.load(services.definition_folders(self._core.cwd))
        return (
            hook_set
            if plugins is None
            else replace(hook_set, hooks=(*hook_set.hooks, *plugins.hooks()))
        )

    async def _report(self, hook_set: FoundHooks) -> None:
        """Report each problem with a file of hooks once."""
        new_problems = [
            problem
            for problem in hook_set.problems
            if (problem.path, problem.why) not in self._reported
        ]
        if not new_problems:
            return
        self._reported |= {(problem.path, problem.why) for problem in new_problems}
        lines = [
            f"{problem.path}: {self._core.translate.rendered(problem.why)}"
            for problem in new_problems[:5]
        ]
        # Not journaled: it concerns the current files, not the conversation.
        await self._core.notify(
            NoticeShown(
                severity="warning", title="Some hooks are not used.", description="\n".join(lines)
            )
        )

    def _make(self, hook_set: FoundHooks, tools: WorkspaceTools) -> SessionHooks:
        from acp_agent.hooks.session_hooks import SessionHooks  # noqa: PLC0415 - if there are any

        core, services = self._core, self._core.services
        sandbox = tools.workspace.processes.sandbox

        def spawn(work: Coroutine[Any, Any, None]) -> None:
            core.background.spawn(work)

        def helpers() -> Helpers | None:
            from acp_agent.session.hook_helpers import SessionHelpers  # noqa: PLC0415 - only if one asks

            turn, delegation = self._turn, self._delegation
            if turn is None or delegation is None:
                return None
            return SessionHelpers(core, turn, self._servers, delegation)

        return SessionHooks(
            hook_set.hooks,
            hook_runner(core.cwd, services.config, services.environ, sandbox, helpers),
            session=core.id,
            cwd=core.cwd,
            mode=lambda: core.settings.mode,
            fits=lambda rule, access: _fits(rule, access, core.cwd, services.home),
            notify=core.notify,
            spawn=spawn,
            variables=tools.workspace.processes.variables,
        )

    async def run_turn_hooks(
        self, turn: TurnResources, content: tuple[ContentBlock, ...], *, is_new: bool
    ) -> str:
        """Run the hooks for a prompt that begins a turn, and the session's hooks before the first.

        Their context is added to the conversation.

        Args:
            turn: the turn.
            content: the prompt.
            is_new: whether the session has no prompt before it.

        Returns:
            Why a hook refused the prompt; "" if none did.
        """
        hooks = turn.hooks
        self._share()
        if hooks is None:
            return ""
        if not self._started:
            self._started = True
            source = "startup" if is_new else "resume"
            fields = {"source": source, "model": turn.models.current.ref}
            self._start_answer = await hooks.fire("SessionStart", fields, matched=source)
            await self._report_instructions(hooks)
        reason = await self.run_prompt_hooks(hooks, content)
        if not reason and self._start_answer is not None:  # the model never sees a refused turn
            await self._add_context(self._start_answer)
            self._start_answer = None
        return reason

    async def _report_instructions(self, hooks: SessionHooks) -> None:
        """Report the instruction files in the system prompt to hooks."""
        if not hooks.has("InstructionsLoaded"):
            return
        from acp_agent.session.turns.system_prompt import find_instructions  # noqa: PLC0415 - rarely

        for instruction in (await find_instructions(self._core)).entries:
            is_own = instruction.path.is_relative_to(self._core.services.user_folder)
            kind = "Local" if instruction.path.name.endswith(".local.md") else "Project"
            kind = "User" if is_own else kind
            await hooks.report_instructions(str(instruction.path), kind, "session_start", "")

    async def run_prompt_hooks(self, hooks: SessionHooks, content: tuple[ContentBlock, ...]) -> str:
        """Run the hooks for a prompt; return why one refused it, or "" if none did."""
        prompt = "\n".join(block.text for block in content if isinstance(block, TextBlock))
        await hooks.report_files()
        answers = [await hooks.fire("UserPromptSubmit", {"prompt": prompt, "source": "user"})]
        name, _, arguments = prompt.removeprefix("/").partition(" ")
        if prompt.startswith("/") and not answers[0].blocked:
            fields: JsonObject = {
                "expansion_type": "slash_command",
                "command_name": name,
                "command_args": arguments,
                "prompt": prompt,
            }
            answers.append(await hooks.fire("UserPromptExpansion", fields, matched=name))
        for answer in answers:
            if answer.blocked or answer.stop:
                reason = scrub(answer.reason, self._core.secrets) or "it gives no reason"
                return self._core.translate("A hook refused this prompt: {why}", why=reason)
        for answer in answers:
            await self._add_context(answer)
        return ""

    async def run_stop_hooks(
        self,
        turn: TurnResources,
        stop: StopReason,
        run: Callable[[TurnResources], Awaitable[StopReason]],
    ) -> StopReason:
        """Run the hooks at the end of a turn, and the model again while a hook asks for that.

        Args:
            turn: the turn.
            stop: why the model stopped.
            run: runs the model again.

        Returns:
            Why the model stopped the last time.
        """
        hooks = turn.hooks
        for round_number in range(MAX_ROUNDS):
            if hooks is None or stop != "end_turn":
                break
            await hooks.report_files()
            fields: JsonObject = {"stop_hook_active": round_number > 0}
            if answer_text := last_answer(turn.journal.context):
                fields["last_assistant_message"] = self._core.clean(answer_text)
            answer = await hooks.fire("Stop", fields)
            await self._add_context(answer)
            if not answer.blocked or answer.stop:
                break
            await self._add_notice("A hook has the model go on.", answer.reason)
            stop = await run(turn)
        return stop

    async def run_failure_hooks(self, turn: TurnResources, error: Exception) -> None:
        """Run the hooks for a turn that ended with an error."""
        if turn.hooks is not None:
            kind, details = _error_kind(error), scrub(str(error), self._core.secrets)
            fields: JsonObject = {"error": kind, "error_details": details}
            if text := last_answer(turn.journal.context):
                fields["last_assistant_message"] = self._core.clean(text)
            await turn.hooks.fire("StopFailure", fields, matched=kind)

    async def _add_context(self, answer: HookAnswer) -> None:
        if answer.context:
            await self._add_notice("A hook told the model something.", answer.context)

    async def _add_notice(self, title: str, text: str) -> None:
        from acp_agent.hooks.session_hooks import context_notice  # noqa: PLC0415 - if there are any

        await self._core.emit(context_notice(scrub(text, self._core.secrets), title))

    async def aclose(self) -> None:
        """Run the hooks for the end of the session; waits a few seconds at most."""
        if self._hooks is not None and self._started:
            ending = self._hooks.fire("SessionEnd", {"reason": "other"}, matched="other")
            await wait_at_most(ending, _END_SECONDS)


def hook_runner(
    cwd: Path,
    config: Config,
    environ: Mapping[str, str],
    sandbox: Sandbox | None,
    helpers: Callable[[], Helpers | None] = lambda: None,
) -> HookRunner:
    """Return a runner for the hooks of a session in a folder.

    Args:
        cwd: the folder.
        config: the user's configuration.
        environ: the user's environment.
        sandbox: the session's sandbox; None if there is none.
        helpers: returns the object that asks models and MCP servers; None outside a session.
    """
    from acp_agent.hooks.running import HookRunner  # noqa: PLC0415 - if there are any
    from acp_agent.workspace.environment import command_environ  # noqa: PLC0415 - likewise

    async def confine(
        argv: list[str], cwd: Path, environ: Mapping[str, str], writable: Sequence[str]
    ) -> Launch:
        from acp_agent.workspace.network import system_resolve  # noqa: PLC0415 - likewise

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

    keys = [provider.api_key_env for provider in config.providers.values() if provider.api_key_env]
    return HookRunner(
        cwd,
        command_environ(environ, hide=keys),
        environ,
        None if sandbox is None else confine,
        helpers,
    )


def last_answer(context: Context) -> str:
    """Return the text of the model's last answer; "" if there is none."""
    for entry in reversed(context.entries):
        if isinstance(entry.message, ModelSide):
            return "".join(
                part.text for part in entry.message.parts if isinstance(part, AnswerText)
            )
    return ""


# The names of errors in the contract, by the status of HTTP.
_STATUS_ERRORS = {
    400: "invalid_request",
    401: "authentication_failed",
    402: "billing_error",
    403: "authentication_failed",
    404: "model_not_found",
    429: "rate_limit",
    503: "overloaded",
    529: "overloaded",
}


def _error_kind(error: Exception) -> str:
    """Return the name of an error in the contract."""
    if isinstance(error, AuthRequiredError):
        return "authentication_failed"
    status = error.status if isinstance(error, ModelError) else None
    if status is None:
        return "unknown"
    return _STATUS_ERRORS.get(status) or ("server_error" if status >= 500 else "unknown")


def _fits(rule: str, access: Access, cwd: Path, home: Path) -> bool:
    """Return whether a call matches a rule: a gate with this deny rule alone would refuse it."""
    from acp_agent.config.policy_types import RuleConfig  # noqa: PLC0415 - only for hooks with a rule
    from acp_agent.permissions.access import Refuse  # noqa: PLC0415 - likewise
    from acp_agent.permissions.gate import PolicyGate  # noqa: PLC0415 - likewise
    from acp_agent.permissions.grants import GrantStore  # noqa: PLC0415 - likewise
    from acp_agent.permissions.policy.loading import Policies, make_rule  # noqa: PLC0415 - likewise
    from acp_agent.permissions.policy.rules import Source  # noqa: PLC0415 - likewise

    deny_rule = make_rule("deny", RuleConfig(rule=rule), Source(file="a hook"))
    gate = PolicyGate(GrantStore(Path(os.devnull)), home=str(home), policies=Policies([deny_rule]))
    verdict = gate.judge(access, mode="full", project=str(cwd))
    return isinstance(verdict, Refuse) and verdict.rule == deny_rule.label
