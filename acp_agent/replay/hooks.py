"""The hooks of a replay: they answer as recorded, and nothing runs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec.structs import replace

from acp_agent.config.hook_types import HookEvent
from acp_agent.content import JsonObject
from acp_agent.events import HookAnswered
from acp_agent.hooks.running import HookRunner
from acp_agent.hooks.session_hooks import event_subject
from acp_agent.hooks.tool_names import program_arguments
from acp_agent.hooks.types import NO_ANSWER, Hook, HookAnswer
from acp_agent.platform.decoding import convert
from acp_agent.replay.script import Call
from acp_agent.workspace.scrub import REPLACEMENT

_HOOK_TEXT = re.compile(r"(?s)\n\n\[From hooks: (?:(?!\n\n\[From hooks: ).)*\]\Z")
_EVENTS: dict[str, HookEvent] = {event: event for event in get_args(HookEvent)}
_SOURCE = "<record>"


class RecordedHookRunner(HookRunner):
    """Returns the recorded answers; other hooks, such as those of skills, have none."""

    def __init__(self, folder: Path, answers: Sequence[HookAnswered]) -> None:
        super().__init__(folder, {}, {}, None)
        self._answers = [answer for answer in answers if not answer.later]
        self._later = [_Later(answer) for answer in answers if answer.later]
        self._given = 0

    async def run(self, hook: Hook, event: JsonObject) -> HookAnswer:
        """Return the first unused answer to an event about the same."""
        if hook.source != _SOURCE:
            return NO_ANSWER
        subject = event_subject(event)
        if hook.runs_async:
            return await self._answer_later(hook, subject)
        for recorded in self._answers:
            if _is_about(recorded, hook, subject):
                self._answers.remove(recorded)
                return _read_answer(recorded, hook)
        return NO_ANSWER

    async def _answer_later(self, hook: Hook, subject: str) -> HookAnswer:
        """Return the next answer to an event once it is given."""
        for later in self._later:
            if later.task is None and _is_about(later.recorded, hook, subject):
                later.task = asyncio.current_task()
                await later.given.wait()
                return _read_answer(later.recorded, hook)
        return NO_ANSWER

    async def give_later(self) -> None:
        """Give the next answer that nothing waited for, and wait until the model has its text."""
        later = self._later[self._given]
        self._given += 1
        later.given.set()
        if later.task is not None:
            await asyncio.wait([later.task])


class _Later:
    """The answer of a hook that nothing waits for.

    Attributes:
        given: set when it came.
        task: the task that the hook runs in; None before it does.
    """

    def __init__(self, recorded: HookAnswered) -> None:
        self.recorded = recorded
        self.given = asyncio.Event()
        self.task: asyncio.Task[Any] | None = None


class ReplayedHooks:
    """The hooks of a record: one for each event that a hook answered."""

    def __init__(self, folder: Path, answers: Sequence[HookAnswered]) -> None:
        events = {(_EVENTS[answer.on], answer.later) for answer in answers if answer.on in _EVENTS}
        self.hooks: Sequence[Hook] = [
            Hook(event=event, by_user=True, source=_SOURCE, runs_async=later, rewakes=later)
            for event, later in sorted(events)
        ]
        self._runner = RecordedHookRunner(folder, answers)
        self.runner: HookRunner = self._runner
        self.give_later = self._runner.give_later


def _is_about(recorded: HookAnswered, hook: Hook, subject: str) -> bool:
    known = recorded.subject.partition(REPLACEMENT)[0]
    return recorded.on == hook.event and subject.startswith(known)


def _read_answer(recorded: HookAnswered, hook: Hook) -> HookAnswer:
    by = replace(hook, label=recorded.name, source=recorded.source)
    try:
        return replace(convert(recorded.answer, HookAnswer), by=by)
    except msgspec.ValidationError:
        return NO_ANSWER  # its effect is missing, which is a difference


def changed_arguments(call: Call) -> list[str]:
    """Return the arguments that hooks gave a call in place of its own, as JSON."""
    return [
        msgspec.json.encode(program_arguments(call.event.name, arguments)).decode()
        for answered in call.hook_answers
        if isinstance(arguments := answered.answer.get("arguments"), dict)
    ]


def was_hooked(call: Call) -> bool:
    """Return whether hooks answered before the call ran, which is after it was prepared."""
    return any(answered.on == "PreToolUse" for answered in call.hook_answers)


def without_hook_text(call: Call, result: str) -> str:
    """Return the result of a call without the text that hooks added to it."""
    return _HOOK_TEXT.sub("", result) if call.hook_answers else result
