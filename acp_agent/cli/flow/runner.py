"""Run a workflow: steps in order, those of a group concurrently, with a journal."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct, structs

from acp_agent.cli.agent_client import OnUpdate
from acp_agent.cli.flow.agent import StepSession
from acp_agent.cli.flow.journal import RunEnded, RunJournal, StepEnded, StepStarted
from acp_agent.cli.flow.prompts import (
    RunValues,
    SkillInputs,
    check_arguments,
    list_items,
    prompt_text,
    skill_arguments,
    skill_inputs,
)
from acp_agent.cli.flow.step_sessions import RunOptions, StepSessions, read_prompts
from acp_agent.cli.flow.view import FlowView, Outcome
from acp_agent.cli.output import FAILED, INTERRUPTED
from acp_agent.cli.run import Tally
from acp_agent.errors import InvalidInputError
from acp_agent.extensions.workflows.expressions import checks_status, is_true
from acp_agent.extensions.workflows.placeholders import fill_placeholders
from acp_agent.extensions.workflows.types import Step, Workflow
from protocol.jsonrpc.messages import RpcError
from protocol.v1 import types as acp

_UNFINISHED_STATUS = 3  # the model refused, or reached a limit
_REFUSED_STATUS = 4  # a permission was refused because there was nobody to ask
_MAX_ITEMS = 50  # items that one step runs for
_MAX_CONCURRENT_ITEMS = 4
_CANCEL_SECONDS = 10.0  # for a cancelled turn to end


class _Result(Struct, frozen=True, kw_only=True):
    """The result of an attempt: the output, or an error and its exit status."""

    output: str = ""
    error: str = ""
    status: int = 0


class FlowRunner:
    """Runs one workflow once.

    Args:
        journal: has the results so far, and records new ones.
    """

    def __init__(
        self,
        workflow: Workflow,
        journal: RunJournal,
        options: RunOptions,
        view: FlowView,
        *,
        observe: OnUpdate = lambda _: None,
    ) -> None:
        self._workflow = workflow
        self._journal = journal
        self._record = journal.record
        self._options = options
        self._view = view
        self._observe = observe
        self._sessions = StepSessions(workflow, journal, options, view)
        self._active: set[StepSession] = set()
        self._skills: SkillInputs | None = None  # read before the first step with a skill
        self._stopping = asyncio.Event()
        self._failure: int | None = None
        self._statuses: dict[str, int] = {}  # exit statuses of failed steps

    @property
    def started(self) -> bool:
        """Return whether an agent was started."""
        return self._sessions.started

    async def run(self) -> Outcome:
        """Run all unfinished steps.

        Raises:
            RpcError: the agent cannot start.
            ConnectionError: the agent exited.
            OSError: the output could not be shown.
            AcpAgentError: the journal cannot be written.
        """
        for step in self._workflow.steps:
            if self._stopping.is_set():
                break
            step_end = await self._run_step(step, concurrent=False)
            failed = step_end is not None and step_end.status == "failed"
            if failed and not step.continue_on_error and self._failure is None:
                self._failure = self._statuses.get(step.id, FAILED)
        status = 0 if self._failure is None else self._failure
        if self._stopping.is_set():
            status = INTERRUPTED
        elif status == 0 and self._sessions.unanswered:
            status = _REFUSED_STATUS
        self._journal.write(RunEnded(status=status))
        return Outcome(
            run=self._record.started.run,
            status=status,
            output="" if self._stopping.is_set() else self._last_output(),
            steps=dict(self._record.steps),
            refused=self._sessions.unanswered,
        )

    def stop(self) -> None:
        """Cancel the running turns and start no further step."""
        self._stopping.set()
        for session in self._active:
            session.cancel()

    async def aclose(self, *, timeout: float) -> None:
        """End the agent."""
        await self._sessions.aclose(timeout=timeout)

    def _last_output(self) -> str:
        """Return the output of the last completed step, unless a later one failed."""
        for step in reversed(self._workflow.steps):
            step_end = self._record.steps.get(step.id)
            if step_end is not None and step_end.status == "completed":
                return step_end.output
            if step_end is not None and step_end.status == "failed" and not step_end.done:
                break
        return ""

    async def _run_step(self, step: Step, *, concurrent: bool) -> StepEnded | None:
        """Run a step unless it is done; return None if it did not end."""
        earlier = self._record.steps.get(step.id)
        if earlier is not None and earlier.done:
            return None if earlier.status == "failed" else earlier
        if not self._should_run(step):
            skipped = StepEnded(step=step.id, status="skipped", done=True)
            if self._failure is None:  # otherwise it may run when the run is resumed
                self._journal.write(skipped)
            self._view.step_ended(skipped)
            return skipped
        if step.parallel:
            step_end = await self._run_group(step, step.parallel, at_once=len(step.parallel))
        elif step.for_each is not None:
            step_end = await self._run_for_each(step)
        else:
            step_end = await self._run_with_retries(step, concurrent=concurrent)
        if step_end is not None:
            self._journal.write(step_end)
            self._view.step_ended(step_end)
        return step_end

    def _should_run(self, step: Step) -> bool:
        failed = self._failure is not None
        if step.condition is None:
            return not failed
        if failed and not checks_status(step.condition):
            return False
        return is_true(step.condition, RunValues(self._record, failed=failed))

    async def _run_for_each(self, step: Step) -> StepEnded | None:
        """Run a step for each item, a few concurrently, each in its own session."""
        if isinstance(step.for_each, str):
            values = RunValues(self._record, failed=self._failure is not None)
            items = list_items(fill_placeholders(step.for_each, values.value))
        else:
            items = list(step.for_each or ())
        if len(items) > _MAX_ITEMS:
            self._statuses[step.id] = FAILED
            return StepEnded(
                step=step.id,
                status="failed",
                done=step.continue_on_error,
                error=f"for-each: there are {len(items)} items; at most {_MAX_ITEMS} are run",
            )
        copies = [
            structs.replace(
                step,
                id=f"{step.id}[{number}]",
                item=item,
                for_each=None,
                condition=None,
                separate_session=True,
                continue_on_error=False,
            )
            for number, item in enumerate(items, 1)
        ]
        return await self._run_group(step, copies, at_once=_MAX_CONCURRENT_ITEMS)

    async def _run_group(
        self, group: Step, steps: Sequence[Step], *, at_once: int
    ) -> StepEnded | None:
        semaphore = asyncio.Semaphore(max(at_once, 1))

        async def run(step: Step) -> None:
            async with semaphore:
                await self._run_step(step, concurrent=True)

        tasks = [asyncio.create_task(run(step)) for step in steps]
        try:
            await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        step_ends = [self._record.steps.get(step.id) for step in steps]
        if self._stopping.is_set() and not all(step_ends):
            return None
        failed = [
            step.id
            for step, step_end in zip(steps, step_ends, strict=True)
            if step_end is not None and step_end.status == "failed" and not step.continue_on_error
        ]
        output = "\n\n".join(
            f"## {step.item or step.id}\n\n{step_end.output.strip()}"
            for step, step_end in zip(steps, step_ends, strict=True)
            if step_end is not None and step_end.status == "completed"
        )
        for name in failed:
            self._statuses.setdefault(group.id, self._statuses.get(name, FAILED))
        return StepEnded(
            step=group.id,
            status="failed" if failed else "completed",
            done=not failed or group.continue_on_error,
            output=output,
            error=f"these steps failed: {', '.join(failed)}" if failed else "",
        )

    async def _run_with_retries(self, step: Step, *, concurrent: bool) -> StepEnded | None:
        result = _Result()
        for attempt in range(1, step.retry + 2):
            result = await self._attempt(step, attempt, concurrent=concurrent)
            if result.status == 0:
                return StepEnded(step=step.id, status="completed", done=True, output=result.output)
            if self._stopping.is_set():
                return None
            if attempt <= step.retry:
                self._view.show_retry(step.id, result.error)
        self._statuses[step.id] = result.status
        return StepEnded(
            step=step.id, status="failed", done=step.continue_on_error, error=result.error
        )

    async def _attempt(self, step: Step, attempt: int, *, concurrent: bool) -> _Result:
        """Prompt once. After a crash, use the answer that the session already has."""
        if self._stopping.is_set():
            return _Result(error="the turn was cancelled", status=INTERRUPTED)
        interrupted = self._record.open_steps.get(step.id) if attempt == 1 else None
        try:
            session = await self._sessions.for_step(step)
            text = await self._text(step, session)
        except RpcError as error:
            return _Result(error=error.message, status=FAILED)
        except InvalidInputError as error:
            return _Result(error=str(error), status=FAILED)
        if interrupted is not None:
            history = await read_prompts(interrupted.session, interrupted.before)
            if history is not None and history.answer is not None:
                return _Result(output=history.answer.strip("\n"))
        tally = Tally(lambda update: self._update(step.id, update))
        session.show, session.step = tally.update, step.id
        self._journal.write(
            StepStarted(step=step.id, session=session.id, before=session.prompts, attempt=attempt)
        )
        self._view.step_started(step, session.id, concurrent=concurrent)
        task = asyncio.create_task(session.prompt(text))
        self._active.add(session)
        try:
            await asyncio.wait({task}, timeout=step.timeout)
            if not task.done():
                session.cancel()
                await asyncio.wait({task}, timeout=_CANCEL_SECONDS)
                if task.done():
                    task.exception()  # marks the exception as retrieved
                seconds = f"{step.timeout:g}"
                return _Result(error=f"it took longer than {seconds} seconds", status=FAILED)
            reason = (await task).stop_reason
        except RpcError as error:
            return _Result(error=error.message, status=FAILED)
        finally:
            self._active.discard(session)
            task.cancel()
        if reason == "end_turn":
            return _Result(output=tally.text.strip("\n"))
        if reason == "cancelled":
            return _Result(error="the turn was cancelled", status=INTERRUPTED)
        return _Result(error=f"the turn ended early: {reason}", status=_UNFINISHED_STATUS)

    async def _text(self, step: Step, session: StepSession) -> str:
        values = RunValues(self._record, failed=self._failure is not None, item=step.item)
        if step.skill is None:
            return prompt_text(step.prompt or "", values)
        command = await session.has_command(f"flow:{step.skill}", f"skill:{step.skill}")
        if command is None:
            raise InvalidInputError(
                f"there is no skill {step.skill} here; see acp-agent skills, and acp-agent trust "
                "for those of the project"
            )
        arguments = skill_arguments(step, values)
        await asyncio.to_thread(self._check_skill, step.skill, arguments)
        return f"/{command} {arguments}".rstrip()

    def _check_skill(self, skill: str, arguments: str) -> None:
        if self._skills is None:
            self._skills = skill_inputs(self._options.cwd)
        inputs = self._skills.get(skill)  # inputs of plugin skills are not known here
        if inputs:
            check_arguments(skill, inputs, arguments, self._options.cwd)

    def _update(self, step: str, update: acp.SessionUpdate) -> None:
        self._observe(update)
        self._view.update(step, update)
