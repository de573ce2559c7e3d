"""The hooks of a replay: they answer as recorded, and nothing runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

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
        self._answers = list(answers)

    async def run(self, hook: Hook, event: JsonObject) -> HookAnswer:
        """Return the first unused answer to an event about the same."""
        if hook.source != _SOURCE:
            return NO_ANSWER
        subject = event_subject(event)
        for recorded in self._answers:
            known = recorded.subject.partition(REPLACEMENT)[0]
            if recorded.on == hook.event and subject.startswith(known):
                self._answers.remove(recorded)
                return replace(
                    _read_answer(recorded),
                    by=replace(hook, label=recorded.name, source=recorded.source),
                )
        return NO_ANSWER


class ReplayedHooks:
    """The hooks of a record: one for each event that a hook answered."""

    def __init__(self, folder: Path, answers: Sequence[HookAnswered]) -> None:
        events = {_EVENTS[answer.on] for answer in answers if answer.on in _EVENTS}
        self.hooks: Sequence[Hook] = [
            Hook(event=event, by_user=True, source=_SOURCE) for event in sorted(events)
        ]
        self.runner: HookRunner = RecordedHookRunner(folder, answers)


def _read_answer(recorded: HookAnswered) -> HookAnswer:
    try:
        return convert(recorded.answer, HookAnswer)
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
