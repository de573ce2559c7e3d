"""Find a session's hooks before each turn, and run them for prompts and the end of turns."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from acp_agent.agent.resources import TurnResources
from acp_agent.content import ContentBlock, JsonObject, TextBlock
from acp_agent.errors import AuthRequiredError, ModelError
from acp_agent.events import NoticeShown, StopReason, TitleChanged
from acp_agent.session.core import SessionCore
from acp_agent.session.extensions import Extensions
from acp_agent.session.hook_session import SessionChanges
from acp_agent.tools.quoting import first_line
from acp_agent.workspace.child_process import wait_at_most
from acp_agent.workspace.environment import leads_programs
from acp_agent.workspace.scrub import scrub

if TYPE_CHECKING:  # only for sessions with hooks
    from acp_agent.hooks.running import Helpers
    from acp_agent.hooks.session_hooks import SessionHooks
    from acp_agent.hooks.sources import FoundHooks
    from acp_agent.hooks.types import Hook, HookAnswer
    from acp_agent.session.hook_helpers import Verifier
    from acp_agent.session.turns.toolset import WorkspaceTools

MAX_ROUNDS = 5  # in which hooks may make the model continue at the end of a turn
_MAX_COMMAND = 1_000  # characters of a command in an event
_END_SECONDS = 5.0  # for SessionEnd hooks
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


class HookSource:
    """Finds the hooks of a session and runs them.

    Args:
        extensions: its MCP servers, skills and agents.
    """

    def __init__(self, core: SessionCore, extensions: Extensions) -> None:
        self._core = core
        self._extensions = extensions
        self._turn: TurnResources | None = None
        self._delegation: Callable[[], Verifier] | None = None
        self._hook_set: FoundHooks | None = None
        self._hooks: SessionHooks | None = None
        self._tools: WorkspaceTools | None = None  # whose sandbox and variables the hooks use
        self._refused: tuple[Hook, ...] | None = None  # hooks that a ConfigChange hook refused
        self._changes = SessionChanges(core, extensions.definitions)
        self._reported: set[tuple[str, str]] = set()
        self._started = False
        self._start_answer: HookAnswer | None = None  # of SessionStart hooks, not yet sent

    def use(self, turn: TurnResources, delegation: Callable[[], Verifier]) -> None:
        """Set the turn in which hooks ask models and servers, and what makes its agents."""
        self._turn, self._delegation = turn, delegation

    async def current(self, tools: WorkspaceTools) -> SessionHooks | None:
        """Return the current hooks; None if there are none."""
        hook_set = await asyncio.to_thread(self.find)
        await self._report(hook_set)
        changed = hook_set != self._hook_set
        if self._hooks is not None and await self._is_refused(hook_set):
            changed = False
        elif changed:
            self._hook_set = hook_set
        if changed or tools is not self._tools:
            if self._tools is not None:  # commands keep the variables that hooks have set
                set_before = self._tools.workspace.processes.variables
                for name, value in set_before.items():
                    tools.workspace.processes.variables.setdefault(name, value)
            self._tools = tools
            if self._hooks is None:
                await asyncio.to_thread(self._changes.settings)  # later ones are changes
            self._hooks = self._make(tools)
        self._share()
        return self._hooks

    def _share(self) -> None:
        """Give the hooks to the session's MCP servers, which ask them before the user."""
        if self._extensions.mcp is not None:
            self._extensions.mcp.hooks = self._hooks

    async def _is_refused(self, hook_set: FoundHooks) -> bool:
        """Tell the current hooks which settings have changed; return whether one refuses new hooks.

        New hooks that are refused do not take effect while the session is open.
        """
        assert self._hooks is not None
        if self._hooks.has("ConfigChange"):
            current_hooks = () if self._hook_set is None else self._hook_set.hooks
            old, new = set(map(repr, current_hooks)), set(map(repr, hook_set.hooks))
            changed = [
                hook.source for hook in (*current_hooks, *hook_set.hooks) if repr(hook) in old ^ new
            ]
            files = await asyncio.to_thread(self._changes.settings)
            if hook_set.hooks == self._refused:
                changed = []
            for path in dict.fromkeys((*changed, *files)):
                answer = await self._report_change(self._hooks, self._settings_kind(path), path)
                if answer.blocked and hook_set.hooks not in (current_hooks, self._refused):
                    self._refused = hook_set.hooks
                    title, why = "A hook refused changes of hooks.", self._core.clean(answer.reason)
                    await self._core.notify(
                        NoticeShown(severity="info", title=title, description=why)
                    )
        return hook_set.hooks == self._refused

    @staticmethod
    async def _report_change(hooks: SessionHooks, source: str, path: str) -> HookAnswer:
        fields: JsonObject = {"source": source, "file_path": path}
        return await hooks.fire("ConfigChange", fields, matched=source)

    def _settings_kind(self, path: str) -> str:
        if Path(path).name == "settings.local.json":
            return "local_settings"
        user_folders = (self._core.services.home, self._core.services.user_folder)
        in_project = Path(path).is_relative_to(self._core.cwd)
        is_own = not in_project and any(
            Path(path).is_relative_to(folder) for folder in user_folders
        )
        return "user_settings" if is_own else "project_settings"

    def find(self) -> FoundHooks:
        """Return the hooks of the current files. Blocks: reads them."""
        from acp_agent.hooks.sources import FoundHooks, find_hooks  # noqa: PLC0415 - if there may be any

        services = self._core.services
        if services.recorded_hooks is not None:
            return FoundHooks(hooks=tuple(services.recorded_hooks.hooks))
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

    def _make(self, tools: WorkspaceTools) -> SessionHooks | None:
        hooks = () if self._hook_set is None else self._hook_set.hooks
        if self._hooks is None and not hooks and not self._extensions.definitions.any_hooks:
            return None

        from acp_agent.hooks.session_hooks import SessionHooks  # noqa: PLC0415 - if there are any
        from acp_agent.session.hook_session import CoreSession, hook_runner  # noqa: PLC0415 - likewise

        core, services = self._core, self._core.services
        sandbox = tools.workspace.processes.sandbox

        def helpers() -> Helpers | None:
            from acp_agent.session.hook_helpers import SessionHelpers  # noqa: PLC0415 - only if one asks

            turn, delegation = self._turn, self._delegation
            if turn is None or delegation is None:
                return None
            return SessionHelpers(core, turn, lambda: self._extensions.mcp, delegation)

        # Hooks of the user may run unconfined, so a project does not lead their programs anywhere.
        environ = dict(services.environ) | {
            name: value
            for name, value in tools.workspace.settings.variables.items()
            if not leads_programs(name)
        }
        recorded = services.recorded_hooks
        return SessionHooks(
            hooks,
            hook_runner(core.cwd, services.config, environ, sandbox, helpers)
            if recorded is None
            else recorded.runner,
            session=CoreSession(core),
            variables=tools.workspace.processes.variables,
            active=self._extensions.definitions.active_hooks,
            shared=None if self._hooks is None else self._hooks.shared,
        )

    async def run_turn_hooks(
        self, turn: TurnResources, content: tuple[ContentBlock, ...], *, is_new: bool
    ) -> str:
        """Run the hooks for a prompt that begins a turn, and the session's hooks before the first.

        Their context is added to the conversation.

        Args:
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
            start_fields = {"source": source, "model": turn.models.current.ref}
            self._start_answer = await hooks.fire("SessionStart", start_fields, matched=source)
            await self._report_instructions(hooks)
        for event, fields in self._changes.folders():
            await self._add_context(await hooks.fire(event, fields))
        if hooks.has("ConfigChange"):
            for path in self._changes.definitions():
                await self._report_change(hooks, "skills", path)
        reason = await self.run_prompt_hooks(hooks, content)
        if not reason and self._start_answer is not None:  # the model never sees a refused turn
            await self._set_title(self._start_answer)
            await self._add_context(self._start_answer)
            if message := self._start_answer.first_message:
                await self._add_notice("A hook sent the first message.", message)
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
        hooks.begin_prompt()
        prompt = "\n".join(block.text for block in content if isinstance(block, TextBlock))
        await hooks.report_files()
        # Without the title: it has the first prompt, which hooks would find in every event.
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
            await self._set_title(answer)
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
            stop: why the model stopped.

        Returns:
            Why the model stopped the last time.
        """
        hooks = turn.hooks
        for round_number in range(MAX_ROUNDS):
            if hooks is None or stop != "end_turn":
                break
            await hooks.report_files()
            if hooks.take_wake():  # its text is in the conversation
                stop = await run(turn)
                continue
            fields: JsonObject = {
                "stop_hook_active": round_number > 0,
                "background_tasks": background_tasks(turn),
                "session_crons": [],
            }
            if answer_text := turn.journal.context.last_answer:
                fields["last_assistant_message"] = self._core.clean(answer_text)
            answer = await hooks.fire("Stop", fields)
            if answer.stop or not answer.feedback:
                break
            await self._add_notice("A hook has the model go on.", answer.feedback)
            stop = await run(turn)
        return stop

    async def run_failure_hooks(self, turn: TurnResources, error: Exception) -> None:
        """Run the hooks for a turn that ended with an error."""
        if turn.hooks is not None:
            kind, details = _error_kind(error), scrub(str(error), self._core.secrets)
            fields: JsonObject = {"error": kind, "error_details": details}
            if text := turn.journal.context.last_answer:
                fields["last_assistant_message"] = self._core.clean(text)
            await turn.hooks.fire("StopFailure", fields, matched=kind)

    async def _set_title(self, answer: HookAnswer) -> None:
        if answer.title:
            await self._core.emit(TitleChanged(title=self._core.clean(answer.title)))

    async def _add_context(self, answer: HookAnswer) -> None:
        if answer.context:
            await self._add_notice("A hook gave the model additional context.", answer.context)

    async def _add_notice(self, title: str, text: str) -> None:
        from acp_agent.hooks.session_hooks import context_notice  # noqa: PLC0415 - if there are any

        await self._core.emit(context_notice(scrub(text, self._core.secrets), title))

    async def aclose(self) -> None:
        """Run the hooks for the end of the session; waits a few seconds at most."""
        if self._hooks is not None and self._started:
            ending = self._hooks.fire("SessionEnd", {"reason": "other"}, matched="other")
            await wait_at_most(ending, _END_SECONDS)


def background_tasks(turn: TurnResources) -> list[JsonObject]:
    """Return the commands that run in the background, as hooks read them."""
    background = turn.tools.workspace.background
    return [
        {
            "id": command.name,
            "type": "shell",
            "status": "running",
            "description": first_line(command.command, _MAX_COMMAND),
            "command": command.command[:_MAX_COMMAND],
        }
        for command in background.running
    ]


def _error_kind(error: Exception) -> str:
    """Return the name of an error in the contract."""
    if isinstance(error, AuthRequiredError):
        return "authentication_failed"
    status = error.status if isinstance(error, ModelError) else None
    if status is None:
        return "unknown"
    return _STATUS_ERRORS.get(status) or ("server_error" if status >= 500 else "unknown")
